"""A quantised network built with functions on vars: its results, and that a run with poisoned bytes equals them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine.graph.var import Var
from ops.tensor.spec import Array


def built(weights: Array, matrix: Array) -> engine.Graph:
    """Returns a network of quantised operators, with constant scales and with scales computed from its data."""
    graph = engine.Graph("quantised")
    x: Var = graph.input("x", (2, 3, 6, 5))
    codes = ops.quantize_linear(x, 0.05, 128)
    y = ops.qlinear_conv(
        codes,
        weights,
        np.arange(4, dtype="i4"),
        x_scale=0.05,
        x_zero_point=128,
        w_scale=0.02,
        y_scale=0.1,
        y_zero_point=100,
        pads=1,
        strides=2,
    )
    rows = ops.reshape(y, (2, 36))
    z = ops.qlinear_matmul(
        rows,
        matrix,
        a_scale=0.1,
        a_zero_point=100,
        b_scale=np.full(7, 0.02, "f4"),
        b_zero_point=np.zeros(7, "i1"),
        y_scale=0.3,
        y_zero_point=50,
    )
    graph.output(ops.dequantize_linear(z, 0.3, 50), "static")
    quantised_x, scale, zero = ops.dynamic_quantize_linear(x)
    sums = ops.cast(ops.conv_integer(quantised_x, weights, zero, dilations=2), "float32")
    real = ops.mul(sums, ops.mul(scale, np.asarray(0.02, "f4")))
    graph.output(real, "dynamic")
    graph.output(ops.matmul_integer(ops.reshape(quantised_x, (2, 90))[:, :36], matrix), "products")
    return graph


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 999))
def test_a_quantised_network_is_near_the_real_one_and_all_modes_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights, matrix = (rng.integers(-60, 60, s).astype(np.int8) for s in ((4, 3, 3, 3), (36, 7)))
    graph = built(weights, matrix)
    feeds = {"x": rng.standard_normal((2, 3, 6, 5)).astype(np.float32)}
    ours = engine.compile(graph, optimise=0).run(feeds)
    watched = engine.compile(graph, debug="poison", optimise=0).run(feeds)
    assert all(np.array_equal(ours[k], watched[k]) for k in ours)

    real = engine.Graph("real")
    x: Var = real.input("x", (2, 3, 6, 5))
    kernel, bias = (weights * 0.02).astype("f4"), np.arange(4, dtype="f4") * np.float32(0.05 * 0.02)
    y = ops.conv(x, kernel, bias, pads=1, strides=2)
    real.output(ops.matmul(ops.reshape(y, (2, 36)), (matrix * 0.02).astype("f4")), "static")
    real.output(ops.conv(x, kernel, dilations=2), "dynamic")
    wanted = engine.compile(real, optimise=0).run(feeds)
    # Each of 36 factors is off by half a step of 0.1 at most, and by little of its own; the output by half of 0.3.
    inside = np.abs(wanted["static"]) < 10
    assert np.abs(ours["static"] - wanted["static"])[inside].max(initial=0) < 36 * 0.2 * 0.6 + 0.15
    assert np.abs(ours["dynamic"] - wanted["dynamic"]).max() < 27 * 1.2 * 0.5 * 8 / 255
    assert ours["products"].dtype == np.int32
