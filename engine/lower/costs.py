"""The cost of calls and graphs in operations and bytes, as the schemas estimate them."""

from collections.abc import Iterable

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.lower.calls import Call, Lowered
from ops.schema.schema import Cost, elementwise_cost

COSTS_A_SECOND = 1e10
"""Operations plus bytes that one core is assumed to do in a second, to turn costs into seconds. It is not measured."""


def call_cost(call: Call) -> int:
    """Returns operations plus bytes read and written, as the schema estimates them: to compare calls of one plan."""
    costs = [op.schema.cost(op.signature) for op in call.operators] or [elementwise_cost(call.signature)]
    return sum(cost.flops + cost.bytes for cost in costs)


def operation_seconds(call: Call) -> float:
    """Returns the seconds of the operations of a call, without the bytes that it moves, at COSTS_A_SECOND."""
    return sum(op.schema.cost(op.signature).flops for op in call.operators) / COSTS_A_SECOND


def lowered_cost(lowered: Lowered) -> int:
    """Returns the cost of all calls together, copies among them."""
    return sum(map(call_cost, lowered.calls))


def graph_cost(graph: Graph) -> Cost:
    """Returns the cost of all operators together."""
    return operators_cost(graph.operators)


def operators_cost(operators: Iterable[Operator]) -> Cost:
    """Returns the cost of operators together."""
    costs = [op.schema.cost(op.signature) for op in operators]
    return Cost(sum(c.flops for c in costs), sum(c.bytes for c in costs))
