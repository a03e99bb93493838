"""Products of matrices that take scales, biases, additions and activations: the same numbers, and fewer operators."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from engine.passes import optimise
from engine.passes.fuse.matmul import FUSE_MATMUL
from engine.system.threads import limit_threads
from engine.zoo.encoder import EncoderSize, encoder
from tests.helpers.graphs.layered_networks import layered_graphs
from tests.helpers.graphs.pass_checks import check_near, check_pass, count, schema_names
from tests.helpers.graphs.unplanned_run import EVERY_MODE, random_feeds, run_modes, run_unplanned

Choose = Callable[[int], int]


def _weights(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) / 2).astype(np.float32)


def _product(x: Var, choose: Choose) -> Var:
    n = x.shape[-1]
    w = _weights(choose(9), n, n) / np.float32(n**0.5)
    if x.ndim == 2 and choose(2):
        addend = _weights(3, *((n,), (1, n), x.shape, (x.shape[0], 1), ())[choose(5)])
        return ops.gemm(
            x, w, addend, trans_b=bool(choose(2)), beta=(1.0, 0.5, 0.0)[choose(3)], alpha=(1.0, 2.0)[choose(2)]
        )
    return x @ w


def _addition(x: Var, pool: list[Var], choose: Choose) -> Var:
    same = [v for v in pool if v.shape == x.shape]
    n = x.shape[-1]
    others = (same[choose(len(same))], _weights(5, n), _weights(5, 1, n), _weights(6, *x.shape[-2:]), _weights(7, 1))
    other = others[choose(len(others))]
    return x + other if choose(2) or not isinstance(other, Var) else other + x


def _activation(x: Var, choose: Choose) -> Var:
    functions = (ops.relu, ops.gelu, ops.swish, ops.leaky_relu, ops.tanh, lambda v: ops.gelu(v, "tanh"), _clipped)
    return functions[choose(len(functions))](x)


def _clipped(x: Var) -> Var:
    return ops.clip(x, -1.0, 0.5)


@st.composite
def _graphs(draw: st.DrawFn) -> Graph:
    """Draws products, scales, additions and activations in any order, read by one or by several."""

    def choose(n: int) -> int:
        return draw(st.integers(0, n - 1))

    graph = Graph("products")
    pool = [graph.input("x", ((3, 8), (2, 3, 5), (1, 2, 4, 6))[choose(3)])]
    for _ in range(1 + choose(9)):
        x = pool[-1] if choose(5) else pool[choose(len(pool))]
        moves: tuple[Callable[[], Var], ...] = (
            lambda v=x: _product(v, choose),  # type: ignore[misc]
            lambda v=x: _addition(v, pool, choose),  # type: ignore[misc]
            lambda v=x: _activation(v, choose),  # type: ignore[misc]
            lambda v=x: v * (0.5, 2.0)[choose(2)] if choose(2) else v / 2.0,  # type: ignore[misc]
        )
        pool.append(moves[(0, 0, 1, 1, 2, 3)[choose(6)]]())
    graph.output(pool[-1], "y")
    if choose(4) == 0:
        graph.output(pool[choose(len(pool))], "z")
    return graph


@settings(max_examples=50)
@given(st.one_of(_graphs(), layered_graphs()))
def test_fuse_matmul_keeps_outputs_and_is_idempotent(graph: Graph) -> None:
    fused, feeds = check_pass(graph, FUSE_MATMUL), random_feeds(graph)
    check_near(engine.compile(fused, optimise=0).run(feeds), run_unplanned(graph, feeds))


@settings(max_examples=20)
@given(_graphs())
def test_fused_matmul_graphs_run_in_all_modes(graph: Graph) -> None:
    fused = optimise(graph, 2)
    feeds = random_feeds(graph)
    with limit_threads(1):
        outputs = run_modes(fused, feeds, EVERY_MODE)
    check_near(outputs, run_unplanned(graph, feeds))


def test_fuse_matmul_text_of_a_feed_forward_layer() -> None:
    graph = Graph("layer")
    x = graph.input("x", (1, 4, 8))
    wide, narrow = graph.constant(_weights(0, 8, 16), "wide"), graph.constant(_weights(1, 16, 8), "narrow")
    y = ops.gelu(x @ wide + graph.constant(_weights(2, 16), "b")) @ narrow + graph.constant(_weights(3, 8), "c")
    graph.output(x + y, "y")
    none, rest = "transpose_b=False alpha=1.0", "low=-inf high=inf slope=1.0"
    assert FUSE_MATMUL(graph).text().splitlines()[6:] == [
        f"  %gelu_0: float32[1,4,16] = fused_matmul(%x, %wide, %b) {none} activation=gelu_erf {rest}",
        f"  %add_2: float32[1,4,8] = fused_matmul(%gelu_0, %narrow, %c, %x) {none} activation=none {rest}",
        "  output   y = %add_2",
    ]


def test_scores_take_their_scale_and_their_mask() -> None:
    graph = Graph("scores")
    q, k = graph.input("q", (2, 3, 4, 8)), graph.input("k", (2, 3, 4, 8))
    mask, keys = graph.input("mask", (1, 1, 4, 4)), ops.transpose(k, (0, 1, 3, 2))
    graph.output((q @ keys) * 0.25 + mask, "y")
    graph.output((q * 0.5) @ keys / 2.0 + graph.input("row", (1, 1, 1, 4)), "z")
    after = FUSE_MATMUL(graph)
    fused = [op for op in after.operators if op.schema.name == "fused_matmul"]
    assert count(after) == {"fused_matmul": 2, "reshape": 1}
    assert [op.attrs["alpha"] for op in fused] == [0.25, 0.25]
    assert [len(op.inputs) for op in fused] == [4, 3]
    feeds = random_feeds(graph)
    check_near(engine.compile(after, optimise=0).run(feeds), run_unplanned(graph, feeds), 1e-5)


def test_a_transpose_of_the_second_factor_is_read_by_columns() -> None:
    graph = Graph("turned")
    q, k = graph.input("q", (2, 3, 4, 8)), graph.input("k", (2, 5, 3, 8))
    graph.output(q @ ops.transpose(k, (0, 2, 3, 1)), "y")
    graph.output(graph.input("a", (3, 4)) @ ops.transpose(graph.input("b", (5, 4))), "z")
    graph.output(graph.input("c", (1, 3, 4)) @ ops.transpose(graph.input("d", (4, 2, 5)), (1, 0, 2)), "rows stay")
    after = FUSE_MATMUL(graph)
    assert count(after) == {"transpose": 2, "fused_matmul": 2, "matmul": 1}
    assert engine.make_plan(after, optimise=0).report().savings.copies.tensors == 0
    feeds = random_feeds(graph)
    check_near(engine.compile(after, optimise=0).run(feeds), run_unplanned(graph, feeds), 1e-5)


def test_the_later_of_two_products_takes_the_addition() -> None:
    graph = Graph("two")
    x = graph.input("x", (4, 8))
    first, second = x @ _weights(0, 8, 8), x @ _weights(1, 8, 8)
    graph.output(first + second, "y")
    fused = FUSE_MATMUL(graph)
    assert schema_names(fused) == ["matmul", "fused_matmul"]
    assert fused.operators[1].inputs[3] is fused.operators[0].outputs[0]


def test_fuse_matmul_keeps_values_that_others_read_or_that_do_not_fit() -> None:
    graph, w = Graph("stays"), _weights(0, 4, 4)
    x = graph.input("x", (3, 4))
    y = x @ w
    graph.output(ops.relu(y), "y")
    graph.output(y, "z")
    z = x @ (2 * w)
    graph.output(z + z, "twice")
    graph.output(x @ (3 * w) + _weights(1, 2, 3, 4), "wider")
    graph.output(x @ (4 * w) + _weights(1, 3, 1), "a column")
    graph.output(ops.relu(ops.tanh(x @ (5 * w))), "another in between")
    graph.output(ops.relu(ops.matmul(x, w[0])), "vector")
    graph.output(ops.relu(ops.gemm(x, _weights(2, 3, 4), trans_a=True)), "transposed")
    half = graph.input("half", (3, 4), "float16")
    graph.output(ops.relu(half @ w.astype(np.float16)), "half product")
    assert FUSE_MATMUL(graph) is graph


def test_fuse_matmul_reads_a_parameter_before_its_update() -> None:
    graph = Graph("step")
    x, p = graph.input("x", (3, 4)), graph.parameter(_weights(0, 4, 4), "p")
    y = x @ p
    graph.assign(p, p * 2)
    graph.output(ops.relu(y), "y")
    assert FUSE_MATMUL(graph) is graph


@pytest.mark.parametrize("heads", [1, 4])
def test_an_encoder_is_products_norms_and_softmaxes(heads: int) -> None:
    graph = encoder(EncoderSize(layers=2, width=32, heads=heads, sequence=10))
    after = optimise(graph, 2)
    counted = count(after)
    assert (counted["fused_matmul"], counted["matmul"]) == (2 * 7, 2)
    assert not {"add", "mul", "gelu", "fused_elementwise"} & set(counted)
    feeds = random_feeds(graph)
    check_near(engine.compile(after, optimise=0).run(feeds), run_unplanned(graph, feeds), 1e-4)


@pytest.mark.parametrize("operation", [ops.mul, ops.div])
@pytest.mark.parametrize("fixed", [True, False])
def test_a_scale_that_weights_cannot_take_stays_where_it_is(operation: Callable[..., Var], fixed: bool) -> None:
    graph = Graph("large")
    x = graph.input("x", (5, 16))
    w = np.full((16, 8), 1e30, np.float32)
    weights = graph.constant(w, "w") if fixed else graph.input("w", w.shape)
    graph.output(operation(x @ weights, 1e10 if operation is ops.mul else 1e-10), "y")
    feeds = {"x": np.full((5, 16), 1e-20, np.float32), **({} if fixed else {"w": w})}
    for level in (0, 1, 2, 3):
        y = engine.compile(engine.optimise(graph, level), backend="numba", optimise=0).run(feeds)["y"]
        np.testing.assert_allclose(y, np.full((5, 8), 1.6e21), rtol=1e-5)
