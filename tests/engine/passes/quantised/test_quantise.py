"""Quantised networks on codes: within one quantum of the same network on real numbers, and of onnxruntime."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from engine.graph.deferred import SMALL, Deferred
from engine.passes import optimise, verify
from engine.passes.quantised.quantise import QUANTISE
from engine.zoo import NETWORKS
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import count
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_modes, run_unplanned
from tests.helpers.onnx.quantised_models import quantised_model, seeded

Draw = Callable[..., Any]


class Writer:
    """Writes quantised operators around vars, with grids that are drawn."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 999)))
        self.graph = Graph("quantised")

    def grid(self, scale: float, dtype: str) -> tuple[Array, Array]:
        """Returns a scale near that one, and a zero point."""
        ends = np.iinfo(dtype)
        zero = self.rng.integers(ends.min, ends.max + 1) if self.draw(st.booleans()) else (ends.min + ends.max + 1) // 2
        return np.asarray(scale * (0.5 + self.rng.random()), np.float32), np.asarray(zero, dtype)

    def codes(self, x: Var, scale: float = 0.03) -> Var:
        """Sends x through quantisation and dequantisation."""
        grid = self.grid(scale, self.draw(st.sampled_from(["uint8", "int8"])))
        return ops.dequantize_linear(ops.quantize_linear(x, *grid), *grid)

    def input(self, shape: tuple[int, ...]) -> Var:
        """Returns a quantised input."""
        return self.codes(self.graph.input(f"x{len(self.graph.inputs)}", shape))

    def weights(self, shape: tuple[int, ...], axis: int) -> Var:
        """Returns dequantised constants, with scales for all or along an axis."""
        dtype = self.draw(st.sampled_from(["int8", "uint8"]))
        shift = 0 if dtype == "int8" else 128
        codes = (self.rng.integers(-100, 100, shape) + shift).astype(dtype)
        many = (shape[axis],) if self.draw(st.booleans()) else ()
        scale = (0.005 + 0.01 * self.rng.random(many)).astype(np.float32)
        zero = np.full(many, shift, dtype)
        return ops.dequantize_linear(self.graph.constant(codes), scale, zero, axis=axis)

    def bias(self, count: int) -> Var | None:
        """Returns None, constants, or dequantised ones."""
        kind = self.draw(st.integers(0, 2))
        real = self.rng.standard_normal(count).astype(np.float32)
        if kind == 0:
            return None
        if kind == 1:
            return self.graph.constant(real)
        scale = np.float32(1e-4)
        return ops.dequantize_linear(self.graph.constant(np.rint(real / scale).astype(np.int32)), scale)


def _conv(w: Writer) -> Var:
    group, each, out = w.draw(st.sampled_from([(1, 3, 4), (1, 4, 5), (2, 2, 2), (3, 1, 1)]))
    x, weights = w.input((1, group * each, 6, 7)), w.weights((group * out, each, 3, 2), 0)
    return ops.conv(x, weights, w.bias(group * out), pads=w.draw(st.integers(0, 1)), group=group)


def _gemm(w: Writer) -> Var:
    turned = w.draw(st.booleans())
    weights = w.weights((5, 7) if turned else (7, 5), 0 if turned else 1)
    bias = w.bias(5)
    return ops.gemm(w.input((3, 7)), weights, *(() if bias is None else (bias,)), trans_b=turned)


def _matmul(w: Writer) -> Var:
    return ops.matmul(w.input((2, 3, 6)), w.weights((6, 5), 1))


def _add(w: Writer) -> Var:
    shapes = w.draw(st.sampled_from([((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((1,), (4, 2))]))
    a, b = map(w.input, shapes)
    return a + b


def _concat(w: Writer) -> Var:
    return ops.concat([w.input((1, n, 3)) for n in (2, 3)], axis=1)


def _block(w: Writer) -> Var:
    """Adds a convolution and an addition."""
    x, weights = w.input((1, 4, 5, 5)), w.weights((4, 4, 3, 3), 0)
    return w.codes(ops.conv(x, weights, w.bias(4), pads=1)) + x


def _pooled(w: Writer) -> Var:
    return ops.max_pool(w.input((1, 4, 6, 6)), 2, strides=2)


def _mean(w: Writer) -> Var:
    x = w.input((2, 3, 5, 4))
    return ops.global_average_pool(x) if w.draw(st.booleans()) else ops.reduce_mean(x, (2, 3))


def _moved(w: Writer) -> Var:
    return ops.transpose(ops.reshape(w.input((2, 6)), (3, 4)), (1, 0))


def _formula(w: Writer) -> Var:
    x = w.input((2, 5))
    return ops.sigmoid(x * 2.0) * x + w.graph.constant(np.float32(0.25))


_CASES = (_formula, _conv, _gemm, _matmul, _add, _concat, _block, _pooled, _mean, _moved)


@st.composite
def quantised_graphs(draw: Draw) -> Graph:
    w = Writer(draw)
    case = draw(st.sampled_from(_CASES))
    y = case(w)
    y = draw(st.sampled_from([lambda v: v, ops.relu, lambda v: ops.clip(v, -0.5, 1.5)]))(y)
    if case is _block or draw(st.integers(0, 3)):
        y = w.codes(y, 0.05)
    w.graph.output(y, "y")
    return w.graph


def quantum(graph: Graph) -> float:
    """Returns the step of the last dequantisation, if that makes the output; else that of the real values."""
    writer = next(op for op in graph.operators if graph.outputs["y"] in set(op.outputs))
    if writer.schema.name != "dequantize_linear":
        return 1e-4
    return float(graph.constants[writer.inputs[1]].reshape(-1)[0])


def check_quantum(graph: Graph, after: Graph, most: float = 1.0) -> None:
    feeds = random_feeds(graph)
    wanted, actual = run_unplanned(graph, feeds)["y"], run_unplanned(after, feeds)["y"]
    assert actual.dtype == wanted.dtype
    steps = np.abs(actual.astype(np.float64) - wanted) / quantum(graph)
    assert steps.max(initial=0) <= most + 1e-3, steps.max()


@settings(max_examples=60, deadline=None)
@given(quantised_graphs())
def test_quantised_values_differ_by_one_at_most(graph: Graph) -> None:
    after = QUANTISE(graph)
    verify(graph, after)
    fused = count(graph)["add"] and count(graph)["conv"]
    check_quantum(graph, after, 2.0 if fused else 1.0)
    assert QUANTISE(after) is after


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(quantised_graphs())
def test_quantised_networks_run_in_every_mode(graph: Graph) -> None:
    after, feeds = optimise(graph, 2), random_feeds(graph)
    wanted = run_modes(after, feeds)
    np.testing.assert_allclose(
        engine.compile(after, backend="numpy", optimise=0).run(feeds)["y"], wanted["y"], rtol=1e-6, atol=1e-6
    )
    fused = count(graph)["add"] and count(graph)["conv"]
    check_quantum(graph, after, 2.0 if fused else 1.0)


def residual() -> Graph:
    graph = Graph("residual")
    x = graph.input("x", (1, 3, 16, 16))
    y = ops.relu(ops.conv(x, graph.constant(seeded((8, 3, 3, 3), 0, 0.2)), pads=1, strides=2))
    y = ops.max_pool(y, 2, strides=2)
    z = ops.relu(ops.conv(y, graph.constant(seeded((8, 8, 3, 3), 1, 0.1)), graph.constant(seeded((8,), 2)), pads=1))
    z = ops.relu(ops.conv(z, graph.constant(seeded((8, 8, 3, 3), 3, 0.1)), pads=1) + y)
    z = ops.reshape(ops.global_average_pool(z), (1, 8))
    graph.output(ops.gemm(z, graph.constant(seeded((5, 8), 4)), graph.constant(seeded((5,), 5)), trans_b=True), "y")
    return graph


def mobile() -> Graph:
    graph = Graph("mobile")
    x = graph.input("x", (1, 6, 9, 9))
    y = ops.clip(ops.conv(x, graph.constant(seeded((12, 6, 1, 1), 0, 0.3))), 0.0, 6.0)
    y = ops.clip(ops.conv(y, graph.constant(seeded((12, 1, 3, 3), 1, 0.3)), pads=1, group=12), 0.0, 6.0)
    y = ops.conv(y, graph.constant(seeded((6, 12, 1, 1), 2, 0.3))) + x
    graph.output(ops.concat([y, ops.leaky_relu(y, 0.1)], axis=1), "y")
    return graph


def products() -> Graph:
    graph = Graph("products")
    x = graph.input("x", (2, 5, 16))
    y = ops.matmul(x, graph.constant(seeded((16, 24), 0, 0.2)))
    graph.output(ops.matmul(ops.tanh(y), graph.constant(seeded((24, 7), 1, 0.2))), "y")
    return graph


def run_onnxruntime(path: Path, feeds: dict[str, Array], *, exactly: bool = True) -> Array:
    """Runs a model in onnxruntime; `exactly` also on a processor without VNNI, where sums of pairs saturate else."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", str(int(exactly)))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feeds)[0])


def check_onnxruntime(path: Path, share: float = 0.05) -> Graph:
    """Checks that outputs differ by at most one quantum, and that in few places."""
    graph = engine.load_onnx(path)
    after, feeds = optimise(graph, 2), random_feeds(graph, 7)
    (result,) = engine.compile(after, threads=1, optimise=0).run(feeds).values()
    (output,) = after.outputs.values()
    writer = next(op for op in after.operators if output in set(op.outputs))
    step = float(after.constants[writer.inputs[1]].reshape(-1)[0])
    steps = np.abs(result.astype(np.float64) - run_onnxruntime(path, feeds)) / step
    assert steps.max() <= 1 + 1e-3
    assert (steps > 0.5).mean() <= share
    return after


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("make", [residual, mobile, products])
def test_networks_within_a_quantum_of_onnxruntime(make: Callable[[], Graph], kind: str, tmp_path: Path) -> None:
    after = check_onnxruntime(quantised_model(make(), tmp_path, kind))
    assert not {"conv", "gemm", "matmul", "add", "max_pool", "global_average_pool"} & set(count(after))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("network", ["resnet18", "mobilenet_v2", "squeezenet"])
def test_whole_quantised_networks_are_within_a_quantum(network: str, kind: str, tmp_path: Path) -> None:
    check_onnxruntime(quantised_model(NETWORKS[network](), tmp_path, kind), share=0.4)


def test_a_residual_block_is_two_convolutions(tmp_path: Path) -> None:
    path = quantised_model(residual(), tmp_path)
    assert count(optimise(engine.load_onnx(path), 2)) == {
        "quantize_linear": 1,
        "transpose": 1,
        "nhwc_quantised_conv": 4,
        "nhwc_max_pool": 1,
        "quantised_mean": 1,
        "reshape": 2,
        "dequantize_linear": 1,
    }


def test_a_formula_of_codes_is_a_table() -> None:
    graph, grid = Graph("formula"), (np.float32(0.05), np.uint8(100))
    x = ops.dequantize_linear(ops.quantize_linear(graph.input("x", (4, 5)), *grid), *grid)
    y = ops.quantize_linear(ops.tanh(x) * x, np.float32(0.02), np.int8(3))
    graph.output(ops.dequantize_linear(y, np.float32(0.02), np.int8(3)), "y")
    after = QUANTISE(graph)
    assert count(after) == {"quantize_linear": 1, "look_up": 1, "dequantize_linear": 1}
    assert_same(run_unplanned(after, random_feeds(graph)), run_unplanned(graph, random_feeds(graph)))


def test_weights_stay_codes_where_nothing_is_optimised(tmp_path: Path) -> None:
    graph = engine.load_onnx(quantised_model(residual(), tmp_path))
    assert {array.dtype.name for array in graph.constants.values() if array.ndim == 4} == {"int8"}


def _gemm_with(bias: Array, columns: int = 4, *, dequantised: bool = False) -> Graph:
    graph, grid = Graph("bias"), (np.float32(0.05), np.uint8(100))
    x = ops.dequantize_linear(ops.quantize_linear(graph.input("x", (4, 8)), *grid), *grid)
    codes = np.random.default_rng(0).integers(-100, 100, (8, columns)).astype(np.int8)
    w = ops.dequantize_linear(graph.constant(codes), np.float32(0.01), np.int8(0))
    unit = np.float32(0.0005)
    whole = np.rint(bias / unit).astype(np.int32)
    added = ops.dequantize_linear(graph.constant(whole), unit) if dequantised else graph.constant(bias)
    grid = np.float32(0.02), np.uint8(128)
    y = ops.quantize_linear(ops.gemm(x, w, added), *grid)
    graph.output(ops.dequantize_linear(y, *grid), "y")
    return graph


@pytest.mark.parametrize("dequantised", [False, True])
@pytest.mark.parametrize("columns", [4, 16, 1])
@pytest.mark.parametrize("shape", [(4, 1), (4, 4), (1, 4), (4,), (1, 1), (1,), ()])
def test_quantise_takes_a_bias_of_any_shape(shape: tuple[int, ...], columns: int, dequantised: bool) -> None:
    if shape and shape[-1] not in (1, columns):
        shape = (*shape[:-1], columns)
    graph = _gemm_with(seeded(shape, 3, 0.5), columns, dequantised=dequantised)
    check_quantum(graph, optimise(graph, 2))


def test_a_row_of_biases_is_computed_in_codes() -> None:
    assert "gemm" not in count(QUANTISE(_gemm_with(seeded((1, 4), 3))))


def _scaled(scales: tuple[float, float, float], *, length: int = 8, bias: bool = True) -> Graph:
    """Returns x of `length` codes times weights of 127, with scales of x, weights and y."""
    graph = Graph("scaled")
    x, w, y = map(np.float32, scales)
    codes = ops.dequantize_linear(ops.quantize_linear(graph.input("x", (2, length)), x, np.uint8(0)), x, np.uint8(0))
    weights = ops.dequantize_linear(graph.constant(np.full((length, 4), 127, np.int8)), w, np.int8(0))
    product = ops.gemm(codes, weights, graph.constant(np.ones(4, np.float32))) if bias else ops.matmul(codes, weights)
    graph.output(ops.dequantize_linear(ops.quantize_linear(product, y, np.uint8(0)), y, np.uint8(0)), "y")
    return graph


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    "scales", [(1e-30, 1e-30, 0.1), (1e20, 1e20, 1e30), (1e-3, 1e-3, 1e-44), (1e-20, 1e-10, 1e-38)]
)
def test_scales_beyond_float32_are_no_codes(scales: tuple[float, float, float], bias: bool) -> None:
    graph = _scaled(scales, bias=bias)
    after = QUANTISE(graph)
    feeds = {"x": np.full((2, 8), 3.0, np.float32)}
    with np.errstate(all="ignore"):
        assert_same(
            engine.compile(optimise(graph, 2), optimise=0).run(feeds),
            engine.compile(graph, backend="numpy", optimise=0).run(feeds),
        )
    assert QUANTISE(after) is after


@pytest.mark.parametrize(("length", "taken"), [(66_311, True), (66_312, False), (70_000, False)])
def test_sums_that_int32_cannot_hold_are_left_alone(length: int, taken: bool) -> None:
    graph = _scaled((0.01, 0.01, 1e3), length=length, bias=False)
    assert ("matmul" not in count(QUANTISE(graph))) == taken
    feeds = {"x": np.full((2, length), 3.0, np.float32)}
    assert engine.compile(optimise(graph, 2), optimise=0).run(feeds)["y"].min() > 0


def _two_tables(shape: tuple[int, ...], kind: str = "uint8", *, fetched: bool = False) -> Graph:
    graph, grid = Graph("tables"), (np.float32(0.05), np.array(10, kind))
    between = np.float32(0.03), np.array(20, kind)
    x = ops.dequantize_linear(ops.quantize_linear(graph.input("x", shape), *grid), *grid)
    codes = ops.quantize_linear(ops.sigmoid(x), *between)
    if fetched:
        graph.output(codes, "codes")
    y = ops.quantize_linear(ops.tanh(ops.dequantize_linear(codes, *between)), *grid)
    graph.output(ops.dequantize_linear(y, *grid), "y")
    return graph


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(1, 1), (), (3, 5), (2, 9000)])
def test_consecutive_lookup_tables_are_one(shape: tuple[int, ...], kind: str) -> None:
    graph = _two_tables(shape, kind)
    after, feeds = optimise(graph, 2), random_feeds(graph)
    assert count(after) == {"quantize_linear": 1, "look_up": 1, "dequantize_linear": 1}
    for backend in ("numpy", "numba"):
        assert_same(engine.compile(after, backend=backend, optimise=0).run(feeds), run_unplanned(graph, feeds))


@pytest.mark.parametrize("shape", [(1, 1), (3, 5)])
def test_quantised_values_that_are_fetched_stay_between_tables(shape: tuple[int, ...]) -> None:
    graph = _two_tables(shape, fetched=True)
    after, feeds = optimise(graph, 2), random_feeds(graph)
    assert count(after)["look_up"] == 2
    for backend in ("numpy", "numba"):
        assert_same(engine.compile(after, backend=backend, optimise=0).run(feeds), run_unplanned(graph, feeds))


def test_large_weights_of_a_quantised_product_are_arranged_when_they_are_read() -> None:
    graph = _gemm_with(seeded((9000,), 3, 0.5), 9000)
    after = QUANTISE(graph)
    (entry,) = [entry for entry in after.constants.entries.values() if entry.nbytes > SMALL]
    assert isinstance(entry, Deferred)
    check_quantum(graph, after)
