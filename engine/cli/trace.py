"""`arenaplan trace`: every allocation, overwrite, view and free of a run, in a format that other tools open."""

import os
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from attrs import evolve

from allocator.heaps import HEAPS
from allocator.io.files import is_special, open_whole
from engine.api import MODES, Executable, make_plan
from engine.cli import free_list
from engine.cli.options.common import add_evict, add_list, add_parallel, add_planning, add_running, plan_options
from engine.cli.options.compile import blas_threads, compile_subject
from engine.cli.options.embedded import add_plan_from_file, plan_in_file, tell_origin
from engine.cli.options.model_flags import add_model, refuse_unused
from engine.cli.options.models import Subject, load_graph, load_subject
from engine.cli.progress import warn
from engine.execution_plan import ExecutionPlan
from engine.exporters import FORMATS, named_like
from engine.graph.graph import Graph
from engine.readers import is_saved_trace, read_trace
from engine.system.threads import AS_THEY_ARE, limit_threads
from engine.text.errors import BudgetError, OptionError
from engine.text.screen import FILE, screen_of
from engine.trace.build import IN_TICKS
from engine.trace.simulation import simulation_of
from engine.trace.trace import Trace

HELP = (
    "list every allocation, overwrite, view and free of a run, as text, a picture or a file for tools; MODEL may be a "
    "trace saved as JSON or CSV, to be shown in another format"
)

_USUAL = "table"
_SAVED = (".json", ".csv")
"""The suffixes of files of saved traces."""


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of this subcommand."""
    add_model(parser)
    add_making(parser)
    add_plan_from_file(parser)
    text = f"one of the formats below (default: the one whose files are called as FILE is, else {_USUAL})"
    parser.add_argument("--format", choices=tuple(FORMATS), default="", metavar="FORMAT", help=text)
    add_list(parser, "formats", {name: f"{form.use} ({form.suffix})" for name, form in FORMATS.items()})
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="MegEngine's free list instead, event by event: where each chunk begins, what is split, merged and freed, "
        "as a table or with --json",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file, not to stdout")


def add_making(parser: ArgumentParser) -> None:
    """Adds the options that say how a trace is made of a model: what is planned and run."""
    add_planning(parser)
    add_parallel(parser)
    add_mode(parser)
    add_running(parser)


def add_mode(parser: ArgumentParser) -> None:
    """Adds the options that say which run is traced."""
    parser.add_argument("--mode", choices=MODES, default="static", help="one arena, or reference counting")
    heaps = ", ".join(HEAPS)
    parser.add_argument(
        "--heap",
        choices=tuple(HEAPS),
        default="",
        metavar="HEAP",
        help=f"with --mode dynamic, a model of the heap that serves it: {heaps}",
    )
    parser.add_argument(
        "--real",
        action="store_true",
        help="run the model: the trace says when and on which thread operators ran, and when tensors came and went; "
        "without this, --threads estimates the times from costs, and nothing is run",
    )
    add_evict(parser)


def run(arguments: Namespace) -> int:
    """Prints or writes the events."""
    if arguments.simulate:
        return _simulate(arguments)
    name = arguments.format or _guessed(arguments.output)
    chosen = FORMATS[name]
    if arguments.output is None and not chosen.is_text and sys.stdout.isatty():
        raise OptionError(f"--format {name} is not for terminals: write it to a file, with -o FILE")
    events = traced(arguments)
    if arguments.output is None:
        chosen.show(events, sys.stdout.buffer, screen_of(sys.stdout, os.environ))
    else:
        with open_whole(arguments.output) as out:
            chosen.write(events, out)
    return 0


def _simulate(arguments: Namespace) -> int:
    """Prints or writes the free-list simulation of the chunks."""
    file, name = arguments.output, arguments.format
    if name not in ("", _USUAL, "json"):
        raise OptionError(f"--simulate writes a table or JSON: leave out --format {name}")
    is_json = name == "json" or (not name and file is not None and file.suffix.lower() == ".json")
    write = free_list.write_json if is_json else free_list.show
    simulation = simulation_of(traced(arguments))
    if file is None:
        write(simulation, sys.stdout.buffer, screen_of(sys.stdout, os.environ))
    else:
        with open_whole(file) as out:
            write(simulation, out, FILE)
    return 0


def _guessed(file: Path | None) -> str:
    """Returns the format that fits the name of a file; the usual one, where none does."""
    if file is None or is_special(file):
        return _USUAL
    names = named_like(file)
    if len(names) < 2 or _USUAL in names:
        if not names:
            suffixes = ", ".join(dict.fromkeys(form.suffix for form in FORMATS.values()))
            raise OptionError(f"{file}: its name ends in none of {suffixes}; or say with --format what it is to be")
        return names[0] if len(names) == 1 else _USUAL
    raise OptionError(f"{file}: say with --format which of these it is to be: {', '.join(names)}")


def traced(arguments: Namespace) -> Trace:
    """Returns the trace that a command line with all of these options asks for, or the one saved in its file."""
    file = arguments.file
    if is_saved_trace(file) or (file.suffix.lower() in _SAVED and file.is_file()):
        return _saved(arguments)
    return _real(arguments) if arguments.real else _planned(arguments)


def _saved(arguments: Namespace) -> Trace:
    why = f"{arguments.file} is a saved trace, and has its plan and its run"
    refuse_unused(arguments, why, (add_making, add_plan_from_file))
    return read_trace(arguments.file)


def _planned(arguments: Namespace) -> Trace:
    graph = load_graph(arguments)
    threads = IN_TICKS if arguments.threads == AS_THEY_ARE else arguments.threads
    if graph.is_symbolic:
        exe, subject = _compiled(arguments)
        exe.run(subject.feeds)
        return exe.trace(arguments.mode, heap=arguments.heap)
    if arguments.evict:
        exe, _ = _compiled(arguments)
        return exe.trace(arguments.mode, heap=arguments.heap, threads=threads)
    plan = _plan_to_draw(graph, arguments)
    tell_origin(plan, arguments)
    return plan.trace(arguments.mode, heap=arguments.heap, threads=threads)


def _plan_to_draw(graph: Graph, arguments: Namespace) -> ExecutionPlan:
    """Returns the plan; where it misses the budget, a line says so, and the plan is one in which nothing runs again."""
    embedded = plan_in_file(arguments, graph)
    planned = partial(make_plan, graph, embedded=embedded, **plan_options(arguments))
    try:
        return planned(budget=arguments.budget, recompute=not arguments.no_recompute)
    except BudgetError as error:
        plan, missed = planned(), str(error).splitlines()[0]
    warn(f"{arguments.file} misses the budget, and is shown all the same: {missed}")
    return evolve(plan, plan=evolve(plan.plan, capacity=arguments.budget))


def _real(arguments: Namespace) -> Trace:
    """Traces a second run: the first one has cold caches and starts its threads."""
    with limit_threads(blas_threads(arguments)):
        exe, subject = _compiled(arguments)
        exe.run(subject.feeds)
        _, timings = exe.timed(subject.feeds)
    return exe.trace(arguments.mode, heap=arguments.heap, timings=timings)


def _compiled(arguments: Namespace) -> tuple[Executable, Subject]:
    subject = load_subject(arguments)
    embedded = plan_in_file(arguments, subject.graph)
    exe = compile_subject(subject, arguments, arguments.mode, embedded, arguments.evict)
    if not subject.graph.is_symbolic:
        tell_origin(exe.plan, arguments)
    return exe, subject
