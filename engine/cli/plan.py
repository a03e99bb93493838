"""`arenaplan plan`: what a model would need."""

from argparse import ArgumentParser, Namespace
from typing import Any

from engine.cli.common import add_json, add_model, add_parallel, add_planning, count, plan_options, print_json
from engine.cli.models import load_graph
from engine.cli.stages import plan_first, stage_data, stage_text
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
    """Prints the report of the plan; of its first stage alone where data decide the sizes of the rest."""
    graph = load_graph(arguments)
    told: dict[str, Any] = {}
    if graph.is_symbolic:
        stage = plan_first(graph, dict(arguments.dim), arguments)
        plan, told = stage.plan, stage_data(graph, stage)
    else:
        plan = make_plan(graph, budget=arguments.budget, **plan_options(arguments))
    found = plan.report()
    if arguments.json:
        print_json(found.to_json() | told)
    else:
        print(found.text(arguments.top) + (stage_text(told) if told else ""), end="")
    return 0
