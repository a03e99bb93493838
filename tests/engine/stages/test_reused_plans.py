"""Stages are planned ahead for lengths that grow by one step: the same bits, and errors where they are asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import ops
from engine import Executable, Graph
from engine.graph.bindings import Bindings
from engine.stages.reuse import PlanReuse, ReusedStage
from engine.stages.reused_plans import MOST_AHEAD, Growth
from engine.text.errors import FeedError
from ops.tensor.spec import Array
from tests.helpers.graphs.staged_executors import in_segments
from tests.helpers.graphs.unplanned_run import assert_same

STEPS = st.integers(-3, 3)


@given(st.integers(0, 20), STEPS, STEPS, st.integers(1, 12))
def test_lengths_are_expected_where_they_grew_by_one_step_twice_or_more(
    first: int, before: int, step: int, turns: int
) -> None:
    growth, length = Growth(), first
    growth.note({"n": length, "m": 7})
    growth.note({"n": (length := length + before), "m": 7})
    for _ in range(turns):
        growth.note({"n": (length := length + step), "m": 7})
    equal = turns + (before == step)
    wanted = min(equal, MOST_AHEAD) if step and equal > 1 else 0
    assert list(growth.following()) == [{"n": length + step * (i + 1), "m": 7} for i in range(wanted)]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all stages that are planned like another one, in their order."""
    lengths, stage = list[int](), PlanReuse.stage

    def noted(model: PlanReuse, bindings: Bindings) -> ReusedStage:
        lengths.append(bindings.lengths["n"])
        return stage(model, bindings)

    monkeypatch.setattr(PlanReuse, "stage", noted)
    return lengths


def network() -> Graph:
    graph = Graph("growing")
    x = graph.input("x", ("n", 8))
    y = ops.exp(ops.matmul(x, np.full((8, 8), 0.25, np.float32)))
    graph.output(ops.softmax(ops.matmul(y, ops.transpose(y, (1, 0))), axis=-1), "y")
    return graph


def fed(length: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(length).standard_normal((length, 8)).astype(np.float32)}


def run(exe: Executable, *lengths: int) -> None:
    """Runs these lengths one after the other, and checks the bits."""
    for length in lengths:
        alone = engine.compile(engine.bind(network(), {"n": length}), optimise=0)
        assert_same(exe.run(fed(length)), alone.run(fed(length)))


def test_lengths_that_grow_are_planned_ahead_and_asked_for_once(planned: list[int]) -> None:
    exe = engine.compile(network(), optimise=0)
    run(exe, 5, 6, 7)
    assert planned == [6, 7, 8, 9]
    run(exe, 8, 9, 10)
    assert planned == [6, 7, 8, 9, *range(10, 11 + MOST_AHEAD)]
    run(exe, 11, 12)
    assert len(planned) == 5 + MOST_AHEAD
    plan, numbered = exe.plan, engine.make_plan(engine.bind(network(), {"n": 12}), optimise=0)
    assert plan.arena_bytes == numbered.arena_bytes


def test_lengths_that_are_not_expected_drop_what_was_planned_ahead(planned: list[int]) -> None:
    exe = engine.compile(network(), optimise=0)
    run(exe, 5, 6, 7, 30)
    assert planned == [6, 7, 8, 9, 30]
    run(exe, 8)
    assert planned == [6, 7, 8, 9, 30, 8]


def test_what_is_expected_out_of_a_range_fails_where_it_is_asked_for(planned: list[int]) -> None:
    exe = engine.compile(network(), optimise=0, length_ranges={"n": (4, 8)})
    run(exe, 5, 6, 7, 8)
    assert planned == [6, 7, 8]
    with pytest.raises(FeedError, match="n=9 is out of its range 4 to 8"):
        exe.run(fed(9))


def test_lengths_that_shrink_end_at_none(planned: list[int]) -> None:
    exe = engine.compile(network(), optimise=0)
    run(exe, 8, 5, 2)
    assert planned == [5, 2, -1]


def test_nothing_is_bound_ahead_to_memory_that_must_move_for_it(planned: list[int]) -> None:
    exe = in_segments(engine.compile(network(), optimise=0))
    run(exe, 90, 60, 74, 88)
    assert planned == [60, 74, 88, 102]
    run(exe, 102)
    assert planned[:5] == [60, 74, 88, 102, 102]
    run(exe, 116, 130, 50, 51, 52, 53, 54)


def test_networks_whose_data_decide_sizes_are_not_planned_ahead(planned: list[int]) -> None:
    graph = Graph("repeated")
    x, n = graph.input("x", ("n", 2)), graph.input("turns", (), np.int64)
    graph.output(ops.expand(ops.reduce_sum(x, axes=(0,), keepdims=True), (n, 2)), "y")
    exe = engine.compile(graph, optimise=0)
    for length in range(3, 9):
        array = np.ones((length, 2), np.float32)
        assert exe.run({"x": array, "turns": np.asarray(length)})["y"].tolist() == [[length, length]] * length
    assert sorted(set(planned)) == planned
