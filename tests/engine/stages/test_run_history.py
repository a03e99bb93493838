"""Runs of many stages: what is kept of them from run to run, and what is told of one that did not end."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Executable, Graph
from engine.text.errors import BudgetError, EngineError, FeedError, KernelError
from ops.tensor.spec import Array
from tests.helpers.graphs.staged_executors import in_segments, staged


def counting(**options: Any) -> Executable:
    """Appends the next number to "x" until it has "most": one stage each time."""
    graph = Graph("counting")
    x, most = graph.input("x", ("n",), "int64"), graph.input("most", (), "int64")
    one = graph.constant(np.ones(1, np.int64))
    counted = engine.while_loop(
        lambda v: ops.less(ops.reduce_sum(ops.expand(one, (v.shape[0],)), keepdims=False), most),
        lambda v: ops.concat([v, v[-1:] + 1]),
        x,
    )
    graph.output(counted, "y")
    return engine.compile(graph, **options)


def count(exe: Executable, turns: int) -> None:
    y = exe.run({"x": np.zeros(1, np.int64), "most": np.asarray(turns + 1)})["y"]
    assert y.tolist() == list(range(turns + 1))


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 12), min_size=1, max_size=5))
def test_a_run_that_is_repeated_finds_as_many_stages_as_are_kept(size: int, turns: list[int]) -> None:
    exe = counting(plan_cache_size=size)
    for number in turns:
        count(exe, number)
        before = staged(exe).cache.statistics
        count(exe, number)
        after, asked = staged(exe).cache.statistics, len(exe.stages)
        assert after.hits - before.hits == min(size, asked)
        assert after.misses - before.misses == max(0, asked - size)
        assert after.plans <= size
        assert len(staged(exe)._runners) <= size + 1


def test_a_longer_run_goes_on_where_a_shorter_one_ended() -> None:
    exe = counting()
    count(exe, 5)
    misses = staged(exe).cache.misses
    count(exe, 8)
    assert staged(exe).cache.hits == 5 + 1  # not the stage in which the shorter one ended
    assert staged(exe).cache.misses == misses + 3 + 1


def test_runners_go_when_the_arena_moves() -> None:
    exe = in_segments(counting())
    for turns in (2, 12):
        count(exe, turns)
    plans, runners = staged(exe).cache.statistics.plans, len(staged(exe)._runners)
    assert runners > 12
    staged(exe).memory.start(1 << 20)
    count(exe, 2)
    assert len(staged(exe)._runners) == len(exe.stages) < runners
    assert staged(exe).cache.statistics.plans == plans


def test_executors_that_share_plans_have_arenas_of_their_own() -> None:
    one = in_segments(counting())
    other = in_segments(one)
    for turns in (3, 5, 3):
        count(one, turns)
        misses = staged(one).cache.misses
        count(other, turns)
        assert staged(other).cache.misses == misses
    assert staged(one).memory is not staged(other).memory


def halves() -> Executable:
    """Returns a graph of two stages: "x" [n] in half as many rows and half as many columns as "shape" has."""
    graph = Graph("halves")
    x, shape = graph.input("x", ("n",)), graph.input("shape", (2,), "int64")
    half: Any = ops.div(shape, np.asarray(2))
    lengths: Any = [half[0], half[1]]
    graph.output(ops.exp(ops.reshape(x, lengths)), "y")
    return engine.compile(graph)


RIGHT = {"x": np.ones(6, np.float32), "shape": np.array([4, 6])}


def check_not_told(exe: Executable) -> None:
    for tell in (lambda: exe.plan, exe.report, exe.trace, exe.stage_report):
        with pytest.raises(EngineError, match=f"of '{exe.graph.name}': the last run did not end$"):
            tell()


def test_a_run_that_fails_between_two_stages_is_told_of_no_more() -> None:
    exe = halves()
    for _ in range(2):
        exe.run(RIGHT)
        assert len(exe.stages) == 2 and exe.stage_report().stages and exe.trace()
        with pytest.raises(KernelError, match="stage 2 cannot run with"):
            exe.run(RIGHT | {"shape": np.array([8, 8])})
        assert [s.number for s in exe.stages] == [1]
        check_not_told(exe)


@pytest.mark.parametrize("runs_before", [False, True])
def test_a_run_that_fails_before_its_first_stage_is_told_of_no_more(runs_before: bool) -> None:
    graph = Graph("pairs")
    graph.output(ops.reshape(graph.input("x", ("n", 3)), (-1, 6)) * 2.0, "y")
    exe = engine.compile(graph)
    if runs_before:
        exe.run({"x": np.ones((4, 3), np.float32)})
    with pytest.raises(FeedError, match="n=3 do not fit"):
        exe.run({"x": np.ones((3, 3), np.float32)})
    assert exe.stages == ()
    check_not_told(exe)
    exe.run({"x": np.ones((2, 3), np.float32)})
    assert exe.plan.arena_bytes and len(exe.stage_report().stages) == len(exe.stages) == 1


def test_a_run_for_which_there_is_no_room_did_not_end() -> None:
    exe = counting(budget=1024)
    count(exe, 1)
    with pytest.raises(BudgetError):
        count(exe, 200)
    assert exe.stages
    check_not_told(exe)
    count(exe, 1)
    assert len(exe.stages) == len(exe.stage_report().stages)


def test_feeds_that_are_no_run_leave_what_is_told() -> None:
    exe = halves()
    exe.run(RIGHT)
    trace = exe.trace()
    wrong: Mapping[str, Array] = {"x": np.ones(6, np.float32)}
    with pytest.raises(FeedError):
        exe.run(wrong)
    assert tuple(exe.trace()) == tuple(trace)


def test_a_graph_of_known_sizes_has_no_story() -> None:
    graph = Graph("known")
    graph.output(ops.exp(graph.input("x", (3,))), "y")
    with pytest.raises(EngineError, match="no stage report of 'known': all its sizes are known"):
        engine.compile(graph).stage_report()
