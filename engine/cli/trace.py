"""`arenaplan trace`: every allocation, overwrite and free of a run, in a format that other tools open."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from allocator.io.files import write_whole
from engine.cli.common import add_model, add_parallel, add_planning, add_running, plan_options
from engine.cli.models import Subject, load_graph, load_subject
from engine.cli.subjects import blas_threads, compile_subject
from engine.executable import MODES, Executable, make_plan
from engine.exporters import FORMATS
from engine.stages.tale import timed_trace_stages, trace_stages
from engine.threads import limit_threads
from engine.timed_trace import timed_trace
from engine.trace import Event

NAME, HELP = "trace", "list every allocation, overwrite and free of a run"


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    add_parallel(parser)
    parser.add_argument("--mode", choices=MODES, default="static", help="one arena, or reference counting")
    parser.add_argument(
        "--real",
        action="store_true",
        help="run the model, and tell when and on which thread operators ran and tensors came and went",
    )
    add_running(parser)
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="chrome is for ui.perfetto.dev")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file, not to stdout")


def run(arguments: Namespace) -> int:
    """Prints or writes the events."""
    text = FORMATS[arguments.format]((_real if arguments.real else _planned)(arguments))
    if arguments.output is None:
        print(text, end="")
    else:
        write_whole(arguments.output, text.encode())
    return 0


def _planned(arguments: Namespace) -> tuple[Event, ...]:
    graph = load_graph(arguments)
    if graph.is_symbolic:
        exe, subject = _compiled(arguments)
        exe.run(subject.feeds)
        return trace_stages(exe.stages, arguments.mode)
    return make_plan(
        graph, budget=arguments.budget, recompute=not arguments.no_recompute, **plan_options(arguments)
    ).trace(arguments.mode)


def _real(arguments: Namespace) -> tuple[Event, ...]:
    """Of a second run: the first one finds caches cold and threads not made."""
    with limit_threads(blas_threads(arguments)):
        exe, subject = _compiled(arguments)
        exe.run(subject.feeds)
        _, timings = exe.timed(subject.feeds)
    if exe.stages:
        return timed_trace_stages(exe.stages, timings, arguments.mode)
    return timed_trace(exe.plan, timings, arguments.mode)


def _compiled(arguments: Namespace) -> tuple[Executable, Subject]:
    subject = load_subject(arguments)
    return compile_subject(subject, arguments, arguments.mode), subject
