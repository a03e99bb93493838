"""Plans for targets: their workspaces are those of the target, whatever this processor needs."""

import copy
import pickle

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import ExecutionPlan, Graph
from engine.lower.calls import Call
from engine.lower.target import NONE, Target, Workspace
from engine.saved.replay import embed
from engine.text.errors import OtherPlanError, TargetError
from tests.helpers.graphs.image_networks import image_nets
from tests.helpers.graphs.random_graphs import graphs


def kind(call: Call) -> str:
    return call.operators[0].schema.name if call.operators else "a copy that the planner added"


def wanted(call: Call, rows: tuple[Workspace, ...]) -> int:
    """Returns the bytes of the row that says most of a call, or 0, by looking at every row."""
    shapes, best, nbytes = [list(s.shape) for s in call.signature.inputs], -1, 0
    for row in rows:
        is_input = all(i < len(shapes) and shapes[i] == list(shape) for i, shape in enumerate(row.inputs))
        is_output = row.output is None or list(row.output) == list(call.signature.outputs[0].shape)
        said = len(row.inputs) + (0 if row.output is None else 1)
        if row.operator == kind(call) and is_input and is_output and said > best:
            best, nbytes = said, row.bytes
    return nbytes


def workspaces(plan: ExecutionPlan) -> list[int]:
    return [sum(plan.lowered.values[v].spec.nbytes for v in call.workspace) for call in plan.lowered.calls]


@settings(max_examples=20, deadline=None)
@given(graphs(), st.data())
def test_every_call_has_the_workspace_of_the_row_that_says_most_of_it(graph: Graph, data: st.DataObject) -> None:
    calls = engine.make_plan(graph, target=NONE, optimise=0, strategy="greedy_by_size").lowered.calls
    rows = []
    of_graph = [call for call in calls if call.operators]
    for call in data.draw(st.lists(st.sampled_from(of_graph), max_size=6)) if of_graph else []:
        inputs = tuple(s.shape for s in call.signature.inputs)
        output = data.draw(st.sampled_from([None, call.signature.outputs[0].shape]))
        rows.append(
            Workspace(kind(call), data.draw(st.integers(0, 300)), inputs[: data.draw(st.integers(0, 3))], output)
        )
    target = Target("t", tuple({(r.operator, r.shapes): r for r in rows}.values()))
    plan = engine.make_plan(graph, target=target, optimise=0, strategy="greedy_by_size")
    assert workspaces(plan) == [wanted(call, target.workspaces) for call in plan.lowered.calls]
    assert plan.report().target == "t"


@settings(max_examples=10, deadline=None)
@given(image_nets())
def test_a_plan_for_no_workspaces_is_that_of_this_processor_without_them(graph: Graph) -> None:
    plan = engine.make_plan(graph, target="none", optimise=0, nest=False, strategy="greedy_by_size")
    assert not any(workspaces(plan))
    assert plan.report().workspace_bytes == 0
    assert (
        plan.arena_bytes
        <= engine.make_plan(graph, prepack=False, optimise=0, nest=False, strategy="greedy_by_size").arena_bytes
    )


def graph_of(shape: tuple[int, ...] = (4, 6)) -> Graph:
    graph = Graph("g")
    graph.output(ops.softmax(ops.relu(graph.input("x", shape))), "y")
    return graph


def test_a_graph_planned_for_a_target_does_not_become_an_executable() -> None:
    with pytest.raises(TargetError, match="this plan is for target 'none', not for this processor"):
        engine.compile(graph_of(), target="none")
    with pytest.raises(TargetError):
        engine.compile(graph_of(), target=Target("m7"), mode="dynamic")


def test_a_plan_for_a_target_is_pickled_copied_and_followed_with_its_target_alone() -> None:
    target = Target("m7", (Workspace("softmax", 100),))
    plan = engine.make_plan(graph_of(), target=target)
    for again in (pickle.loads(pickle.dumps(plan)), copy.deepcopy(plan)):
        assert again.plan.offset.tolist() == plan.plan.offset.tolist() and again.options.target == target
    saved = embed(plan)
    assert engine.make_plan(graph_of(), target=target, embedded=saved).is_followed
    origin = engine.make_plan(graph_of(), embedded=saved).origin
    assert "is for target 'm7', not for this processor" in origin
    other = Target("m7", (Workspace("softmax", 101),))
    assert not engine.make_plan(graph_of(), target=other, embedded=saved).is_followed


def test_a_required_plan_for_a_target_is_refused_where_this_processor_is_to_run_it() -> None:
    saved = embed(engine.make_plan(graph_of(), target="none"))
    with pytest.raises(OtherPlanError, match="is for target 'none', not for this processor"):
        engine.compile(graph_of(), embedded=evolve(saved, required=True))


def test_control_flow_is_refused_for_a_target() -> None:
    graph = Graph("loop")
    x = graph.input("x", (4,))
    graph.output(engine.fori_loop(3, lambda _, v: ops.relu(v), x), "y")
    with pytest.raises(TargetError, match=r"is control flow \(loop\), which is not planned for a target"):
        engine.make_plan(graph, target="none", optimise=0)


def test_an_operator_that_nobody_knows_is_refused_with_the_likely_one() -> None:
    with pytest.raises(TargetError, match=r"target 't': operator 'softmx' is unknown; did you mean 'softmax'\?"):
        engine.make_plan(graph_of(), target=Target("t", (Workspace("softmx", 1),)))


def test_a_workspace_starts_at_the_alignment_that_is_asked_for_and_no_higher_one() -> None:
    graph = Graph("three")
    x = graph.input("x", (3,), np.int8)
    graph.output(ops.softmax(ops.cast(x, np.float32)), "y")
    plan = engine.make_plan(graph, target=Target("t", (Workspace("softmax", 7),)), alignment=1, optimise=0)
    workspace = next(call.workspace[0] for call in plan.lowered.calls if call.workspace)
    assert plan.problem.alignment[plan.chunk_of(workspace)] == 1
