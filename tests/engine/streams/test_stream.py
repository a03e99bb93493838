"""Streams compute what whole images do, to the bit, from arrays and from stripes of any heights."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Stream
from engine.graph.var import Var
from engine.lower.costs import graph_cost
from engine.streams.kept import Kept
from engine.streams.stream import _held
from engine.streams.stripes import StripedGraph
from engine.text.errors import BudgetError, EngineError, FeedError, GraphError, OptionError
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.engine.passes.cascade.random_chains import random_chain

FEW_STEPS = 100
"""Steps of the search for addresses, which is not what is tested."""


def _conv(x: Var, outputs: int, size: int = 3, **options: Any) -> Var:
    shape = (outputs, x.shape[1], size, size)
    w = np.random.default_rng(outputs).standard_normal(shape, np.float32) / size / 2
    return ops.conv2d(x, x.graph.constant(w.astype(np.float32)), pads=(size // 2,) * 4, **options)


def _network(rows: int = 37, columns: int = 20) -> Graph:
    """Returns a network with a residual, and two outputs of half the rows, of which the network reads one."""
    graph = Graph("network")
    x = ops.relu(_conv(graph.input("x", (1, 3, rows, columns)), 16, strides=(2, 2)))
    x = ops.relu(x + _conv(ops.relu(_conv(x, 16)), 16))
    graph.output(ops.sigmoid(_conv(x, 4)), "mask")
    graph.output(x, "features")
    return graph


def _image(graph: Graph) -> Array:
    (var,) = graph.inputs.values()
    return np.random.default_rng(5).standard_normal(var.shape, np.float32)


def _pieces(image: Array, axis: int, height: int) -> Iterator[Array]:
    """Yields stripes of an image in one array, which each of them overwrites."""
    held = np.empty_like(image)
    for first in range(0, image.shape[axis], height):
        index = (*(slice(None) for _ in range(axis)), slice(first, first + height))
        piece = held[(*index[:axis], slice(0, image[index].shape[axis]))]
        np.copyto(piece, image[index])
        yield piece


def _joined(stream: Stream, name: str, feeds: dict[str, Any]) -> Array:
    return np.concatenate([outputs[name] for outputs in stream.stream(feeds)], stream.axes[name])


@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_stripes_are_those_of_the_whole_outputs(rows: int) -> None:
    graph = _network()
    image, whole = _image(graph), engine.compile(graph, nodes=FEW_STEPS)
    stream = engine.stream(graph, rows=rows, nodes=FEW_STEPS)
    wanted, outputs = whole.run({"x": image}), stream.run({"x": image})
    assert stream.axes == {"x": 2, "mask": 2, "features": 2}
    for name, array in wanted.items():
        np.testing.assert_array_equal(outputs[name], array)
        np.testing.assert_array_equal(_joined(stream, name, {"x": _pieces(image, 2, 5)}), array)
    assert [stripe.first for stripe in stream.stripes] == list(range(0, 19, stream.height))
    assert stream.rows_read["x"] >= 37


@pytest.mark.slow
@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([{}, {"cascade": 25}]),
)
def test_every_bit_is_that_of_the_whole_image(
    seed: int, upsampled: bool, rows: int, pieces: int, options: dict[str, Any]
) -> None:
    graph = random_chain(seed, upsampled=upsampled)
    image = _image(graph)
    try:
        stream = engine.stream(graph, rows=rows, nodes=FEW_STEPS, **options)
    except GraphError:  # some chains keep their channels in front, or have pads that count in a last window
        return
    wanted = engine.compile(graph, nodes=FEW_STEPS).run({"x": image})["y"]
    np.testing.assert_array_equal(stream.run({"x": image})["y"], wanted)
    np.testing.assert_array_equal(_joined(stream, "y", {"x": _pieces(image, stream.axes["x"], pieces)}), wanted)


def _assert_bits_are_those_of_the_whole_image(graph: Graph, rows: int) -> Stream:
    rng = np.random.default_rng(2)
    feeds = {name: rng.standard_normal(var.shape, np.float32) for name, var in graph.inputs.items()}
    stream = engine.stream(graph, rows=rows, nodes=FEW_STEPS)
    outputs = stream.run(feeds)
    for name, wanted in engine.compile(graph, nodes=FEW_STEPS).run(feeds).items():
        np.testing.assert_array_equal(outputs[name], wanted)
    return stream


def test_stripes_that_read_other_rows_of_constants_have_one_plan() -> None:
    graph, rows = Graph("positions"), np.arange(24, dtype=np.float32)
    graph.output(ops.relu(graph.input("x", (1, 24, 5, 8))) * rows.reshape(1, 24, 1, 1), "y")
    assert len(_assert_bits_are_those_of_the_whole_image(graph, rows=4).plans) == 1


@pytest.mark.parametrize("shape", [(24, 1), (24, 5), (8, 24, 1), (1, 8, 24, 5)])
def test_a_constant_between_convolutions_may_have_other_values_in_other_rows(shape: tuple[int, ...]) -> None:
    graph = Graph("positions")
    x = _conv(graph.input("x", (1, 8, 24, 5)), 8) + np.random.default_rng(1).standard_normal(shape, np.float32)
    graph.output(_conv(ops.relu(_conv(x, 8)), 8), "y")
    assert len(_assert_bits_are_those_of_the_whole_image(graph, rows=4).plans) <= 5


@pytest.mark.parametrize("rows", [1, 5])
def test_stripes_that_begin_inside_what_an_operator_writes_have_plans_of_their_own(rows: int) -> None:
    graph = Graph("upsampled")
    x = ops.relu(_conv(ops.relu(_conv(graph.input("x", (1, 4, 12, 5)), 8)), 8))
    graph.output(ops.depth_to_space(x, 2), "y")
    _assert_bits_are_those_of_the_whole_image(graph, rows)


@pytest.mark.parametrize("shape", [(1, 8, 1, 1), (1, 8, 1, 5), (1, 8, 24, 5)])
def test_inputs_may_be_moved_that_are_read_whole(shape: tuple[int, ...]) -> None:
    graph = Graph("scaled")
    x = _conv(graph.input("x", (1, 8, 24, 5)), 8) * graph.input("scale", shape)
    graph.output(_conv(ops.relu(_conv(x, 8)), 8), "y")
    stream = _assert_bits_are_those_of_the_whole_image(graph, rows=4)
    assert set(stream.rows_read) == ({"x", "scale"} if shape[2] > 1 else {"x"})
    if shape[2] == 1:
        with pytest.raises(
            FeedError, match="input 'scale' comes in stripes, but each stripe of outputs reads it whole"
        ):
            stream.run({"x": np.zeros((1, 8, 24, 5), np.float32), "scale": iter([])})


def test_a_budget_for_less_than_a_row_of_the_lowest_image_takes_lower_stripes() -> None:
    graph = Graph("pyramid")
    x = ops.relu(_conv(graph.input("x", (1, 4, 48, 6)), 8))
    low = ops.resize(_conv(ops.max_pool(x, (6, 6), strides=(6, 6)), 8, size=1), (1, 8, 48, 6))
    graph.output(_conv(ops.relu(_conv(_conv(x + low, 16), 16)), 4), "y")
    budget = engine.stream(graph, rows=6, nodes=FEW_STEPS).arena_bytes - 1
    stream = engine.stream(graph, budget=budget, nodes=FEW_STEPS)
    assert stream.height < 6 and stream.arena_bytes <= budget


def test_rows_are_kept_where_copies_cost_less_than_computing_them_again() -> None:
    graph = _network(96, 64)
    stream = _assert_bits_are_those_of_the_whole_image(graph, rows=4)
    held = {kept: spec.shape for kept, spec in stream.kept.items()}
    assert held and all(shape[1] <= 4 for shape in held.values()) and stream.share < 0.01
    assert stream.kept_bytes == sum(spec.nbytes for spec in stream.kept.values()) > 0
    assert f"rows of {len(held)} tensors are kept" in repr(stream)
    cheap = Graph("cheap")
    cheap.output(_conv(ops.relu(_conv(cheap.input("x", (1, 4, 24, 6)), 8, size=1)), 8), "y")
    assert not _assert_bits_are_those_of_the_whole_image(cheap, rows=4).kept


def _one_line_short(keeps: Callable[..., Kept], source: StripedGraph, row: int) -> Kept:
    kept = keeps(source, row)
    return evolve(kept, rows={v: (first + 1, last) for v, (first, last) in kept.rows.items() if last - first > 1})


def _done_too_early(keeps: Callable[..., Kept], source: StripedGraph, row: int) -> Kept:
    kept = keeps(source, row)
    rows = {v: (first, last + 1) for v, (first, last) in kept.rows.items()}
    return Kept({v: done + 1 for v, done in kept.done.items()}, rows)


@pytest.mark.parametrize("fault", [_one_line_short, _done_too_early])
def test_rows_that_are_kept_wrongly_show(fault: Callable[..., Kept], monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = StripedGraph.kept
    monkeypatch.setattr(StripedGraph, "kept", lambda source, row: fault(keeps, source, row))
    with pytest.raises((AssertionError, OpError, EngineError)):
        _assert_bits_are_those_of_the_whole_image(_network(96, 64), rows=4)


def test_rows_of_another_stripe_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(kept: dict[str, Array], needed: Any) -> dict[str, Array]:
        return {name: rows.copy() for name, rows in _held(kept, needed).items()}

    monkeypatch.setattr("engine.streams.stream._held", held)
    with pytest.raises(AssertionError):
        _assert_bits_are_those_of_the_whole_image(_network(96, 64), rows=4)


def test_a_stream_keeps_rows_where_a_tensor_is_read_again_by_a_later_stripe() -> None:
    """Stripes of one row of twice the height: every second one computes nothing of the tensors in front."""
    graph = Graph("doubled")
    x = ops.relu(_conv(ops.relu(_conv(graph.input("x", (1, 4, 12, 5)), 16)), 16))
    graph.output(_conv(ops.relu(_conv(ops.resize(x, (1, 16, 24, 10)), 16)), 4), "y")
    stream = _assert_bits_are_those_of_the_whole_image(graph, rows=1)
    assert stream.kept and stream.share < 0.02
    assert any(not stripe.reads for stripe in stream.stripes)


def test_iterators_of_one_stream_keep_rows_of_their_own() -> None:
    graph = _network()
    image, stream = _image(graph), engine.stream(graph, rows=4, nodes=FEW_STEPS)
    wanted = [stream.run({"x": sign * image}) for sign in (1, -1)]
    parts = list(zip(*(stream.stream({"x": sign * image}) for sign in (1, -1)), strict=True))
    for outputs, stripes in zip(wanted, zip(*parts, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate([each["mask"] for each in stripes], 2), outputs["mask"])


def _padded(rows: int = 24) -> Graph:
    """Returns a network whose first and last rows come from pads alone."""
    graph = Graph("padded")
    x = graph.input("x", (1, 4, rows, 5))
    w = np.random.default_rng(1).standard_normal((8, 4, 3, 3), np.float32)
    graph.output(_conv(ops.relu(ops.conv2d(x, graph.constant(w), pads=(6, 1, 5, 1))), 8), "y")
    return graph


def test_stripes_may_lie_in_pads() -> None:
    _assert_bits_are_those_of_the_whole_image(_padded(), rows=2)
    assert engine.stream(_padded(), budget="8 KiB", nodes=FEW_STEPS).height > 1


def test_readers_of_an_input_that_begin_at_other_rows_have_plans_of_their_own() -> None:
    graph = Graph("readers")
    x = graph.input("x", (1, 8, 12, 5))
    y = ops.relu(_conv(ops.relu(_conv(x, 8, size=5)), 8)) + ops.sigmoid(x)
    graph.output(_conv(ops.relu(y), 8), "y")
    _assert_bits_are_those_of_the_whole_image(graph, rows=3)


def test_a_budget_takes_the_highest_stripes_whose_plans_keep_within_it() -> None:
    graph = _network(96, 64)
    whole = engine.make_plan(graph, nodes=FEW_STEPS)
    budget = whole.arena_bytes // 3
    stream = engine.stream(graph, budget=budget, nodes=FEW_STEPS)
    assert stream.whole_bytes == whole.arena_bytes
    assert max(plan.arena_bytes for plan in stream.plans) + stream.kept_bytes == stream.arena_bytes <= budget
    assert 1 < stream.height < 48 and 0 <= stream.share < 0.01
    work = sum(graph_cost(stream.plans[stripe.kind].graph).flops for stripe in stream.stripes)
    assert stream.share == pytest.approx(work / graph_cost(whole.graph).flops - 1)
    assert engine.stream(graph, rows=2 * stream.height, nodes=FEW_STEPS).arena_bytes > budget
    assert engine.stream(graph, budget=whole.arena_bytes, nodes=FEW_STEPS).height == 48
    assert engine.stream(graph, budget=stream.arena_bytes - 1, nodes=FEW_STEPS).height == stream.height - 1
    assert f"{len(stream.stripes)} stripes of {stream.height} rows" in repr(stream)


def test_plans_of_stripes_share_one_arena_and_packed_weights() -> None:
    graph = _network()
    stream = engine.stream(graph, rows=4, nodes=FEW_STEPS)
    executors: list[Any] = [executable.executor for executable in stream._executables]
    assert len(executors) == len(stream.plans) > 2
    assert all(executor.arena.has(executors[0].arena.rows[0][:1]) for executor in executors)
    packed = [{id(a) for arrays in e._packed.arrays.values() for a in arrays} for e in executors]
    assert packed[0] and all(each <= packed[0] for each in packed)  # all rows may be kept of what the last ones read


def test_files_are_streamed_into_files(tmp_path: Path) -> None:
    graph = _network()
    image = np.memmap(tmp_path / "x", np.float32, "w+", shape=(1, 3, 37, 20))
    image[...] = _image(graph)
    mask = np.memmap(tmp_path / "y", np.float32, "w+", shape=(1, 4, 19, 10))
    outputs = engine.stream(graph, rows=4, nodes=FEW_STEPS).run({"x": image}, out={"mask": mask})
    assert outputs["mask"] is mask and outputs["features"].shape == (1, 16, 19, 10)
    wanted = engine.compile(graph, nodes=FEW_STEPS).run({"x": np.array(image)})
    np.testing.assert_array_equal(np.fromfile(tmp_path / "y", np.float32).reshape(mask.shape), wanted["mask"])


def test_inputs_of_other_heights_and_inputs_without_rows_are_fed_beside() -> None:
    graph = Graph("guided")
    x, scale = graph.input("x", (1, 24, 10, 8)), graph.input("scale", (8,))
    low = graph.input("low", (1, 12, 5, 8))
    y = ops.max_pool(_conv(ops.transpose(x, (0, 3, 1, 2)), 8), (2, 2), strides=(2, 2))
    graph.output(ops.transpose(y, (0, 2, 3, 1)) * scale + low)
    rng = np.random.default_rng(2)
    feeds = {name: rng.standard_normal(var.shape, np.float32) for name, var in graph.inputs.items()}
    stream = engine.stream(graph, rows=5, nodes=FEW_STEPS)
    assert stream.stripes[1].reads == {"low": (5, 10), "x": (9, 21)}
    (wanted,) = engine.compile(graph, nodes=FEW_STEPS).run(feeds).values()
    (outputs,) = stream.run(feeds).values()
    np.testing.assert_array_equal(outputs, wanted)


def _pooled() -> Graph:
    graph = Graph("pooled")
    x = _conv(ops.relu(_conv(graph.input("x", (1, 3, 16, 16)), 16)), 16)
    graph.output(x * ops.reduce_mean(x, axes=(2, 3)), "y")
    return graph


def _two_heights() -> Graph:
    graph = Graph("heights")
    x = ops.relu(_conv(ops.relu(_conv(graph.input("x", (1, 3, 16, 16)), 16)), 16))
    graph.output(x, "high")
    graph.output(ops.max_pool(x, (2, 2), strides=(2, 2)), "low")
    return graph


def _channels_in_front() -> Graph:
    graph = Graph("front")
    x = ops.conv2d(graph.input("x", (1, 3, 16, 16)), graph.constant(np.ones((8, 3, 3, 3), np.float32)))
    graph.output(ops.depth_to_space(x, 2), "low")
    graph.output(x, "high")
    return graph


def test_rows_without_columns_are_streamed() -> None:
    graph = Graph("empty")
    graph.output(ops.relu(graph.input("x", (1, 8, 0, 3))), "y")
    stream = engine.stream(graph, rows=3)
    assert stream.run({"x": iter([np.zeros((1, 2, 0, 3), np.float32)] * 4)})["y"].shape == (1, 8, 0, 3)


def test_inputs_that_nothing_reads_are_checked_as_well() -> None:
    graph = Graph("unread")
    graph.input("image", (1, 6, 2, 3))
    graph.input("scales", (3,))
    graph.output(ops.relu(graph.input("x", (1, 8, 4, 3))), "y")
    stream = engine.stream(graph, rows=3)
    feeds = {name: np.ones(var.shape, np.float32) for name, var in graph.inputs.items()}
    assert (stream.run({**feeds, "image": iter([feeds["image"]])})["y"] == 1).all()
    for name, value in {"image": iter([]), "scales": np.ones(4, np.float32)}.items():
        with pytest.raises(FeedError, match=f"input '{name}'"):
            stream.run({**feeds, name: value})


def test_one_image_may_be_several_outputs() -> None:
    graph = Graph("twice")
    x = ops.relu(_conv(ops.relu(_conv(graph.input("x", (1, 3, 10, 5)), 8)), 8))
    graph.output(x, "one")
    graph.output(x, "other")
    _assert_bits_are_those_of_the_whole_image(graph, rows=4)


def _flat() -> Graph:
    graph = Graph("flat")
    graph.output(ops.relu(graph.input("x", (16,))), "y")
    return graph


def _open() -> Graph:
    graph = Graph("open")
    graph.output(ops.relu(graph.input("x", (1, 3, "rows", 16))), "y")
    return graph


def _trained() -> Graph:
    graph = Graph("trained")
    x = graph.input("x", (1, 8, 8, 3))
    graph.output(x + graph.parameter(np.zeros(3, np.float32), "bias"), "y")
    return graph


@pytest.mark.parametrize(
    ("graph", "options", "error", "message"),
    [
        (_pooled, {"rows": 4}, GraphError, r"operator 'reduce_mean_0' .* cannot be computed in stripes"),
        (
            _two_heights,
            {"rows": 4},
            OptionError,
            "outputs 'high' and 'low' of 'heights' have 16 and 8 rows, in axes 2 ",
        ),
        (_channels_in_front, {"rows": 4}, GraphError, r"operator '.*' \(.*\) cannot be computed in stripes of rows"),
        (_flat, {"rows": 4}, GraphError, "output 'y' of 'flat' is no image"),
        (_open, {"rows": 4}, GraphError, "lengths are given for: rows"),
        (_trained, {"rows": 4}, GraphError, "'trained' has parameters"),
        (_network, {}, OptionError, "give either rows"),
        (_network, {"rows": 4, "budget": "1 MiB"}, OptionError, "give either rows"),
        (_network, {"height": 4}, OptionError, "arenaplan.stream has no option 'height'"),
        (lambda: 3, {"rows": 4}, GraphError, "3 is no graph"),
        (lambda: "zoo:squeezenet", {"rows": 4}, GraphError, "'zoo:squeezenet' is no graph"),
        (_network, {"rows": -1}, OptionError, "rows -1 is no height of stripes"),
        (_network, {"rows": 4, "caller_buffers": ("x",)}, OptionError, "caller_buffers is of no use to a stream"),
        (_network, {"budget": 1000}, BudgetError, r"even stripes of 1 row of 'network' need \d+ bytes"),
    ],
)
def test_what_cannot_be_streamed_is_one_line(graph: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as refused:
        engine.stream(graph(), nodes=FEW_STEPS, **options)
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def stream() -> Stream:
    return engine.stream(_network(), rows=8, nodes=FEW_STEPS)


def _rows(*heights: int, columns: int = 20, dtype: str = "float32") -> list[Array]:
    return [np.zeros((1, 3, height, columns), dtype) for height in heights]


@frozen
class _Sliced:
    """What has a shape and gives something for slices, such as a file."""

    shape: Any
    change: Callable[[Array], Array]

    def __getitem__(self, index: Any) -> Array:
        """Returns rows."""
        return self.change(_rows(37)[0][index])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (_rows(10, 10), "input 'x' ended after 20 of its 37 rows"),
        (_rows(30, 8), "input 'x' has more than its 37 rows"),
        (_rows(37, 1), "input 'x' has more than its 37 rows"),
        (_rows(10, columns=21), r"the stripe from row 0 on has shape \(1, 3, 10, 21\), but \(1, 3, 10, 20\)"),
        (_rows(10, dtype="float64"), "the stripe from row 0 on has element type float64"),
        ([np.zeros((3, 10, 20), np.float32)], r"has shape \(3, 10, 20\); give arrays of 4 dimensions, with rows in a"),
        ([1.0], "the stripe from row 0 on has type float"),
        (_rows(0), r"the stripe from row 0 on has shape \(1, 3, 0, 20\)"),
        (_rows(36)[0], r"input 'x' has shape \(1, 3, 36, 20\), but \(1, 3, 37, 20\) is expected"),
        (_rows(37, dtype="int8")[0], "input 'x' has element type int8"),
        (7, "input 'x' is a int: give an array, or an iterable"),
        (np.ma.array(_rows(37)[0], mask=True), "input 'x': a masked array, whose mask would be lost"),
        ([np.ma.array(_rows(37)[0], mask=True)], "the stripe from row 0 on: a masked array, whose mask would be lost"),
        (_Sliced((1, 3, 37, 20), np.ma.array), "rows 0 to 22: a masked array, whose mask"),
        (_Sliced((1, 3, 37, 20), lambda rows: rows[..., 1:]), r"rows 0 to 22 has shape \(1, 3, 22, 19\)"),
        (_Sliced(None, lambda rows: rows), r"input 'x' has shape None, but \(1, 3, 37, 20\) is expected"),
        ([*_rows(9), None, *_rows(28)], "the stripe from row 9 on has type NoneType"),
        (iter([*_rows(37), None]), "input 'x' has more than its 37 rows"),
    ],
)
def test_wrong_stripes_are_one_line(stream: Stream, value: Any, message: str) -> None:
    with pytest.raises(FeedError, match=message) as refused:
        stream.run({"x": value})
    assert "\n" not in str(refused.value)


def test_wrong_names_and_outputs_are_refused_before_anything_is_computed(stream: Stream) -> None:
    with pytest.raises(FeedError, match="there is no input 'z'"):
        stream.stream({"z": 1})
    image, small = _rows(37)[0], np.zeros((1, 4, 18, 10), np.float32)
    with pytest.raises(FeedError, match="out='mask' has shape"):
        stream.run({"x": image}, out={"mask": small})


def test_outputs_that_share_bytes_with_what_is_read_later_are_refused(stream: Stream) -> None:
    memory = np.zeros(5000, np.float32)
    image, mask = memory[: 37 * 60].reshape(1, 3, 37, 20), memory[2200 : 2200 + 4 * 190].reshape(1, 4, 19, 10)
    features = memory[-16 * 190 :].reshape(1, 16, 19, 10)
    for value in (image, iter([image]), np.from_dlpack(image)):
        memory[:] = 1
        with pytest.raises(FeedError, match="out='mask' shares bytes with 'x' of the same run") as refused:
            stream.run({"x": value}, out={"mask": mask})
        assert "\n" not in str(refused.value) and (memory == 1).all()
    with pytest.raises(FeedError, match="out='features' shares bytes with 'mask'"):
        stream.run({"x": _rows(37)[0]}, out={"mask": mask, "features": features})
