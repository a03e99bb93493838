"""Inputs in arrays of the caller that come in stripes of rows."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.api import Executable
from engine.executor.in_stripes import rows_of
from engine.graph.graph import Graph
from engine.system.arrays import view_array
from engine.text.errors import ArenaInUseError, FeedError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.engine.passes.cascade.random_chains import large_codes, large_images, random_encoder

ROWS = 2
"""The axis of rows of inputs with channels in front."""


def _image(graph: Graph, name: str = "x") -> Array:
    spec, rng = graph.inputs[name].spec, np.random.default_rng(len(name))
    return (rng.standard_normal(spec.shape) * 50 + 100).astype(spec.dtype)


def _stripes(image: Array, heights: list[int], axis: int = ROWS) -> Iterator[Array]:
    """Yields stripes of these heights, again and again."""
    first, number = 0, 0
    while first < image.shape[axis]:
        last = min(first + heights[number % len(heights)], image.shape[axis])
        yield image.take(range(first, last), axis)
        first, number = last, number + 1


def _outside(graph: Graph, percent: int = 60) -> Executable:
    return engine.compile(graph, nodes=100, cascade=percent, caller_buffers=tuple(graph.inputs))


@pytest.mark.parametrize("build", [large_images, large_codes])
def test_stripes_of_any_heights_give_the_bits_of_the_whole_image(build: object) -> None:
    graph = build()  # type: ignore[operator]
    exe, image = _outside(graph), _image(graph)
    wanted = engine.compile(graph).run({"x": image})["y"]
    for heights in ([1], [3, 1, 7], [1000]):
        np.testing.assert_array_equal(exe.run({"x": _stripes(image, heights)})["y"], wanted)
        np.testing.assert_array_equal(exe.run({"x": image})["y"], wanted)
    flipped = np.ascontiguousarray(image[:, :, ::-1])
    outside = engine.compile(graph).run({"x": flipped})["y"]
    np.testing.assert_array_equal(exe.run({"x": _stripes(flipped, [5])})["y"], outside)


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_a_random_network_reads_stripes_or_refuses_them(seed: int, heights: list[int]) -> None:
    graph = random_encoder(seed)
    exe, image = _outside(graph, 300), _image(graph)
    wanted = exe.run({"x": image})
    try:
        outputs = exe.run({"x": _stripes(image, heights)})
    except FeedError as error:
        assert "does not read it row after row" in str(error)
        return
    np.testing.assert_array_equal(outputs["y"], wanted["y"])


def test_two_images_and_an_output_of_the_caller() -> None:
    rng = np.random.default_rng(0)
    graph = Graph("two")
    both = graph.input("x", (1, 48, 40, 3)) * graph.input("image", (1, 48, 40, 3))
    y = ops.transpose(both, (0, 3, 1, 2))
    y = ops.relu(ops.conv2d(y, graph.constant(rng.standard_normal((24, 3, 3, 3), np.float32)), pads=(1, 1, 1, 1)))
    y = ops.conv2d(y, graph.constant(rng.standard_normal((2, 24, 2, 2), np.float32)), strides=(2, 2))
    graph.output(y, "y")
    images = {name: _image(graph, name) for name in graph.inputs}
    wanted = engine.compile(graph).run(images)["y"]
    exe = engine.compile(graph, nodes=100, cascade=60, caller_buffers=("x", "image", "y"))
    out = np.empty_like(wanted)
    for feeds in ({"x": _stripes(images["x"], [5], 1)}, {n: _stripes(a, [4, 3], 1) for n, a in images.items()}):
        out[...] = np.nan
        assert exe.run({**images, **feeds}, out={"y": out})["y"] is out
        np.testing.assert_array_equal(out, wanted)


def test_wrong_stripes_are_refused_and_the_next_run_is_right() -> None:
    graph = large_images()
    exe, image = _outside(graph), _image(graph)
    wanted = exe.run({"x": image})["y"]
    for stripes, message in (
        ([image[:, :, :5]], r"input 'x' ended after 5 of its 64 rows"),
        ([image, image[:, :, :1]], r"input 'x' has more than its 64 rows"),
        ([image[:, :2]], r"input 'x': the stripe from row 0 on has shape \(1, 2, 64, 48\), but \(1, 3, 64, 48\)"),
        ([image.astype(np.float64)], "element type float64, but float32"),
    ):
        with pytest.raises(FeedError, match=message):
            exe.run({"x": iter(stripes)})
        np.testing.assert_array_equal(exe.run({"x": _stripes(image, [9])})["y"], wanted)


def test_an_error_of_an_iterator_is_told_as_such_and_the_next_run_is_right() -> None:
    graph = large_images()
    exe, image = _outside(graph), _image(graph)

    def stripes(rows: int) -> Iterator[Array]:
        yield image[:, :, :rows]
        raise ZeroDivisionError("no light")

    for rows in (5, image.shape[ROWS]):
        with pytest.raises(FeedError, match="the stripes of input 'x' raise ZeroDivisionError: no light"):
            exe.run({"x": stripes(rows)})
    wanted = engine.compile(graph).run({"x": image})["y"]
    np.testing.assert_array_equal(exe.run({"x": image})["y"], wanted)


def test_stripes_that_come_from_a_run_of_the_same_network_are_refused() -> None:
    graph = large_images()
    exe, image = _outside(graph), _image(graph)

    def stripes() -> Iterator[Array]:
        exe.run({"x": image})
        yield image

    with pytest.raises(ArenaInUseError, match="the stripes of a run of 'large' come from another run of it"):
        exe.run({"x": stripes()})
    exe.run({"x": image})


def test_what_is_not_read_row_after_row_takes_no_stripes() -> None:
    graph = large_images()
    image = _image(graph)
    whole = engine.compile(graph, caller_buffers=("x",))
    with pytest.raises(FeedError, match=r"input 'x' comes in stripes, but '.*' does not read it row after row"):
        whole.run({"x": _stripes(image, [4])})
    for exe in (engine.compile(graph, nodes=100, cascade=60), _given_away(graph)):
        with pytest.raises(FeedError, match="input 'x': a generator is not an array of float32"):
            exe.run({"x": _stripes(image, [4])})


def _given_away(graph: Graph) -> Executable:
    return engine.compile(graph, nodes=100, cascade=60, caller_buffers=("x",), donated=("x",))


@given(st.data())
def test_a_view_of_rows_shows_the_same_in_an_array_of_these_rows(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4)))
    spec = TensorSpec(shape, np.dtype(np.int32))
    axis = data.draw(st.integers(0, len(shape) - 1))
    first = data.draw(st.integers(0, shape[axis] - 1))
    count = data.draw(st.integers(1, shape[axis] - first))
    perm = tuple(data.draw(st.permutations(range(len(shape)))))
    layout = Layout.dense(spec).slice(axis, first, count).transpose(perm)
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    rows = rows_of(spec, layout)
    if count == shape[axis]:
        assert rows is None
        return
    assert rows is not None and (rows.axis, rows.first, rows.last) == (axis, first, first + count)
    taken = np.ascontiguousarray(x.take(range(first, first + count), axis))
    np.testing.assert_array_equal(rows.view(taken, layout), view_array(x, layout, x.dtype))


@pytest.mark.parametrize(
    "layout",
    [
        Layout.dense(TensorSpec((4, 6), np.dtype(np.int32))).slice(0, 0, 2).slice(1, 0, 3),
        Layout.dense(TensorSpec((4, 6), np.dtype(np.int32))).slice(0, 0, 2, 2),
        Layout.dense(TensorSpec((4, 6), np.dtype(np.int32))).slice(0, 1, 1).expand((3, 6)),
    ],
)
def test_other_views_are_no_rows(layout: Layout) -> None:
    assert rows_of(TensorSpec((4, 6), np.dtype(np.int32)), layout) is None
