"""What smaller dimensions would save: a batch, say, of half as many."""

from argparse import Namespace
from collections.abc import Iterator

from attrs import evolve

from allocator.progress import each
from engine.cli.options.common import plan_options
from engine.cli.options.models import load_graph
from engine.explain.alternatives import NODES, Alternative, Alternatives, FindAlternatives, alternative
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.text.errors import EngineError
from ops.tensor.errors import OpError


def with_smaller(find: FindAlternatives, arguments: Namespace) -> FindAlternatives:
    """Returns a search that also halves each length that --dim gives; it adds nothing where no other way is tried."""

    def search(plan: PlacedPlan) -> Alternatives:
        alternatives = find(plan)
        if not alternatives.tried:
            return alternatives
        return evolve(alternatives, tried=(*alternatives.tried, *_halved(plan, arguments)))

    return search


def _halved(plan: PlacedPlan, arguments: Namespace) -> Iterator[Alternative]:
    """Lengths that the graph does not allow are left out."""
    given = Options(**plan_options(arguments))
    options, lengths = evolve(given, nodes=min(given.nodes, NODES)), dict(arguments.dim)
    for name in each("trying", [name for name, length in lengths.items() if length > 1]):
        half = lengths[name] // 2
        try:
            graph = load_graph(Namespace(**vars(arguments) | {"dim": list((lengths | {name: half}).items())}))
        except (EngineError, OpError):
            continue
        yield alternative(
            plan, plan_graph(graph, options), f"{name}={half} in place of {lengths[name]}", f"--dim {name}={half}"
        )
