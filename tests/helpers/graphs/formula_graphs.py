"""Formulas as exporters write them, in arithmetic; and random graphs made of them, some with a piece that is wrong."""

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from hypothesis import strategies as st

import ops
from engine import Graph, Var
from tests.helpers.graphs.random_graphs import Choose

ROOT = math.sqrt(2)
SLOPE = math.sqrt(2 / math.pi)
SCALE = np.linspace(0.5, 2, 6, dtype=np.float32)
BIAS = np.linspace(-1, 1, 6, dtype=np.float32)
Formula = Callable[[Var], Var]


def over_root(above: Var, below: Var, way: str) -> Var:
    """Writes above / sqrt(below) in one of five ways."""
    ways: Mapping[str, Callable[[], Var]] = {
        "div": lambda: above / ops.sqrt(below),
        "reciprocal": lambda: above * ops.reciprocal(ops.sqrt(below)),
        "one over": lambda: above * (1.0 / ops.sqrt(below)),
        "power": lambda: above * ops.pow(below, -0.5),
        "half power": lambda: above / ops.pow(below, 0.5),
    }
    return ways[way]()


WAYS = ("div", "reciprocal", "one over", "power", "half power")


def layer_norm(x: Var, way: str = "div", *, twice: bool = False, by_product: bool = False) -> Var:
    """Writes it without scale and bias; the centred x is computed `twice`, or squared by a product."""
    mean = ops.reduce_mean(x, (-1,))
    centred = x - mean
    again = x - mean if twice else centred
    square = again * again if by_product else ops.pow(again, 2.0)
    return over_root(centred, ops.reduce_mean(square, (-1,)) + 1e-5, way)


def spread_norm(x: Var) -> Var:
    """Writes TensorFlow's, which multiplies x and the mean by the same number."""
    mean = ops.reduce_mean(x, (-1,))
    centred = x - mean
    variance = ops.reduce_mean(centred * centred, (-1,))
    s = ops.reciprocal(ops.sqrt(variance + 1e-5)) * SCALE
    return x * s + ops.sub(BIAS, mean * s)


def rms_norm(x: Var, way: str = "div") -> Var:
    """Writes it with a scale."""
    return over_root(x, ops.reduce_mean(ops.pow(x, 2.0), (-1,)) + 1e-6, way) * SCALE


def softmax(x: Var, *, shifted: bool = True, by_reciprocal: bool = False) -> Var:
    """Writes it with the maximum subtracted from the exponents, or without."""
    power = ops.exp(x - ops.reduce_max(x, (-1,)) if shifted else x)
    total = ops.reduce_sum(power, (-1,))
    return power * ops.reciprocal(total) if by_reciprocal else power / total


def log_softmax(x: Var) -> Var:
    """Writes it by the logarithm of the sum."""
    shifted = x - ops.reduce_max(x, (-1,))
    return shifted - ops.log(ops.reduce_sum(ops.exp(shifted), (-1,)))


FORMULAS: Mapping[str, tuple[tuple[Formula, ...], str]] = {
    "gelu": (
        (
            lambda x: x * 0.5 * (ops.erf(x / ROOT) + 1.0),
            lambda x: x * (ops.erf(x / ROOT) + 1.0) * 0.5,
            lambda x: x * (0.5 * (1.0 + ops.erf(x * (1 / ROOT)))),
            lambda x: x * (0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))),
            lambda x: 0.5 * (x + x * ops.erf(x / ROOT)),
        ),
        "gelu",
    ),
    "gelu by tanh": (
        (
            lambda x: 0.5 * x * (1.0 + ops.tanh(SLOPE * (x + 0.044715 * ops.pow(x, 3.0)))),
            lambda x: x * (0.5 * (1.0 + ops.tanh((x + x * x * x * 0.044715) * SLOPE))),
            lambda x: 0.5 * x * (1.0 + ops.tanh(SLOPE * x * (1.0 + 0.044715 * x * x))),
        ),
        "gelu",
    ),
    "swish": ((lambda x: x * ops.sigmoid(x), lambda x: ops.sigmoid(1.702 * x) * x), "swish"),
    "hard swish": (
        (
            lambda x: x * ops.clip(x + 3.0, 0.0, 6.0) / 6.0,
            lambda x: x * (ops.clip(x + 3.0, 0.0, 6.0) * (1 / 6)),
            lambda x: x * ops.hard_sigmoid(x, 1 / 6, 0.5),
        ),
        "hard_swish",
    ),
    "hard sigmoid": ((lambda x: ops.clip(x + 3.0, 0.0, 6.0) / 6.0,), "hard_sigmoid"),
    "mish": ((lambda x: x * ops.tanh(ops.softplus(x)),), "mish"),
    "layer norm": (
        (
            *(partial(layer_norm, way=way) for way in WAYS),
            lambda x: layer_norm(x, twice=True),
            lambda x: layer_norm(x, by_product=True) * SCALE,
            lambda x: layer_norm(x) * SCALE + BIAS,
            lambda x: layer_norm(x) * SCALE.reshape(1, 1, 6) + BIAS.reshape(1, 6),
            lambda x: layer_norm(x) + 1.0,
            spread_norm,
        ),
        "layer_norm",
    ),
    "rms norm": (tuple(partial(rms_norm, way=way) for way in WAYS), "rms_norm"),
    "softmax": (
        (
            softmax,
            lambda x: softmax(x, shifted=False),
            lambda x: softmax(x, by_reciprocal=True),
            lambda x: softmax(x, shifted=False, by_reciprocal=True),
        ),
        "softmax",
    ),
    "log softmax": (
        (
            log_softmax,
            lambda x: ops.log(softmax(x)),
            lambda x: x - ops.reduce_log_sum_exp(x, (1,)),
        ),
        "log_softmax",
    ),
}
"""By name: ways to write it, and the schema that it is."""
ALL = tuple(formula for formulas, _ in FORMULAS.values() for formula in formulas)


@st.composite
def formula_graphs(draw: st.DrawFn) -> Graph:
    """Draws formulas behind each other; now and then something else reads one of their pieces."""
    return build_formulas(lambda n: draw(st.integers(0, n - 1)))


def build_formulas(choose: Choose) -> Graph:
    """Builds the same from choices."""
    graph = Graph("formulas")
    pool = [graph.input("x", (2, 3, 6))]
    for _ in range(1 + choose(4)):
        x = pool[-1 - choose(min(2, len(pool)))]
        pool.append(_step(x, choose))
    if choose(2):  # a piece that leaves the graph
        outputs = [v for op in graph.operators for v in op.outputs if v.shape == (2, 3, 6)]
        pool.insert(0, outputs[choose(len(outputs))])
        graph.output(pool[0], "piece")
    graph.output(pool[-1], "y")
    return graph


def _step(x: Var, choose: Choose) -> Var:
    if choose(3) == 0:
        other: tuple[Formula, ...] = (lambda v: v * 0.7, lambda v: ops.tanh(v) + v, lambda v: v - 0.1)
        return other[choose(3)](x)
    return ALL[choose(len(ALL))](x)
