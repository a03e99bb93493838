"""`arenaplan explain`: why an arena is as large as it is."""

from argparse import ArgumentParser, Namespace
from typing import Any, Protocol

from engine.cli import plan as planning
from engine.cli.options.common import print_json
from engine.cli.smaller import with_smaller
from engine.execution_plan import ExecutionPlan
from engine.explain.explanation import explain
from engine.explain.operator import explain_operator
from engine.explain.tensor import explain_tensor

NAME, HELP = "explain", "say why the arena of a model is as large as it is, and what would make it smaller"


class Story(Protocol):
    """What there is to say of a plan, or of a part of it."""

    def to_json(self) -> dict[str, Any]:
        """As data."""

    def text(self, most: int = 10) -> str:
        """As sentences."""


def add_arguments(parser: ArgumentParser) -> None:
    """Options of this subcommand: those of `plan`, and of what to speak."""
    planning.add_options(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--tensor", metavar="NAME", help="speak of one tensor, by its name in `arenaplan trace`")
    group.add_argument("--operator", metavar="NAME", help="speak of one operator, or of 'feed' or 'fetch'")


def run(arguments: Namespace) -> int:
    """Prints sentences, or the same as data; of the first stage alone where data decide the sizes of the rest."""
    plan, told, more = planning.planned(arguments)
    story = _story(plan, arguments)
    if arguments.json:
        print_json(story.to_json() | told)
    else:
        print(story.text(arguments.top) + more, end="")
    return 0


def _story(plan: ExecutionPlan, arguments: Namespace) -> Story:
    if arguments.tensor is not None:
        return explain_tensor(plan, arguments.tensor)
    if arguments.operator is not None:
        return explain_operator(plan, arguments.operator)
    return explain(plan, with_smaller(plan.find_alternatives, arguments))
