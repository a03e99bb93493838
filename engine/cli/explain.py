"""`arenaplan explain`: why an arena is as large as it is, and with a budget, what leads to it."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import Any, Protocol

from attrs import evolve

from allocator.progress import each
from engine.cli import plan as planning
from engine.cli.ladder import has_ladder, print_ladder
from engine.cli.options.common import plan_options, print_text
from engine.cli.options.models import load_graph
from engine.cli.options.values import print_json
from engine.execution_plan import ExecutionPlan
from engine.explain.alternatives import NODES, Alternative, Alternatives, FindAlternatives, alternative
from engine.explain.explanation import explain
from engine.explain.operator import explain_operator
from engine.explain.tensor import explain_tensor
from engine.passes.automatic import optimised, plan_optimised
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.text.errors import EngineError
from ops.tensor.errors import OpError

HELP = "say why the arena of a model is as large as it is, what would make it smaller, and how it meets a --budget"


class AnyExplanation(Protocol):
    """An explanation of a plan, or of a part of it."""

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""

    def text(self, most: int = 10) -> str:
        """Returns sentences."""


def add_arguments(parser: ArgumentParser) -> None:
    """Adds the options of `plan`, and those that choose what is explained."""
    planning.add_options(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--tensor", metavar="NAME", help="explain one tensor, by its name in `arenaplan trace`")
    group.add_argument("--operator", metavar="NAME", help="explain one operator, or 'feed' or 'fetch'")


def run(arguments: Namespace) -> int:
    """Prints sentences or JSON; explains the first stage alone where data decide the sizes of the rest."""
    if has_ladder(arguments) and not (graph := load_graph(arguments)).is_symbolic:
        return print_ladder(graph, arguments)
    plan, stage, more = planning.planned(arguments)
    explanation = _explanation(plan, arguments)
    if arguments.json:
        print_json(explanation.to_json() | stage)
    else:
        print_text(explanation.text(arguments.top) + more)
    return 0


def _explanation(plan: ExecutionPlan, arguments: Namespace) -> AnyExplanation:
    if arguments.tensor is not None:
        return explain_tensor(plan, arguments.tensor)
    if arguments.operator is not None:
        return explain_operator(plan, arguments.operator)
    return explain(plan, with_smaller(plan.find_alternatives, arguments))


def with_smaller(find: FindAlternatives, arguments: Namespace) -> FindAlternatives:
    """Returns a search that also halves each length that --dim gives; it adds nothing where no other way is tried."""

    def search(plan: PlacedPlan) -> Alternatives:
        alternatives = find(plan)
        if not alternatives.tried:
            return alternatives
        return evolve(alternatives, tried=(*alternatives.tried, *_halved(plan, arguments)))

    return search


def _halved(plan: PlacedPlan, arguments: Namespace) -> Iterator[Alternative]:
    """Yields a plan for each halved length; lengths that the graph does not allow are left out."""
    asked = Options(**plan_options(arguments))
    options, lengths = evolve(asked, nodes=min(asked.nodes, NODES)), dict(arguments.dim)
    for name in each("trying", [name for name, length in lengths.items() if length > 1]):
        half = lengths[name] // 2
        try:
            graph = load_graph(Namespace(**vars(arguments) | {"dim": list((lengths | {name: half}).items())}))
        except (EngineError, OpError):
            continue
        other = plan_optimised(optimised(graph, options), options)
        yield alternative(plan, other, f"{name}={half} in place of {lengths[name]}", f"--dim {name}={half}")
