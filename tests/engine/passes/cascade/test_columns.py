"""Stripes of columns: of images that are wider than high."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.passes.cascade.rows import part_of
from engine.planning.placed import Cascaded
from engine.text.errors import BudgetError
from ops.common.tiling import COLUMNS, ROWS
from tests.helpers.traces.exported_files import exported

_OPTIONS: dict[str, Any] = {"cascade": True, "nodes": 100}


def _network(*, wide: bool) -> Graph:
    """Returns a network on a wide and low image, or the same one on its side."""
    rng = np.random.default_rng(4)
    graph = Graph("wide")
    x: Var = graph.input("x", _turned((1, 3, 200, 12), wide=wide))
    for channels in (16, 24, 8):
        w = rng.standard_normal((channels, x.shape[1], 5, 3), np.float32)
        pads = (1, 2, 1, 2) if wide else (2, 1, 2, 1)
        x = ops.relu(ops.conv2d(x, w.swapaxes(2, 3).copy() if wide else w, pads=pads))
        x = ops.max_pool(x, _turned((2, 1), wide=wide), strides=_turned((2, 1), wide=wide))
    graph.output(x, "y")
    return graph


def _turned(shape: tuple[int, ...], *, wide: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if wide else shape


def _cascades(graph: Graph) -> tuple[int, Cascaded]:
    plan = engine.make_plan(graph, **_OPTIONS)
    (done,) = plan.optimisation[0].cascades
    assert done.least_bytes <= plan.arena_bytes < 0.5 * done.plain_bytes
    return plan.arena_bytes, done


def test_a_wide_image_is_cut_into_columns_and_needs_hardly_more_bytes_than_on_its_side() -> None:
    (wide, columns), (high, rows) = (_cascades(_network(wide=each)) for each in (True, False))
    assert rows.columns == 0 and {each.axis for each in rows.cascades} == {ROWS}
    assert columns.columns == len(columns.cascades) and {each.axis for each in columns.cascades} == {COLUMNS}
    assert "stripes of columns" in columns.text and "columns" not in rows.text
    assert wide < 1.25 * high


@pytest.mark.parametrize(
    "options",
    [{"mode": "dynamic"}, pytest.param({"debug": "poison", "threads": 2}, marks=pytest.mark.slow)],
    ids=str,
)
def test_columns_compute_every_bit_of_whole_images(options: dict[str, Any]) -> None:
    graph = _network(wide=True)
    feeds = {"x": np.random.default_rng(1).standard_normal(graph.inputs["x"].shape, np.float32)}
    plain, cut = engine.compile(graph, nodes=100), engine.compile(graph, **_OPTIONS, **options)
    assert cut.plan.optimisation[0].cascades[0].columns
    np.testing.assert_array_equal(cut.run(feeds)["y"], plain.run(feeds)["y"])


def test_traces_say_which_columns_a_stripe_computes() -> None:
    trace = engine.make_plan(_network(wide=True), **_OPTIONS).trace()
    assert all(run.is_columns for run in trace.details().stripes)
    shown = exported("chrome", trace)
    assert b'"first_column"' in shown and b'"first_row"' not in shown


@pytest.mark.slow
def test_a_stream_cuts_its_stripes_of_rows_into_columns() -> None:
    graph = _network(wide=True)
    image = np.random.default_rng(1).standard_normal(graph.inputs["x"].shape, np.float32)
    whole, cut = (engine.stream(graph, rows=4, nodes=100, cascade=percent) for percent in (0, 100))
    assert cut.arena_bytes < 0.75 * whole.arena_bytes
    assert any(done.columns for plan in cut.plans for done in plan.optimisation[0].cascades)
    np.testing.assert_array_equal(cut.run({"x": image})["y"], whole.run({"x": image})["y"])


@pytest.mark.slow
def test_a_budget_below_stripes_of_one_row_leads_to_tiles_by_itself() -> None:
    graph = _network(wide=True)
    image = np.random.default_rng(1).standard_normal(graph.inputs["x"].shape, np.float32)
    one_row = engine.stream(graph, rows=1, nodes=100)
    stream = engine.stream(graph, budget=one_row.arena_bytes * 2 // 3, nodes=100)
    assert stream.arena_bytes <= one_row.arena_bytes * 2 // 3
    np.testing.assert_array_equal(stream.run({"x": image})["y"], one_row.run({"x": image})["y"])
    with pytest.raises(BudgetError, match="even stripes of 1 row"):
        engine.stream(graph, budget=one_row.arena_bytes * 2 // 3, nodes=100, backend="numpy")


def test_a_network_of_one_axis_is_cut_along_it() -> None:
    rng = np.random.default_rng(0)
    graph = Graph("sound")
    x: Var = graph.input("x", (1, 1, 4000))
    for channels, stride in ((16, 1), (16, 2), (4, 2)):
        w = rng.standard_normal((channels, x.shape[1], 9)).astype(np.float32)
        x = ops.relu(ops.conv1d(x, w, strides=(stride,), pads=(4, 4)))
    graph.output(x, "y")
    _, done = _cascades(graph)
    assert {each.axis for each in done.cascades} == {ROWS}
    feeds = {"x": rng.standard_normal((1, 1, 4000)).astype(np.float32)}
    plain, cut = engine.compile(graph, nodes=100), engine.compile(graph, **_OPTIONS)
    np.testing.assert_array_equal(cut.run(feeds)["y"], plain.run(feeds)["y"])


def _sound() -> Graph:
    """Returns a network on a sound as an image of one row."""
    rng = np.random.default_rng(0)
    graph = Graph("one row")
    x: Var = graph.input("x", (1, 1, 1, 4000))
    for channels in (16, 16, 4):
        w = rng.standard_normal((channels, x.shape[1], 1, 9), np.float32)
        x = ops.relu(ops.conv2d(x, w, pads=(0, 4, 0, 4)))
    graph.output(x, "y")
    return graph


def test_images_of_one_row_are_cut_into_columns() -> None:
    graph = _sound()
    _, done = _cascades(graph)
    assert done.columns == len(done.cascades)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 1, 1, 4000), np.float32)}
    plain, cut = engine.compile(graph, nodes=100), engine.compile(graph, **_OPTIONS)
    np.testing.assert_array_equal(cut.run(feeds)["y"], plain.run(feeds)["y"])


@pytest.mark.parametrize(
    "build",
    [
        lambda x: ops.softmax(x, axis=2),
        lambda x: ops.concat([x, x], axis=2),
        lambda x: ops.reshape(x, (1, 3, 2, 4, 2, 3)),  # in front of a space to depth
        lambda x: ops.quantize_linear(x, np.ones(8, np.float32), np.zeros(8, np.uint8), axis=2),
        lambda x: ops.resize(x, (1, 6, 12, 3), mode="linear"),
        lambda x: ops.pad(x, (1, 1), "reflect", axes=(2,)),
        lambda x: ops.relu(ops.reshape(x, (1, 6, 24))),  # its last axis has channels
    ],
)
def test_operators_that_mix_columns_are_not_cut_into_them(build: Callable[[Var], Any]) -> None:
    graph = Graph("mixed")
    build(graph.input("x", (1, 6, 8, 3)))
    assert part_of(graph.operators[-1], 0, 2, COLUMNS) is None
