"""Arrays of callers: what is refused before anything runs, in every mode."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.cli.options.files import write_arrays
from engine.system.arrays import is_written_once, read_array
from engine.text.errors import FeedError, GraphError
from ops.tensor.errors import DtypeError
from ops.tensor.spec import BFLOAT16, NARROW, Array

MASKED = np.ma.array(np.ones(3, np.float32), mask=[False, True, False])


def _graph(shape: tuple[Any, ...] = (3,)) -> Graph:
    graph = Graph("abs")
    graph.output(ops.abs(graph.input("x", shape)), "y")
    return graph


@pytest.mark.parametrize("options", [{}, {"mode": "dynamic"}, {"caller_buffers": ("x",)}, {"debug": "poison"}])
def test_masked_arrays_are_refused_in_every_mode(options: Any) -> None:
    runnable = engine.compile(_graph(), **options)
    with pytest.raises(FeedError, match="input 'x': a masked array"):
        runnable(x=MASKED)
    with pytest.raises(FeedError, match="out='y' is a masked array"):
        runnable.run({"x": np.ones(3, np.float32)}, out={"y": MASKED.copy()})


def test_masked_arrays_are_refused_where_lengths_are_open() -> None:
    with pytest.raises(FeedError, match="input 'x': a masked array"):
        engine.compile(_graph(("n",)))(x=MASKED)


def test_masked_arrays_are_no_constants_and_no_parameters() -> None:
    graph = Graph()
    x = graph.input("x", (3,))
    for make in (graph.constant, graph.parameter):
        with pytest.raises(GraphError, match="masked array"):
            make(MASKED)
    for add in (ops.add, ops.gather):
        with pytest.raises(DtypeError, match="masked array"):
            add(x, MASKED)
    weight = graph.parameter(np.ones(3, np.float32), "w")
    graph.output(graph.assign(weight, weight + x), "y")
    with pytest.raises(FeedError, match="parameter 'w': a masked array"):
        engine.compile(graph).load({"w": MASKED})


class _Raises:
    """An array-like whose methods raise what they like."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, *_: object, **__: object) -> Array:
        raise self.error


@pytest.mark.parametrize("error", [KeyError("k"), ZeroDivisionError(), AssertionError("no")])
def test_what_an_array_like_raises_is_told_with_the_input(error: Exception) -> None:
    with pytest.raises(FeedError, match="input 'x': a _Raises is not an array of float32") as caught:
        engine.compile(_graph())(x=_Raises(error))
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("name", [0, "", None, "z"])
def test_names_that_no_input_has_are_refused(name: Any) -> None:
    with pytest.raises(FeedError, match="there is no input"):
        engine.compile(_graph()).run({"x": np.ones(3, np.float32), name: 1})


@pytest.mark.parametrize("options", [{}, {"mode": "dynamic"}, {"caller_buffers": ("y",)}])
def test_outputs_whose_elements_share_bytes_are_refused(options: Any) -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3, 4), (0, 4))
    runnable = engine.compile(_graph((3, 4)), **options)
    with pytest.raises(FeedError, match="out='y' has elements that share bytes"):
        runnable.run({"x": np.ones((3, 4), np.float32)}, out={"y": out})


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-8, 8)), max_size=4))
def test_arrays_that_are_written_once_have_bytes_for_each_element(axes: list[tuple[int, int]]) -> None:
    shape, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
    array = np.ndarray(shape, np.int8, np.zeros(200, np.int8), 100, strides)
    places = np.zeros(1, int)
    for length, stride in axes:
        places = (places[:, None] + np.arange(length) * stride).reshape(-1)
    if is_written_once(array):
        assert len(set(places.tolist())) == len(places)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.data())
def test_views_of_dense_arrays_are_written_once(shape: list[int], data: st.DataObject) -> None:
    view = np.zeros(shape).transpose(data.draw(st.permutations(range(len(shape)))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([-2, -1, 1, 2, 3]))) for _ in shape)
    assert is_written_once(view[steps])


@pytest.mark.parametrize("dtype", sorted(NARROW | {BFLOAT16}, key=str), ids=str)
def test_arrays_of_types_that_files_do_not_know_are_read_as_they_are_written(dtype: Any, tmp_path: Path) -> None:
    graph = Graph("moved")
    graph.output(ops.transpose(graph.input("x", (2, 3), dtype), (1, 0)), "y")
    executable = engine.compile(graph)
    x = np.arange(6).reshape(2, 3).astype(dtype)
    write_arrays(tmp_path / "in", {"x": x})
    write_arrays(tmp_path / "out.npz", executable(x=read_array(tmp_path / "in" / "x.npy")))
    with np.load(tmp_path / "out.npz") as written:
        assert written["y"].view(dtype).tobytes() == np.ascontiguousarray(x.T).tobytes()
    with pytest.raises(FeedError, match="element type"):
        executable(x=np.zeros((2, 3), "V4"))
