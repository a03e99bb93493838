"""`arenaplan plan`: what a model would need."""

from argparse import ArgumentParser, Namespace

from engine.cli.common import add_json, add_model, add_parallel, add_planning, count, plan_options, print_json
from engine.cli.models import load_graph
from engine.executable import make_plan

NAME, HELP = "plan", "plan a model and say what it needs"


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand."""
    add_model(parser)
    add_planning(parser)
    add_parallel(parser)
    parser.add_argument("--top", metavar="N", type=count, default=10, help="tensors shown at the peak (default 10)")
    add_json(parser)


def run(arguments: Namespace) -> int:
    """Prints the report of the plan."""
    found = make_plan(load_graph(arguments), budget=arguments.budget, **plan_options(arguments)).report()
    if arguments.json:
        print_json(found.to_json())
    else:
        print(found.text(arguments.top), end="")
    return 0
