"""Channels last: the same numbers, few conversions, names that stay."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Operator, Var
from engine.passes import verify
from engine.passes.edit import Edit
from engine.passes.layout.channels_last import CHANNELS_LAST, LayoutReaders
from ops.spatial.resize import RESIZE
from ops.tensor.spec import Array
from tests.helpers.graphs.image_networks import image_nets
from tests.helpers.graphs.pass_checks import check_near, schema_names
from tests.helpers.graphs.unplanned_run import random_feeds, run_unplanned


def _weights(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@settings(max_examples=30)
@given(image_nets())
def test_channels_last_networks_compute_the_same(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    last = CHANNELS_LAST(graph)
    verify(graph, last)
    check_near(run_unplanned(last, feeds), wanted)
    assert set(schema_names(CHANNELS_LAST(last))) <= set(schema_names(last))


@settings(max_examples=20)
@given(image_nets())
def test_channels_last_networks_run_behind_all_passes_in_one_arena(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    for begun in (graph, engine.optimise(graph, level=2)):
        check_near(engine.compile(engine.optimise(begun, level=3), optimise=0).run(feeds), wanted)


def _small() -> Graph:
    """Returns two convolutions, an addition, a pool, a head."""
    graph = Graph("small")
    x = graph.input("x", (1, 3, 16, 16))
    first = ops.relu(ops.conv(x, _weights(16, 3, 3, 3), _weights(16), pads=1))
    second = ops.conv(first, _weights(16, 16, 3, 3), _weights(16), pads=1)
    pooled = ops.max_pool(ops.relu(second + first), 2, strides=2)
    flat = ops.flatten(ops.global_average_pool(pooled), 1)
    graph.output(ops.gemm(flat, _weights(16, 4)), "y")
    return graph


def test_channels_last_turns_the_input_alone() -> None:
    after = engine.optimise(_small(), level=3)
    assert schema_names(after) == [
        "transpose",
        "nhwc_conv",
        "nhwc_conv",
        "nhwc_max_pool",
        "reduce_mean",
        "reshape",
        "gemm",
    ]
    assert [op.attrs["activation"] for op in after.operators[1:3]] == ["clip", "clip"]
    assert len(after.operators[2].inputs) == 4
    assert engine.optimise(after, level=3) is after


def test_channels_last_leaves_one_convolution_alone() -> None:
    graph = Graph("one")
    graph.output(ops.conv(graph.input("x", (1, 8, 9, 9)), _weights(8, 8, 3, 3), pads=1), "y")
    assert CHANNELS_LAST(graph) is graph


def test_a_network_that_has_channels_last_outside_turns_nothing() -> None:
    graph = Graph("from a converter")
    x = graph.input("x", (1, 9, 9, 8))
    y = ops.relu(ops.conv(ops.transpose(x, (0, 3, 1, 2)), _weights(8, 8, 3, 3), pads=1))
    graph.output(ops.transpose(y, (0, 2, 3, 1)), "y")
    assert schema_names(engine.optimise(graph, level=3)) == ["nhwc_conv"]


def test_a_channel_shuffle_moves_the_last_axes_only() -> None:
    graph = Graph("shuffled")
    x = graph.input("x", (1, 8, 8, 8))
    apart = ops.reshape(ops.conv(x, _weights(32, 8, 1, 1)), (1, 4, 8, 8, 8))
    mixed = ops.reshape(ops.transpose(apart, (0, 2, 1, 3, 4)), (1, 32, 8, 8))
    graph.output(ops.global_max_pool(ops.conv(mixed, _weights(8, 32, 1, 1))), "y")
    after = engine.optimise(graph, level=3)
    assert [op.attrs["perm"] for op in after.operators if op.schema.name == "transpose"][1:] == [(0, 1, 2, 4, 3)]


def test_channels_last_keeps_the_names_of_the_user() -> None:
    graph = Graph("named")
    w = _weights(16, 16, 3, 3)
    x = graph.input("x", (1, 16, 9, 9))
    for _ in range(3):
        x = ops.sigmoid(ops.conv(x, w, pads=1))
    graph.output(ops.global_average_pool(x), "y")
    names = {v.name for op in graph.operators for v in op.outputs if op.schema.name in ("conv", "sigmoid")}
    assert names <= set(CHANNELS_LAST(graph).vars)


@pytest.mark.parametrize(("scale", "variance", "is_finite"), [(1.0, 1e-6, True), (1e21, 1e-36, False)])
def test_a_batch_normalization_turns_where_its_factors_are_finite_in_float32(
    scale: float, variance: float, is_finite: bool
) -> None:
    """The second factor is 1e39, which float32 does not have."""
    graph, rng = Graph("normalised"), np.random.default_rng(0)
    x = graph.input("x", (1, 8, 9, 9))
    for _ in range(2):
        x = ops.conv2d(x, rng.standard_normal((8, 8, 3, 3)).astype(np.float32), pads=1)
        ones = np.ones(8, np.float32)
        x = ops.batch_norm(
            ops.relu(x), ones * np.float32(scale), ones, 0 * ones, ones * np.float32(variance), epsilon=0.0
        )
    graph.output(x, "y")
    after = CHANNELS_LAST(graph)
    assert ("batch_norm" in schema_names(after)) is not is_finite
    if is_finite:
        feeds = random_feeds(graph)
        check_near(run_unplanned(after, feeds), run_unplanned(graph, feeds))


def test_channels_last_leaves_float16_alone() -> None:
    graph = Graph("half")
    w = _weights(8, 8, 3, 3).astype(np.float16)
    x = ops.conv(ops.conv(graph.input("x", (1, 8, 16, 16), np.float16), w), w)
    graph.output(ops.global_average_pool(x), "y")
    assert "nhwc_conv" not in schema_names(CHANNELS_LAST(graph))


@pytest.mark.slow
@settings(max_examples=240)
@given(image_nets(24))
def test_large_channels_last_networks_compute_the_same(graph: Graph) -> None:
    feeds = random_feeds(graph)
    check_near(engine.compile(engine.optimise(graph, level=3), optimise=0).run(feeds), run_unplanned(graph, feeds))


@given(st.data())
def test_layout_readers_counts_equal_their_definition(data: st.DataObject) -> None:
    graph = Graph("joins")
    vars = [graph.input(f"x{i}", (1, 2, 3, 3)) for i in range(3)]
    joined = st.lists(st.sampled_from(vars), min_size=1, max_size=4)
    joins: list[Var] = [ops.concat(data.draw(joined), axis=1) for _ in range(4)]
    choices = [st.sets(st.sampled_from(range(len(op.inputs)))).map(tuple) for op in graph.operators]
    before, after = ([data.draw(choice) for choice in choices] for _ in range(2))
    readers = LayoutReaders()
    for operator, positions in zip(graph.operators, before, strict=True):
        readers.add(operator, positions)
    for operator, old, new in zip(graph.operators, before, after, strict=True):
        readers.change(operator, old, new)
    uses = [
        {(v, i in positions) for i, v in enumerate(op.inputs)}
        for op, positions in zip(graph.operators, after, strict=True)
    ]
    for var in (*vars, *joins):
        assert readers.last[var] == sum((var, True) in use for use in uses)
        assert readers.first[var] == sum((var, False) in use for use in uses)


_ONES = np.ones((2, 2, 1, 1), np.float32)


def _dense(layers: int) -> Graph:
    """Returns a network in which each convolution reads all that was computed before it."""
    graph = Graph("dense")
    results = [graph.input("x", (1, 2, 8, 8))]
    for _ in range(layers):
        whole: Var = ops.concat(results, axis=1)
        results.append(ops.conv(whole, np.ones((2, whole.shape[1], 1, 1), np.float32)))
    graph.output(results[-1], "y")
    return graph


def _star(readers: int) -> Graph:
    """Returns a network in which many activations read one convolution, and leave the graph."""
    graph = Graph("star")
    middle = ops.conv(graph.input("x", (1, 2, 8, 8)), _ONES)
    for i in range(readers):
        graph.output(ops.relu(middle), f"y{i}")
    return graph


def _islands(number: int) -> Graph:
    """Returns convolutions that have nothing to do with one another."""
    graph = Graph("islands")
    for i in range(number):
        graph.output(ops.conv(graph.input(f"x{i}", (1, 2, 8, 8)), _ONES), f"y{i}")
    return graph


@pytest.mark.parametrize("graph", [_dense(12), _dense(24), _star(200), _islands(200)])
def test_channels_last_visits_each_input_a_few_times_only(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    readers, operator, insert_behind = Edit.readers, Edit.operator, Edit.insert_behind

    def counted_readers(edit: Edit, var: Var) -> tuple[Operator, ...]:
        nonlocal calls
        result = readers(edit, var)
        calls += len(result)
        return result

    def counted_operator(edit: Edit, operator_id: int) -> Operator:
        nonlocal calls
        calls += 1
        return operator(edit, operator_id)

    def counted_insert_behind(edit: Edit, operator_id: int) -> None:
        nonlocal calls
        calls += 1
        insert_behind(edit, operator_id)

    monkeypatch.setattr(Edit, "readers", counted_readers)
    monkeypatch.setattr(Edit, "operator", counted_operator)
    monkeypatch.setattr(Edit, "insert_behind", counted_insert_behind)
    CHANNELS_LAST(graph)
    inputs = sum(len(op.inputs) for op in graph.operators)
    assert 0 < calls <= 5 * (inputs + len(graph.operators))


def test_a_resize_of_some_rows_keeps_the_order_of_its_axes() -> None:
    graph = Graph("rows")
    x = ops.relu(ops.conv(graph.input("x", (1, 8, 8, 8)), _weights(8, 8, 3, 3), pads=1))
    attrs = {"sizes": (1, 8, 12, 8), "mode": "linear", "rows": (16, 16, 0, 0)}
    (resized,) = graph.add(RESIZE, [x], attrs)
    graph.output(ops.conv(resized, _weights(8, 8, 3, 3), pads=1), "y")
    feeds = random_feeds(graph)
    check_near(run_unplanned(engine.optimise(graph, level=3), feeds), run_unplanned(graph, feeds))
