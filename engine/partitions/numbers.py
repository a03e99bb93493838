"""From a planned graph to the numbers of which `allocator.cuts` makes parts."""

from collections.abc import Hashable, Sequence

import numpy as np

from allocator.breadths import breadths
from allocator.cuts.problem import OUTSIDE, CutProblem, Reads
from allocator.problem import Column, column
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.lower.calls import Call, Instruction, Storage
from engine.lower.costs import COSTS_A_SECOND
from engine.planning.placed import PlacedPlan
from engine.planning.weights import resident_of


def operators_in_order(plan: PlacedPlan) -> tuple[Operator, ...]:
    """Returns the operators of a plan in the order in which it runs them."""
    return tuple(op for instruction in plan.lowered.instructions for op in instruction.operators)


def cut_problem(plan: PlacedPlan, capacities: Sequence[int], objective: str, bandwidth: int) -> CutProblem:
    """Returns the problem of cutting the operators of a plan, in its order. `bandwidth` is in bytes a second."""
    operators = operators_in_order(plan)
    return CutProblem(
        seconds=[seconds_of(op) for op in operators],
        values=_values(operators),
        weights=_weights(plan),
        least=_least(plan),
        capacities=tuple(capacities),
        objective=objective,
        together=_together(plan.lowered.graph, operators),
        seconds_a_byte=1 / bandwidth,
    )


def seconds_of(operator: Operator) -> float:
    """Returns the time of an operator by the model of costs."""
    cost = operator.schema.cost(operator.signature)
    return (cost.flops + cost.bytes) / COSTS_A_SECOND


def likely_bytes(plan: PlacedPlan) -> Column:
    """Returns the bytes that are alive while each operator of a plan runs, without parameters."""
    alive, kept = breadths(plan.problem), _parameter_bytes(plan.lowered.graph)
    ticks = [i.tick for i in plan.lowered.instructions for _ in i.operators]
    at = np.searchsorted(alive.tick, ticks, side="right") - 1
    return column(np.maximum(alive.value[at] - kept, _least(plan)) if ticks else [])


def _values(operators: Sequence[Operator]) -> Reads:
    maker = {var: i for i, op in enumerate(operators) for var in op.outputs}
    index = {var: i for i, var in enumerate(maker)}
    uses = [(i, index[var]) for i, op in enumerate(operators) for var in op.inputs if var in maker]
    return Reads.of(uses, list(maker.values()), [var.spec.nbytes for var in maker])


def _weights(plan: PlacedPlan) -> Reads:
    """Returns which operators read which weights and parameters."""
    sizes, uses, number = dict[Hashable, int](), list[tuple[int, Hashable]](), 0
    parameters = plan.lowered.graph.parameters
    for instruction in plan.lowered.instructions:
        for operator in instruction.operators:
            kept = resident_of(plan.lowered, instruction)
            kept |= {("parameter", v.name): v.spec.nbytes for v in operator.inputs if v in parameters}
            uses += [(number, key) for key in kept]
            sizes |= kept
            number += 1
    index = {key: i for i, key in enumerate(sizes)}
    return Reads.of(((op, index[key]) for op, key in uses), [OUTSIDE] * len(sizes), list(sizes.values()))


def _least(plan: PlacedPlan) -> Column:
    return column([_written(plan, i) for i in plan.lowered.instructions for _ in i.operators])


def _written(plan: PlacedPlan, instruction: Instruction) -> int:
    """Returns the bytes that an instruction writes in the arena, but for those of parameters."""
    if not isinstance(instruction, Call):
        return 0
    lowered, updated = plan.lowered, set(plan.lowered.parameters.values())
    outputs = (lowered.values[v] for v in instruction.outputs if v not in updated)
    return sum(v.spec.nbytes for v in outputs if v.storage is Storage.ARENA and not v.is_view)


def _parameter_bytes(graph: Graph) -> int:
    return sum(v.spec.nbytes for v in graph.parameters)


def _together(graph: Graph, operators: Sequence[Operator]) -> tuple[tuple[int, ...], ...]:
    """Returns the operators of each parameter that is updated: those that read it, and the one that updates it."""
    maker = {var: i for i, op in enumerate(operators) for var in op.outputs}
    groups = []
    for parameter, value in graph.updates.items():
        looks = _shown(parameter, operators)
        group = {i for i, op in enumerate(operators) if looks & set(op.inputs)}
        groups.append(tuple(sorted(group | ({maker[value]} if value in maker else set()))))
    return tuple(group for group in groups if len(group) > 1)


def _shown(parameter: Var, operators: Sequence[Operator]) -> set[Var]:
    """Returns a parameter and the vars that are views of it."""
    shown = {parameter}
    for operator in operators:
        if operator.shows_its_input and operator.inputs[0] in shown:
            shown |= set(operator.outputs)
    return shown
