"""Cascades over batches: image after image, each in stripes of rows."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.costs import graph_cost
from engine.passes.cascade import choose
from engine.passes.cascade.choices import Choice
from engine.passes.cascade.rewrite import _Writer, with_cascades
from engine.passes.cascade.rows import part_of
from engine.planning.placed import Cascade
from engine.text.errors import GraphError, PassError
from ops.spatial.pad import PAD
from ops.spatial.resize import RESIZE
from tests.engine.passes.cascade.random_chains import large_images

_IMAGES = np.random.default_rng(0).standard_normal((2, 3, 64, 48), np.float32)


def test_a_batch_in_stripes_computes_every_bit_of_whole_images_in_all_modes() -> None:
    graph = large_images(2)
    plain = engine.compile(graph)
    wanted = plain.run({"x": _IMAGES})["y"]
    for options in ({"mode": "dynamic"}, {"debug": "poison", "threads": 2}):
        cut = engine.compile(graph, cascade=True, nodes=100, **options)
        (done,) = cut.plan.optimisation[0].cascades
        assert done.least_bytes <= cut.plan.arena_bytes < 0.5 * plain.plan.arena_bytes
        np.testing.assert_array_equal(cut.run({"x": _IMAGES})["y"], wanted)


def test_images_that_are_computed_one_by_one_need_no_row_twice() -> None:
    graph = engine.optimise(large_images(3))
    cut = with_cascades(graph, [Cascade(1, 5, 64)])
    (done,) = engine.make_plan(large_images(3), cascade=True, nodes=100).optimisation[0].cascades
    assert graph_cost(cut).flops == graph_cost(graph).flops
    assert len([operator for operator in cut.operators if operator.schema.name == "nhwc_conv"]) == 6
    assert sum(count for _, _, count in done.runs) % 3 == 0


def test_what_is_the_same_for_all_images_is_computed_once_and_in_front() -> None:
    graph = engine.Graph("shared")
    x, shift = graph.input("x", (2, 12, 8, 4)), graph.input("shift", (1, 12, 8, 4))
    scale, offset = graph.input("scale", (2, 1, 1, 4)), graph.input("offset", (12, 1, 1))
    graph.output(ops.relu((x * scale + shift * 2.0) * offset), "y")
    with pytest.raises(PassError, match="cannot be computed in stripes"):
        with_cascades(graph, [Cascade(0, 5, 4)])
    cut = with_cascades(graph, [Cascade(2, 5, 4)])
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal(v.shape, np.float32) for name, v in graph.inputs.items()}
    first, second = (engine.compile(each, optimise=0).run(feeds)["y"] for each in (cut, graph))
    np.testing.assert_array_equal(first, second)


def test_what_has_as_many_rows_as_there_are_images_is_the_same_for_all_of_them() -> None:
    rng = np.random.default_rng(2)
    graph = engine.Graph("positions")
    x = graph.input("x", (3, 4, 3, 120))
    for outputs in (16, 16, 4):
        w = rng.standard_normal((outputs, x.shape[1], 3, 3), np.float32)
        x = ops.conv2d(x, w, pads=(1, 1, 1, 1)) + rng.standard_normal((outputs, 3, 120), np.float32)
    graph.output(x, "y")
    feeds = {"x": rng.standard_normal((3, 4, 3, 120), np.float32)}
    plain, cut = engine.compile(graph, nodes=100), engine.compile(graph, cascade=100, nodes=100)
    assert cut.plan.optimisation[0].cascades[0].columns
    np.testing.assert_array_equal(cut.run(feeds)["y"], plain.run(feeds)["y"])


def test_an_image_in_the_place_of_another_is_caught_by_the_judge_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Cascade(1, 5, 32, (1, 2, 3))
    monkeypatch.setattr(choose, "search_cascades", lambda *_: [Choice(0, 0.0, 0.0, (alone,))])
    image = _Writer.image
    for last in (1, 0):
        monkeypatch.setattr(_Writer, "image", lambda writer, var, n, last=last: image(writer, var, min(n, last)))
        with nullcontext() if last else pytest.raises(PassError, match="'cascades' moves 'y'"):
            engine.compile(large_images(2), cascade=True, debug="poison", nodes=100)


def _padded(graph: Graph) -> Var:
    x = graph.input("x", (1, 6, 4, 3))
    return graph.add(PAD, [x], {"pads": (0, 0, 0, 0, 1, 0, 0, 0)})[0]


def _resized(graph: Graph) -> Var:
    x = graph.input("x", (1, 6, 4, 3))
    return graph.add(RESIZE, [x], {"sizes": (2, 6, 4, 3)})[0]


@pytest.mark.parametrize(
    "build",
    [
        lambda graph: ops.softmax(graph.input("x", (2, 6, 4, 3)), axis=0),
        lambda graph: ops.concat([graph.input("x", (1, 6, 4, 3)), graph.input("y", (1, 6, 4, 3))], axis=0),
        lambda graph: ops.transpose(graph.input("x", (2, 6, 2, 3)), (2, 1, 0, 3)),
        lambda graph: ops.reshape(graph.input("x", (4, 6, 4, 3)), (2, 12, 4, 3)),
        lambda graph: ops.quantize_linear(
            graph.input("x", (2, 6, 4, 3)), np.ones(2, np.float32), np.zeros(2, np.uint8), axis=0
        ),
        _padded,
        _resized,
    ],
)
def test_operators_that_mix_images_are_not_cut(build: Callable[[Graph], Any]) -> None:
    graph = engine.Graph("mixed")
    build(graph)
    assert part_of(graph.operators[-1], 0, 2) is None


def test_a_stream_takes_one_image() -> None:
    graph = engine.Graph("two")
    graph.output(ops.relu(graph.input("x", (2, 3, 8, 8))), "y")
    with pytest.raises(GraphError, match="'two' computes 2 images at once; a stream takes one"):
        engine.stream(graph, rows=2)
