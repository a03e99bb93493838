"""Networks whose tensors are stored in 16 bits."""

import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import zoo
from engine.cli.main import main
from engine.graph.graph import Graph
from engine.passes.cascade.rewrite import with_cascades
from engine.planning.placed import Cascade
from engine.text.errors import GraphError, OptionError
from ops.tensor.errors import DtypeError
from ops.tensor.spec import BFLOAT16, HALVES, Array
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.unplanned_run import random_feeds

TYPES = ("float16", "bfloat16")
_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


def _small() -> Graph:
    graph = engine.Graph("small")
    x = graph.input("x", (2, 8, 33, 30))
    rng = np.random.default_rng(3)
    w = graph.constant(rng.standard_normal((24, 8, 3, 3), np.float32) / 8, "w")
    y = ops.relu(ops.conv2d(x, w, pads=(1, 1, 1, 1)))
    left, right = ops.split(y, 2, axis=1)
    z: engine.Var = ops.max_pool(ops.concat([left * right, y], axis=1), (2, 2), strides=(2, 2))
    matrix = graph.constant(rng.standard_normal((36, 10), np.float32) / 6, "m")
    graph.output(ops.softmax(ops.matmul(ops.reduce_mean(z, axes=(2, 3), keepdims=False), matrix)), "y")
    return graph


def _feeds(graph: Graph) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {name: rng.standard_normal(v.shape, np.float32) for name, v in graph.inputs.items()}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("level", [0, 2, 3])
def test_half_storage_keeps_outputs_near_and_the_arena_smaller(dtype: str, backend: str, level: int) -> None:
    graph = engine.optimise(_small(), level)
    stored = engine.cast_storage(graph, dtype)
    wanted = engine.compile(graph, backend="numpy", optimise=0).run(_feeds(graph))["y"]
    exe = engine.compile(stored, backend=backend, optimise=0)
    y = exe.run(_feeds(graph))["y"]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, wanted, rtol=20 * _EPS[dtype], atol=_EPS[dtype])
    values = exe.plan.lowered.values
    computed = {v.name for v in values if v.spec.dtype == np.float32 and v.source in graph.vars}
    assert not computed - {"x", "y", *(v.name for v in graph.constants)}


@pytest.mark.parametrize("dtype", TYPES)
def test_half_storage_gives_the_same_bits_in_every_mode(dtype: str) -> None:
    graph = engine.cast_storage(engine.optimise(_small(), 3), dtype)
    feeds = _feeds(graph)
    wanted = engine.compile(graph, threads=1, optimise=0).run(feeds)["y"].tobytes()
    for options in ({"mode": "dynamic"}, {"debug": "poison"}, {"threads": 3}, {"views": False}, {"nest": False}):
        assert engine.compile(graph, optimise=0, **options).run(feeds)["y"].tobytes() == wanted, options


def test_float16_needs_about_half_of_the_bytes() -> None:
    graph = engine.optimise(zoo.mobilenet_v2(), 3)
    plain, half = (engine.make_plan(g, optimise=0).report() for g in (graph, engine.cast_storage(graph, "float16")))
    assert half.arena_without_workspace <= 0.51 * plain.arena_without_workspace
    assert half.arena_bytes < 0.62 * plain.arena_bytes


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_half_storage_keeps_no_arrays_but_the_arena_and_packed_weights(backend: str) -> None:
    graph = Graph("convolutions")
    y: engine.Var = graph.input("x", (1, 128, 32, 32))
    for _ in range(3):
        y = ops.relu(ops.conv2d(y, np.ones((128, 128, 3, 3), np.float32), pads=(1, 1, 1, 1)))
    graph.output(y, "y")
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    tracemalloc.start()
    try:
        executable = engine.compile(graph, store="float16", backend=backend)
        traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces
    finally:
        tracemalloc.stop()
    assert sum(t.size for t in traces) < executable.arena_bytes + executable.prepacked_bytes + 128 * 1024


@pytest.mark.parametrize("dtype", TYPES)
def test_parts_of_small_constants_stay_in_float32_as_the_constants_do(dtype: str) -> None:
    rng = np.random.default_rng(1)
    graph = engine.Graph("positions")
    x = graph.input("x", (1, 24, 40, 16))
    for _ in range(3):
        x = ops.relu(x + graph.constant(rng.standard_normal((24, 40, 1), np.float32)))
    graph.output(x, "y")
    cut = with_cascades(graph, [Cascade(0, 6, 5)])
    assert any(operator.schema.name == "slice" for operator in cut.operators)
    first, second = (engine.compile(each, optimise=0, store=dtype).run(_feeds(graph))["y"] for each in (graph, cut))
    np.testing.assert_array_equal(first, second)


def test_half_storage_saves_bytes_in_small_networks() -> None:
    for graph in (zoo.mobilenet_v2(image=64), zoo.minilm(sequence=32), zoo.squeezenet(image=67)):
        better = engine.optimise(graph, 3)
        plain, half = (
            engine.make_plan(g, optimise=0).arena_bytes for g in (better, engine.cast_storage(better, "float16"))
        )
        assert half < plain, graph.name


def test_half_storage_takes_tensors_with_negative_strides() -> None:
    graph = engine.Graph("backwards")
    x = graph.input("x", (1, 4, 32))
    graph.output(ops.relu(ops.slice(ops.sigmoid(x), (31,), (-33,), (2,), (-1,))), "y")
    feeds = _feeds(graph)
    wanted = 1 / (1 + np.exp(-feeds["x"][..., ::-1]))
    y = engine.compile(engine.cast_storage(graph, "float16"), optimise=0).run(feeds)["y"]
    np.testing.assert_allclose(y, wanted, rtol=2e-3)


def test_half_storage_is_idempotent() -> None:
    graph = _small()
    once = engine.cast_storage(graph, "float16")
    twice = engine.cast_storage(once, "bfloat16")
    y, wanted = (engine.compile(g, optimise=0).run(_feeds(graph))["y"] for g in (twice, graph))
    np.testing.assert_allclose(y, wanted, rtol=0.1, atol=0.01)


def test_half_storage_makes_constants_beyond_the_range_infinite() -> None:
    graph = engine.Graph("mask")
    x = graph.input("x", (80, 80))
    mask = graph.constant(np.triu(np.full((80, 80), np.finfo(np.float32).min), 1), "mask")
    graph.output(ops.softmax(x + mask), "y")
    y, wanted = (
        engine.compile(g, optimise=0).run(_feeds(graph))["y"] for g in (engine.cast_storage(graph, "float16"), graph)
    )
    np.testing.assert_allclose(y, wanted, atol=2e-3)


def test_other_floats_beside_bfloat16_are_refused() -> None:
    graph = engine.Graph("mixed")
    brain, single = graph.input("b", (3,), BFLOAT16), graph.input("s", (3,))
    with pytest.raises(DtypeError, match="add"):
        ops.add(brain, single)
    with pytest.raises(DtypeError, match=r"^top_k"):
        ops.top_k(brain, 2)


def test_bounds_of_bfloat16_and_lengths_that_are_open() -> None:
    graph = engine.Graph("open")
    x = graph.input("x", ("batch", 4), BFLOAT16)
    graph.output(ops.clip(ops.relu(x), None, 1), "y")
    feeds = {"x": np.linspace(-2, 3, 12).reshape(3, 4).astype(BFLOAT16)}
    y = engine.compile(graph, optimise=0).run(feeds)["y"]
    np.testing.assert_array_equal(y.astype(np.float32), np.clip(feeds["x"].astype(np.float32), 0, 1))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(TYPES))
def test_half_storage_runs_random_graphs(seed: int, dtype: str) -> None:
    graph = build(seeded(seed), 12)
    stored = engine.cast_storage(graph, dtype)
    assert {n: v.spec for n, v in stored.outputs.items()} == {n: v.spec for n, v in graph.outputs.items()}
    feeds = random_feeds(graph)
    one = engine.compile(stored, optimise=0).run(feeds)
    two = engine.compile(stored, mode="dynamic", optimise=0).run(feeds)
    assert {n: a.tobytes() for n, a in one.items()} == {n: a.tobytes() for n, a in two.items()}


def test_operators_on_bfloat16_compute_in_float32() -> None:
    graph = engine.Graph("brain")
    a, b = (graph.input(n, (40, 50) if n == "a" else (50, 30), BFLOAT16) for n in "ab")
    y = graph.output(ops.relu(ops.matmul(a, b)), "y")
    assert y.dtype == BFLOAT16
    rng = np.random.default_rng(0)
    feeds = {"a": rng.standard_normal((40, 50)).astype(BFLOAT16), "b": rng.standard_normal((50, 30)).astype(BFLOAT16)}
    actual = engine.compile(graph, optimise=0).run(feeds)["y"]
    wanted = np.maximum(feeds["a"].astype(np.float32) @ feeds["b"].astype(np.float32), 0)
    assert actual.dtype == BFLOAT16
    np.testing.assert_allclose(actual.astype(np.float32), wanted, rtol=2**-7, atol=1e-6)


def test_a_model_of_bfloat16_is_read_and_run(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    weights = np.linspace(-1, 1, 12).astype(ml_dtypes.bfloat16).reshape(4, 3)
    value = onnx.helper.make_tensor_value_info
    code = onnx.TensorProto.BFLOAT16
    onnx_graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["z"]), onnx.helper.make_node("Cast", ["z"], ["y"], to=1)],
        "g",
        [value("x", code, (2, 4))],
        [value("y", 1, (2, 3))],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    path = tmp_path / "brain.onnx"
    onnx.save(onnx.helper.make_model(onnx_graph, opset_imports=[onnx.helper.make_opsetid("", 21)]), path)
    graph = engine.load_onnx(path)
    x = np.arange(8).reshape(2, 4).astype(BFLOAT16)
    y = engine.compile(graph, optimise=0).run({"x": x})["y"]
    wanted = (x.astype(np.float32) @ weights.astype(np.float32)).astype(BFLOAT16).astype(np.float32)
    np.testing.assert_array_equal(y, wanted)
    for command in (["run", str(path)], ["plan", str(path), "--json"], ["trace", str(path), "--format", "json"]):
        assert main(command) == 0


def test_half_storage_refuses_graphs_it_cannot_store() -> None:
    graph = _small()
    with pytest.raises(OptionError, match="tensors cannot be stored as 'int8'; one of: bfloat16, float16"):
        engine.cast_storage(graph, "int8")
    with pytest.raises(GraphError, match="has parameters"):
        engine.cast_storage(zoo.resnet18(training=True), "float16")
    symbolic = engine.Graph("open")
    symbolic.output(ops.relu(symbolic.input("x", ("batch", 3))))
    with pytest.raises(GraphError, match=r"names; see arenaplan\.bind"):
        engine.cast_storage(symbolic, "float16")


def test_the_plan_command_stores_halves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "zoo:squeezenet", "--store", "float16", "--optimise", "3"]) == 0
    assert "computed by numba" in capsys.readouterr().out
    assert {np.dtype(t) for t in TYPES} == HALVES
