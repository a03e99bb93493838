"""How much work a call is, as far as that is known before it runs."""

from engine.graph.graph import Graph
from engine.lower.calls import Call
from ops.schema.schema import Cost, elementwise_cost


def call_cost(call: Call) -> int:
    """Operations plus bytes read and written, by what the operator declares: to compare calls of one plan."""
    costs = [op.schema.cost(op.signature) for op in call.operators] or [elementwise_cost(call.signature)]
    return sum(cost.flops + cost.bytes for cost in costs)


def graph_cost(graph: Graph) -> Cost:
    """That of all operators together."""
    costs = [op.schema.cost(op.signature) for op in graph.operators]
    return Cost(sum(c.flops for c in costs), sum(c.bytes for c in costs))
