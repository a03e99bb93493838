"""Functions whose output sizes depend on data, on a graph that runs in stages, against numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.text.errors import GraphError
from ops.tensor.errors import ArityError, ShapeError
from ops.tensor.spec import Array

FEW = settings(max_examples=15, deadline=None)
ROWS, WIDTH = st.integers(0, 9), 4


def _run(graph: engine.Graph, outputs: dict[str, Any]) -> engine.Executable:
    for name, var in outputs.items():
        graph.output(var, name)
    return engine.compile(graph, optimise=0)


def _numbers(rows: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-2, 3, (rows, WIDTH)).astype(np.float32)


def _found() -> engine.Executable:
    graph = engine.Graph()
    x = graph.input("x", ("n", WIDTH))
    chosen = ops.greater(x[:, 0], 0.0)
    values, first, inverse, counts = ops.unique(x)
    slices, *_ = ops.unique(x, axis=1)
    outputs = {"at": ops.nonzero(x), "rows": ops.compress(x, chosen, axis=0), "elements": ops.compress(x, chosen)}
    outputs |= {"values": values, "first": first, "inverse": inverse, "counts": counts, "slices": slices}
    return _run(graph, outputs)


FOUND = _found()


@FEW
@given(ROWS, st.integers(0, 2**32))
def test_functions_of_data_decided_sizes_equal_numpy(rows: int, seed: int) -> None:
    x = _numbers(rows, seed)
    got = FOUND.run({"x": x})
    chosen = x[:, 0] > 0
    np.testing.assert_array_equal(got["at"], np.nonzero(x))
    np.testing.assert_array_equal(got["rows"], x[chosen])
    np.testing.assert_array_equal(got["elements"], np.compress(chosen, x))
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for name, want in zip(("values", "first", "inverse", "counts"), wanted, strict=True):
        np.testing.assert_array_equal(got[name], want.reshape(-1))
    if rows:
        np.testing.assert_array_equal(got["slices"], np.unique(x, axis=1))


def _given() -> engine.Executable:
    graph = engine.Graph()
    x = graph.input("x", ("n", WIDTH))
    k, cut, times, rows, wide, depth, end = (graph.input(name, (), "int64") for name in "kctrwde")
    best, at = ops.top_k(x, k, axis=1)
    outputs = {"best": best, "at": at, "cut": ops.slice(x, [0], [cut], [0]), "tiled": ops.tile(x, [times, 1])}
    outputs |= {"rows": ops.reshape(x, (rows, -1)), "both": ops.reshape(x, (2, wide, -1))}
    outputs |= {"hot": ops.one_hot(ops.arange(0, depth), np.asarray([0, 1], np.float32), depth)}
    outputs |= {"range": ops.arange(1, end, 2), "grown": ops.expand(ops.unsqueeze(x, [0]), (times, 1, 1))}
    return _run(graph, outputs)


GIVEN = _given()


@FEW
@given(st.integers(1, 6), st.sampled_from([1, 2, 4]), st.integers(0, 4), st.integers(0, 2**32))
def test_lengths_may_be_vars(rows: int, part: int, few: int, seed: int) -> None:
    x = _numbers(rows, seed)
    numbers = {"k": few, "c": few, "t": few, "r": part, "w": 2, "d": few, "e": few}
    got = GIVEN.run({"x": x, **{name: np.asarray(n) for name, n in numbers.items()}})
    np.testing.assert_array_equal(got["best"], -np.sort(-x, axis=1)[:, :few])
    np.testing.assert_array_equal(got["cut"], x[:few])
    np.testing.assert_array_equal(got["tiled"], np.tile(x, (few, 1)))
    np.testing.assert_array_equal(got["rows"], x.reshape(part, -1))
    np.testing.assert_array_equal(got["both"], x.reshape(2, 2, -1))
    np.testing.assert_array_equal(got["hot"], np.eye(few))
    np.testing.assert_array_equal(got["range"], np.arange(1, few, 2))
    np.testing.assert_array_equal(got["grown"], np.broadcast_to(x, (few, *x.shape)))


def test_non_max_suppression_function_leaves_out_overlapping_boxes() -> None:
    graph = engine.Graph()
    boxes, scores = graph.input("boxes", (1, "n", 4)), graph.input("scores", (1, 2, "n"))
    most = graph.input("most", (1,), "int64")
    outputs = {"y": ops.non_max_suppression(boxes, scores, 10, 0.5, 0.25)}
    outputs |= {"few": ops.non_max_suppression(boxes, scores, most, 0.5)}
    exe = _run(graph, outputs)
    one, near, far = [0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6]
    marks = np.asarray([[[0.5, 0.9, 0.3], [0.1, 0.2, 0.8]]], np.float32)
    got = exe.run({"boxes": np.asarray([[one, near, far]], np.float32), "scores": marks, "most": np.asarray([1])})
    assert got["y"].tolist() == [[0, 0, 1], [0, 0, 2], [0, 1, 2]]
    assert got["few"].tolist() == [[0, 0, 1], [0, 1, 2]]
    none = exe.run({"boxes": np.zeros((1, 0, 4), "f4"), "scores": np.zeros((1, 2, 0), "f4"), "most": np.asarray([1])})
    assert none["y"].shape == (0, 3)


def test_functions_of_data_decided_sizes_refuse_nonsense() -> None:
    graph = engine.Graph()
    x = graph.input("x", (2, 3))
    with pytest.raises(ArityError, match="must be a var"):
        ops.arange(0, 5)
    with pytest.raises(ShapeError, match="one integer is wanted"):
        ops.reshape(x, (x, -1))
    with pytest.raises(GraphError, match="only integers can be lengths"):
        ops.tile(x, (graph.input("k", ()), 1))
    with pytest.raises(ShapeError, match="a condition has one dimension"):
        ops.compress(x, ops.greater(x, 0.0))
