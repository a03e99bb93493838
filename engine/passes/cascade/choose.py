"""Chooses the cascades of a graph: of what the search proposes, what the planner needs the fewest bytes for."""

from allocator.progress import Activity
from engine.graph.graph import Graph
from engine.passes.cascade.rewrite import Cascade, with_cascades
from engine.passes.cascade.search import Choice, operations, search_cascades
from engine.planning.options import Options
from engine.planning.placed import Cascaded
from engine.planning.planner import least_bytes, lower_graph, nestings
from engine.text.errors import GraphError
from ops.common.tiling import ROWS

_MOST_TRIED = 4
"""The choices with the fewest estimated bytes that are lowered. Estimates and lower bounds differ by a few percent."""


def cascaded(graph: Graph, options: Options) -> tuple[Graph, tuple[Cascaded, ...]]:
    """Returns the graph with the cascades that save most bytes, and what they are; the very graph where none saves any.

    Every bit of outputs stays, as long as compiled kernels compute. They add at most `options.cascade` percent of the
    operations. Raises GraphError for a graph with open dimensions or parameters.
    """
    if graph.is_symbolic:
        raise GraphError(f"graph {graph.name!r} has dimensions that are names; see arenaplan.bind")
    if graph.parameters:
        raise GraphError(f"graph {graph.name!r} has parameters; cascades are for networks that are not trained")
    with Activity("searching cascades", graph.name):
        work = operations(graph)
        choices = [c for c in search_cascades(graph) if c.cascades and c.extra * 100 <= options.cascade * work]
        plain = _bound(graph, options)
        best, least, chosen = graph, plain, None
        for choice in choices[:_MOST_TRIED]:
            other = with_cascades(graph, choice.cascades)
            bound = _bound(other, options)
            if bound < least:
                best, least, chosen = other, bound, choice
    return best, () if chosen is None else (_told(graph, chosen, chosen.extra / work, plain),)


def _bound(graph: Graph, options: Options) -> int:
    """Returns a lower bound of the arena, with values nested where that saves bytes."""
    return min(least_bytes(way, options) for way in nestings(lower_graph(graph, options), options))


def _told(graph: Graph, choice: Choice, share: float, plain: int) -> Cascaded:
    return Cascaded(tuple(_run(graph, cascade) for cascade in choice.cascades), share, plain)


def _run(graph: Graph, cascade: Cascade) -> tuple[str, str, int]:
    operators = graph.operators
    first, last = operators[cascade.first], operators[cascade.last - 1]
    return first.name, last.name, -(-last.outputs[0].shape[ROWS] // cascade.height)
