"""The judge of data flow on values that lie inside others: planted faults, each of which it must find."""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

import ops
from engine import Graph
from engine.check import check_data_flow
from engine.lower.calls import Join
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_graph
from engine.text.errors import DataFlowError
from tests.engine.nesting.test_nesting import joins

Change = Callable[[PlacedPlan, Join], PlacedPlan]


def _moved(plan: PlacedPlan, value: int, offset: int) -> PlacedPlan:
    places = list(plan.places)
    places[value] = evolve(places[value], layout=evolve(places[value].layout, offset=offset))
    return evolve(plan, places=tuple(places))


def _elsewhere(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    return _moved(plan, join_stage.inputs[1], 0 if plan.places[join_stage.inputs[1]].layout.offset else 64)


def _on_its_sister(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    return _moved(plan, join_stage.inputs[1], plan.places[join_stage.inputs[0]].layout.offset)


def _whole_moved(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    return _moved(plan, join_stage.outputs[0], plan.places[join_stage.outputs[0]].layout.offset + 4)


def _replaced(plan: PlacedPlan, join_stage: Join, join_stage_here: Join) -> PlacedPlan:
    stages = tuple(join_stage_here if s is join_stage else s for s in plan.lowered.instructions)
    return evolve(plan, lowered=evolve(plan.lowered, instructions=stages))


def _swapped(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    return _replaced(plan, join_stage, evolve(join_stage, inputs=join_stage.inputs[::-1]))


def _twice(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    return _replaced(plan, join_stage, evolve(join_stage, inputs=(join_stage.inputs[0],) * 2))


def _too_early(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    stages = [s for s in plan.lowered.instructions if s is not join_stage]
    return evolve(plan, lowered=evolve(plan.lowered, instructions=(*stages[:2], join_stage, *stages[2:])))


def _left_out(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    stages = tuple(s for s in plan.lowered.instructions if s is not join_stage)
    return evolve(plan, lowered=evolve(plan.lowered, instructions=stages))


def _overwritten(plan: PlacedPlan, join_stage: Join) -> PlacedPlan:
    """Computes something else on top of an input before the join."""
    return _moved(plan, plan.lowered.outputs["between"], plan.places[join_stage.inputs[0]].layout.offset)


FAULTS: tuple[tuple[Change, str], ...] = (
    (_elsewhere, "lies on|is not where it must be|holds|written over"),
    (_on_its_sister, "holds|written over"),
    (_whole_moved, "is not where it must be"),
    (_swapped, "is meant"),
    (_twice, "is meant"),
    (_too_early, "before anything computed it"),
    (_left_out, "not every operator runs once"),
    (_overwritten, "holds|written over"),
)


@pytest.mark.parametrize(("change", "message"), FAULTS)
def test_the_data_flow_judge_refuses_wrong_joins(change: Change, message: str) -> None:
    graph = Graph("joined")
    x = graph.input("x", (4, 16))
    first = ops.tanh(x)
    graph.output(ops.neg(x), "between")
    graph.output(ops.concat([first, ops.abs(x)], axis=0), "y")
    plan = plan_graph(graph, Options())
    (result,) = joins(plan)
    check_data_flow(plan)
    with pytest.raises(DataFlowError, match=message):
        check_data_flow(change(plan, result))


def test_the_judge_does_not_let_a_join_stand_for_another_operator() -> None:
    """Only a schema can say that nothing remains to be done."""
    graph = Graph("sum")
    x = graph.input("x", (4,))
    graph.output(ops.add(ops.tanh(x), ops.neg(x)), "y")
    plan = plan_graph(graph, Options())
    last = plan.lowered.instructions[-1]
    false = Join(last.tick, last.name, last.operators, last.inputs, last.outputs)
    broken = evolve(plan, lowered=evolve(plan.lowered, instructions=(*plan.lowered.instructions[:-1], false)))
    with pytest.raises(DataFlowError, match="is not where it must be"):
        check_data_flow(broken)


def test_the_judge_knows_that_parameters_are_there_before_a_run_is_fed() -> None:
    """An input that nobody reads, laid over a parameter, is written there when the run begins."""
    graph = Graph("fed")
    weight = graph.parameter(np.ones(16, np.float32), "w")
    graph.input("u", (16,))
    graph.output(ops.add(graph.input("x", (16,)), weight), "y")
    plan = plan_graph(graph, Options())
    ids = {v.name: v.id for v in plan.lowered.values}
    broken = _moved(plan, ids["u"], plan.places[ids["w"]].layout.offset)
    with pytest.raises(DataFlowError, match="'w', but byte 0 of its place holds 'u'"):
        check_data_flow(broken)
