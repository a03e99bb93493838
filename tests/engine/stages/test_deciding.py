"""Which elements decide: plans are made for these, and serve whatever stands elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Executable, Graph, Var
from engine.graph.symbols import Derived, derive, of_dims
from engine.stages.deciding import deciding_elements, deciding_key
from engine.text.errors import FeedError
from ops.registry import find
from ops.tensor.spec import Array

COUNT = 4
WAYS: dict[str, Callable[[int], int]] = {
    "length": lambda n: n,
    "constant": lambda n: n + 1,
    "sum": lambda _: 2,
    "ratio": lambda _: 2,
    "inside": lambda n: 2 * n + 1,
}
"""What an output adds up to that depends on an element n."""


def add(graph: Graph, numbers: Var, index: int, way: str) -> None:
    """Adds an output that depends on one element, in some way."""
    dim: Any = graph.data_dim(numbers, index)
    one = graph.constant(np.ones(1, np.int64))
    if way == "length":
        used = ops.reduce_sum(ops.expand(one, (dim,)), (0,))
    elif way == "constant":
        used = graph.constant(dim) + one
    elif way == "sum":
        used = ops.expand(one, (dim + 1,))[:1] * 2
    elif way == "ratio":
        used = ops.reshape(ops.expand(one, (2 * dim,)), (2, dim))[:, :1]
    else:
        used = engine.fori_loop(2, lambda _, total: total + graph.constant(dim), one)
    graph.output(used, f"{way}{index}")


def network(used: dict[int, str], is_fed: bool) -> Executable:
    """Returns a graph of "k" [COUNT] with a use of some elements, of k itself or of what is computed of it."""
    graph = Graph("picks")
    k = graph.input("k", (COUNT,), "int64")
    numbers = k if is_fed else k + graph.constant(np.ones(COUNT, np.int64))
    for index, way in used.items():
        add(graph, numbers, index, way)
    return engine.compile(graph)


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(st.integers(0, COUNT - 1), st.sampled_from(sorted(WAYS)), min_size=1, max_size=2),
    st.booleans(),
    st.lists(st.tuples(*[st.integers(2, 4)] * COUNT), min_size=1, max_size=6),
)
def test_plans_are_made_for_the_elements_that_are_read(
    used: dict[int, str], is_fed: bool, fed: list[tuple[int, ...]]
) -> None:
    exe = network(used, is_fed)
    outputs = [exe.run({"k": np.array(numbers)}) for numbers in fed]
    distinct = {tuple(numbers[i] for i in sorted(used)) for numbers in fed}
    assert exe.stage_report().cache.misses == len(distinct) + (not is_fed)
    for numbers, ran in zip(fed, outputs, strict=True):
        for i, way in used.items():
            assert ran[f"{way}{i}"].sum() == WAYS[way](numbers[i] + (not is_fed))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.lists(st.integers(-6, 5), max_size=4), st.data())
def test_deciding_keys_are_alike_where_their_elements_are(
    numbers: list[int], indices: list[int], data: st.DataObject
) -> None:
    other = data.draw(st.lists(st.integers(0, 3), min_size=len(numbers), max_size=len(numbers)))
    inside = [i for i in indices if -len(numbers) <= i < len(numbers)]
    one, two = ({"k": np.array(n)} for n in (numbers, other))
    alike = deciding_key(one, {"k": tuple(indices)}) == deciding_key(two, {"k": tuple(indices)})
    assert alike == all(numbers[i] == other[i] for i in inside)
    assert (deciding_key(one, {}) == deciding_key(two, {})) == (numbers == other)


def test_only_the_element_of_two_that_is_read_decides() -> None:
    graph = Graph("first")
    k = graph.input("k", (2,), "int64")
    n: Any = graph.data_dim(k, 0)
    graph.output(ops.expand(graph.constant(np.ones(1, np.float32)), (n,)) * ops.cast(k[1:], "float32"), "y")
    exe = engine.compile(graph)
    for i in range(5):
        assert exe.run({"k": np.array([3, i])})["y"].tolist() == [i] * 3
    cache = exe.stage_report().cache
    assert (cache.misses, cache.hits) == (1, 4)
    assert dict(deciding_elements(graph)) == {"k": (0,)}


def test_guards_read_deciding_elements() -> None:
    graph = Graph("guarded")
    k = graph.input("k", (3,), "int64")
    low: Any = graph.data_dim(k, 2)
    graph.output(ops.exp(ops.cast(k, "float32")) if low > 1 else k, "y")
    assert dict(deciding_elements(graph)) == {"k": (2,)}
    exe = engine.compile(graph)
    exe.run({"k": np.array([0, 0, 5])})
    with pytest.raises(FeedError, match=r"k\[2\] must be greater than 1, but k\[2\] is 1"):
        exe.run({"k": np.array([0, 0, 1])})


@pytest.mark.parametrize("are_lengths", [False, True])
def test_readers_of_derived_elements_read_the_deciding_elements(are_lengths: bool) -> None:
    graph = Graph("derived")
    k = graph.input("k", (3,), "int64")
    pair = of_dims([graph.data_dim(k, i) for i in (0, 2)], (2,), np.dtype(np.int64), graph.samples)
    assert isinstance(pair, Derived)
    (absolute,) = derive(find("abs"), (pair,), {}, graph.samples)
    if are_lengths:
        lengths: Any = absolute.elements()
        graph.output(ops.reduce_sum(ops.expand(graph.constant(np.ones((1, 1), np.int64)), lengths), (0, 1)), "y")
    else:
        graph.output(graph.constant(absolute), "y")
        graph.samples.guards.clear()  # that there are two elements is watched: another reader
    assert dict(deciding_elements(graph)) == {"k": (0, 2)}
    exe = engine.compile(graph)
    for middle in range(3):
        made_of = exe.run({"k": np.array([4, middle, 5])})["y"]
        assert made_of.reshape(-1).tolist() == ([20] if are_lengths else [4, 5])
    assert exe.stage_report().cache.misses == 1


def test_deciding_elements_are_found_in_bodies() -> None:
    graph = Graph("growing")
    x, k = graph.input("x", ("n",), "int64"), graph.input("k", (2,), "int64")

    def turn(_: Var, v: Var) -> Var:
        numbers = 2 * k + 0 * v[:1]
        body = numbers.graph
        assert isinstance(body, Graph) and body is not graph
        number: Any = body.data_dim(numbers, 0)
        return ops.concat([v, ops.expand(v[:1] * 0 + 1, (number,))])

    graph.output(engine.fori_loop(2, turn, x), "y")
    exe = engine.compile(graph)
    for last in range(3):
        assert exe.run({"x": np.zeros(1, np.int64), "k": np.array([2, last])})["y"].tolist() == [0] + [1] * 8
    cache = exe.stage_report().cache
    assert cache.misses == len(exe.stages) and cache.hits == 2 * cache.misses


def shrinking(goes_on: bool) -> Executable:
    """Returns a loop that drops a row each turn: as often as "turns" says, or while enough are left."""
    graph = Graph("shrinking")
    x, turns = graph.input("x", ("n",)), graph.input("turns", (), "int64")
    if goes_on:
        least = ops.cast(turns, "float32")
        graph.output(engine.while_loop(lambda v: ops.less(least, ops.reshape(v[:1], ())), lambda v: v[1:], x), "y")
    else:
        graph.output(engine.fori_loop(turns, lambda _, v: v[1:], x), "y")
    return engine.compile(graph)


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_turn_count_of_a_loop_is_a_deciding_element(goes_on: bool) -> None:
    exe = shrinking(goes_on)
    x: Array = np.arange(9, 0, -1).astype(np.float32)
    for turns in (2, 4, 2, 1):
        wanted = x[x <= turns] if goes_on else x[turns:]
        np.testing.assert_array_equal(exe.run({"x": x, "turns": np.asarray(turns)})["y"], wanted)
