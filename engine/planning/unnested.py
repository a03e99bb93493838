"""The calls of a plan before anything is nested, in the order of the plan."""

from engine.graph.graph import Graph
from engine.lower.calls import Lowered
from engine.lower.order import in_order
from engine.planning.options import Options
from engine.planning.planner import lower_graph


def unnested(graph: Graph, options: Options, lowered: Lowered) -> Lowered:
    """Lowers a graph again, in the order of a lowering of the same graph in which values may be nested."""
    return _in_order_of(lower_graph(graph, options), lowered)


def _in_order_of(lowered: Lowered, other: Lowered) -> Lowered:
    """Returns the calls in the order of the same calls in another lowering, in which some may be nested."""
    place = {instruction.name: instruction.tick for instruction in other.instructions}
    if any(call.name not in place for call in lowered.calls):
        return lowered
    ticks = [c.tick for c in sorted(lowered.calls, key=lambda call: place[call.name])]
    return lowered if ticks == sorted(ticks) else in_order(lowered, ticks)
