"""`arenaplan trace`: every allocation, overwrite and free of a run, in a format that other tools open."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from allocator.io.files import write_whole
from engine.cli.common import add_model, add_planning, plan_options
from engine.cli.models import load_graph
from engine.executable import MODES, make_plan
from engine.exporters import FORMATS

NAME, HELP = "trace", "list every allocation, overwrite and free of a run"


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    parser.add_argument("--mode", choices=MODES, default="static", help="one arena, or reference counting")
    parser.add_argument("--format", choices=tuple(FORMATS), default="table", help="chrome is for ui.perfetto.dev")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="short for --format json")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to a file, not to stdout")


def run(arguments: Namespace) -> int:
    """Prints or writes the events."""
    plan = make_plan(load_graph(arguments), budget=arguments.budget, **plan_options(arguments))
    text = FORMATS[arguments.format](plan.trace(arguments.mode))
    if arguments.output is None:
        print(text, end="")
    else:
        write_whole(arguments.output, text.encode())
    return 0
