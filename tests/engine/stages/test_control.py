"""Branches and loops whose shapes the run decides: turn by turn in stages, equal to numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Executable, Graph, Var
from engine.planning.options import Options
from engine.planning.planner import plan_graph
from engine.stages.partial_graph import whole_graph
from engine.text.errors import BudgetError
from ops.tensor.spec import Array
from tests.helpers.graphs.staged_executors import staged

MODES: Any = st.sampled_from([{}, {"mode": "dynamic"}, {"debug": "poison"}])


def rows(count: int, seed: int = 0) -> Array:
    """Returns small integers, so that sums are exact."""
    return np.random.default_rng(seed).integers(-4, 5, (count, 3)).astype(np.float32)


def known_bytes(exe: Executable) -> int:
    """Returns the arena of one plan of the whole run, in which all that was read had been known."""
    executor = staged(exe)
    whole = whole_graph(executor.template, exe.stages[0].before, "whole", executor.history)
    return plan_graph(whole, Options()).arena_bytes


def growing() -> Graph:
    """Returns a loop: as long as there are fewer rows than "most", the sum of all rows becomes one more."""
    graph = Graph("growing")
    x, most = graph.input("x", ("n", 3)), graph.input("most", (), "int64")

    def goes_on(h: Var) -> Var:
        is_short: Var = ops.less(h.graph.constant(h.shape[0]), most)
        return is_short

    def turn(h: Var) -> Var:
        return ops.concat([h, ops.reduce_sum(h, (0,), keepdims=True) + 1.0])

    graph.output(engine.while_loop(goes_on, turn, x), "y")
    return graph


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 9), MODES)
def test_a_staged_loop_whose_rows_grow_equals_numpy(n: int, most: int, mode: dict[str, Any]) -> None:
    exe, x = engine.compile(growing(), **mode), rows(n)
    wanted = x
    while len(wanted) < most:
        wanted = np.concatenate([wanted, wanted.sum(0, keepdims=True) + 1])
    np.testing.assert_array_equal(exe.run({"x": x, "most": np.asarray(most)})["y"], wanted)


def test_turns_are_stages_where_data_decide_whether_there_is_one_more() -> None:
    exe = engine.compile(growing())
    for most in (2, 5, 3):
        exe.run({"x": rows(2), "most": np.asarray(most)})
        assert len(exe.stages) == most  # a turn each, and the end
        assert exe.stage_report().known_bytes == known_bytes(exe)


def test_turns_that_are_counted_beforehand_need_no_cut() -> None:
    graph = Graph("counted")
    x = graph.input("x", ("n", 3))
    graph.output(engine.fori_loop(4, lambda _, h: ops.concat([h, x * 2.0]), x), "y")
    exe = engine.compile(graph)
    for n in (2, 0, 5):
        x_of = rows(n)
        wanted = np.concatenate([x_of, *[x_of * 2] * 4])
        np.testing.assert_array_equal(exe.run({"x": x_of})["y"], wanted)
        assert len(exe.stages) == 1


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 5), st.booleans(), st.booleans(), MODES)
def test_nested_staged_branches_of_unlike_shapes_equal_numpy(
    n: int, one: bool, other: bool, mode: dict[str, Any]
) -> None:
    graph = Graph("branches")
    x = graph.input("x", ("n", 3))
    c, d = (graph.input(name, (), "bool") for name in "cd")

    def inner() -> Var:
        chosen: Var = engine.cond(d, lambda: ops.concat([x, x, x]), lambda: x[:0])
        return chosen

    y = engine.cond(c, lambda: ops.concat([inner(), x]) * 2.0, lambda: ops.neg(x))
    graph.output(y + 1.0, "y")
    graph.output(ops.transpose(y), "turned")
    array = rows(n)
    part = np.concatenate([array] * 3) if other else array[:0]
    wanted = np.concatenate([part, array]) * 2 if one else -array
    outputs = engine.compile(graph, **mode).run({"x": array, "c": np.asarray(one), "d": np.asarray(other)})
    np.testing.assert_array_equal(outputs["y"], wanted + 1)
    np.testing.assert_array_equal(outputs["turned"], wanted.T)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3), st.integers(0, 3), MODES)
def test_staged_loops_inside_loops_equal_numpy(n: int, outer: int, inner: int, mode: dict[str, Any]) -> None:
    graph = Graph("nested")
    x, i, j = graph.input("x", ("n", 3)), graph.input("i", (), "int64"), graph.input("j", (), "int64")

    def turn(_: Var, h: Var) -> Var:
        grown: Var = engine.fori_loop(j, lambda k, g: ops.concat([g, g[:1] + ops.cast(k, "float32")]), ops.neg(h))
        return grown

    graph.output(engine.fori_loop(i, turn, x), "y")
    wanted = rows(n)
    for _ in range(outer):
        wanted = -wanted
        for k in range(inner):
            wanted = np.concatenate([wanted, wanted[:1] + np.float32(k)])
    feeds = {"x": rows(n), "i": np.asarray(outer), "j": np.asarray(inner)}
    np.testing.assert_array_equal(engine.compile(graph, **mode).run(feeds)["y"], wanted)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 6), st.integers(0, 5), MODES)
def test_staged_bodies_with_data_decided_sizes_equal_numpy(n: int, turns: int, mode: dict[str, Any]) -> None:
    """Each turn throws out the rows whose first element is not positive, and takes one from the others."""
    graph = Graph("sieve")
    x, k = graph.input("x", ("n", 3)), graph.input("k", (), "int64")

    def turn(_: Var, h: Var) -> Var:
        kept: Var = ops.compress(h, ops.less(0.0, h[:, 0]), axis=0)
        return kept - 1.0

    graph.output(engine.fori_loop(k, turn, x), "y")
    wanted = rows(n)
    for _ in range(turns):
        wanted = wanted[wanted[:, 0] > 0] - 1
    outputs = engine.compile(graph, **mode).run({"x": rows(n), "k": np.asarray(turns)})
    np.testing.assert_array_equal(outputs["y"], wanted)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(0, 6))
def test_rows_of_a_loop_that_carries_other_lengths(n: int, most: int) -> None:
    graph = Graph("rows")
    x, limit = graph.input("x", ("n", 3)), graph.input("limit", (), "int64")

    def turn(carried: tuple[Var, Var]) -> tuple[tuple[Var, Var], Var]:
        i, h = carried
        total = ops.reduce_sum(h, (0,), keepdims=False)
        return (i + 1, ops.concat([h, h[:1] * 2.0])), total

    zero = graph.constant(np.int64(0))
    (_, last), sums, count = engine.unfold(turn, lambda c: ops.less(c[0], limit), (zero, x), most=10)
    for name, var in (("last", last), ("sums", sums), ("count", count)):
        graph.output(var, name)
    h, wanted = rows(n), []
    for _ in range(most):
        wanted.append(h.sum(0))
        h = np.concatenate([h, h[:1] * 2])
    outputs = engine.compile(graph).run({"x": rows(n), "limit": np.asarray(most)})
    np.testing.assert_array_equal(outputs["last"], h)
    np.testing.assert_array_equal(outputs["sums"], np.array(wanted, np.float32).reshape(most, 3))
    assert outputs["count"] == most


def test_values_of_body_dimensions_alone_belong_to_the_body() -> None:
    graph = Graph("filled")
    x, one = graph.input("x", ("n", 3)), graph.constant(np.ones((1, 3), np.int64))

    def turn(_: Var, h: Var) -> Var:
        filled = ops.expand(one, (h.shape[0], 3))  # reads nothing of the body but its length
        return ops.concat([ops.cast(filled, "float32") + h, ops.cast(one * h.shape[0], "float32")])

    graph.output(engine.fori_loop(3, turn, x), "y")
    wanted = rows(2)
    for _ in range(3):
        wanted = np.concatenate([wanted + 1, np.full((1, 3), len(wanted), np.float32)])
    np.testing.assert_array_equal(engine.compile(graph).run({"x": rows(2)})["y"], wanted)


def test_a_branch_that_does_not_fit_is_refused_before_it_runs() -> None:
    graph = Graph("large")
    x, c = graph.input("x", ("n", 3)), graph.input("c", (), "bool")
    y = engine.cond(ops.logical_not(c), ops.exp, lambda v: ops.concat([ops.exp(v)] * 50), x)
    graph.output(ops.relu(y), "y")
    exe = engine.compile(graph, budget=4096)
    small = {"x": rows(9), "c": np.asarray(False)}
    before = exe.run(small)
    with pytest.raises(BudgetError, match=r"stage 2 of 'large', before .* runs: ") as error:
        exe.run(small | {"c": np.asarray(True)})
    assert error.value.available == 4096 < error.value.required
    np.testing.assert_array_equal(exe.run(small)["y"], before["y"])


@pytest.mark.parametrize("in_stages", [False, True])
def test_lengths_that_a_turn_carries_on_are_those_of_that_turn(in_stages: bool) -> None:
    """A length is used one turn later, as a number and as a view of an array that is made of it."""
    graph = Graph("lengths")
    x, k = graph.input("x", ("n", 3)), graph.input("k", (), "int64")

    def turn(i: Var, carried: tuple[Var, ...]) -> tuple[Var, ...]:
        h, length, twice, total = carried
        here = i.graph.constant(h.shape[0])
        pair = ops.slice(ops.reshape(ops.concat([ops.reshape(here, (1,))] * 2), (2,)), [1], [2], [0])
        grown: Var = ops.concat([h, x])
        if in_stages:
            grown = ops.compress(grown, ops.less(-100.0, grown[:, 0]), axis=0)
        return grown, here, pair, total + length + twice

    start = graph.constant(np.int64(0))
    init = (x, start, graph.constant(np.zeros(1, np.int64)), graph.constant(np.zeros(1, np.int64)))
    for name, var in zip(("h", "length", "pair", "total"), engine.fori_loop(k, turn, init), strict=True):
        graph.output(var, name)
    exe = engine.compile(graph)
    for n, turns in ((2, 0), (2, 1), (3, 4), (0, 3)):
        wanted, length, total = n, 0, 0
        for _ in range(turns):
            total += 2 * length
            length, wanted = wanted, wanted + n
        outputs = exe.run({"x": rows(n), "k": np.asarray(turns)})
        assert (
            outputs["h"].shape[0] == wanted
            and outputs["length"] == outputs["pair"] == length
            and outputs["total"] == total
        )


def test_a_turn_with_a_cut_in_it_waits_for_its_own_condition() -> None:
    """Not for that of the turn before, which is known under the same key."""
    graph = Graph("sifted")
    x, least = graph.input("x", ("n", 3)), graph.input("least", (), "int64")

    def goes_on(h: Var) -> Var:
        is_long: Var = ops.less(least, h.graph.constant(h.shape[0]))
        return is_long

    def turn(h: Var) -> Var:
        kept: Var = ops.compress(h[1:], ops.less(-9.0, h[1:, 0]), axis=0)
        return kept

    graph.output(engine.while_loop(goes_on, turn, x), "y")
    for least_fed in (0, 2, 5, 9):
        y = engine.compile(graph).run({"x": rows(6), "least": np.asarray(least_fed)})["y"]
        np.testing.assert_array_equal(y, rows(6)[max(6 - least_fed, 0) :])
