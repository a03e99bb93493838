"""Random networks of layers with constant weights: convolutions, products, normalizations, residuals, activations."""

import math
from collections.abc import Callable

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

import ops
from engine import Graph, Var
from ops.tensor.spec import Array

Choose = Callable[[int], int]
_SHAPES = ((1, 4, 9, 8), (2, 6, 5), (3, 8), (2, 32, 6, 7))


@frozen(eq=False)
class _Weights:
    """Seeded arrays."""

    rng: np.random.Generator

    def draw(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32) / 2

    def layer(self, summands: int, *shape: int) -> Array:
        """Returns weights by which sums are about as large as what is summed: nothing grows from layer to layer."""
        return self.draw(*shape) * np.float32(2 / np.sqrt(summands))


def layered(choose: Choose, most: int = 10) -> Graph:
    """Builds a graph from choices; its outputs are about as large as its input."""
    graph, weights = Graph("layered"), _Weights(np.random.default_rng(choose(100)))
    pool = [graph.input("x", _SHAPES[choose(len(_SHAPES))])]
    for _ in range(1 + choose(most)):
        x = pool[-1] if choose(4) else pool[choose(len(pool))]
        pool.append(_MOVES[choose(len(_MOVES))](x, pool, weights, choose))
    graph.output(pool[-1], "y")
    if choose(4) == 0:
        graph.output(pool[choose(len(pool))], "z")
    return graph


@st.composite
def layered_graphs(draw: st.DrawFn, most: int = 10) -> Graph:
    """Draws a network of at most `most` layers."""
    return layered(lambda n: draw(st.integers(0, n - 1)), most)


def _layer(x: Var, _: list[Var], weights: _Weights, choose: Choose) -> Var:
    """Adds a layer of as many channels as before, mostly."""
    channels = x.shape[1]
    bias = weights.draw(channels) if choose(2) else None
    if x.ndim == 2:
        return _product(x, bias, weights, choose)
    group = (1, 1, 2, channels)[choose(4)]
    kernel, size = ((1, 3)[choose(2)],) * (x.ndim - 2), channels // group
    w, pads = weights.layer(size * math.prod(kernel), channels, size, *kernel), kernel[0] // 2
    if choose(4) == 0:
        return ops.conv_transpose(x, w, bias, pads=pads, group=group)
    return ops.conv(x, w, bias, pads=pads, group=group)


def _product(x: Var, bias: Array | None, weights: _Weights, choose: Choose) -> Var:
    w = weights.layer(x.shape[1], x.shape[1], x.shape[1])
    if choose(3) == 0:
        return x @ w
    if bias is None:
        return ops.gemm(x, w, alpha=0.5)
    shapes = ((-1,), (1, -1), (-1,))
    return ops.gemm(x, w, bias.reshape(shapes[choose(3)]), trans_b=bool(choose(2)), beta=(1.0, 0.5)[choose(2)])


def _normalization(x: Var, _: list[Var], weights: _Weights, __: Choose) -> Var:
    scale, bias, mean, spread = (weights.draw(x.shape[1]) for _ in range(4))
    return ops.batch_norm(x, scale, bias, mean, np.abs(spread) + np.float32(0.5))


def _arithmetic(x: Var, _: list[Var], weights: _Weights, choose: Choose) -> Var:
    """Adds arithmetic with one number, one a channel, or one for each last index, which is no channel of an image."""
    shapes = ((), (x.shape[1], *(1,) * (x.ndim - 2)), (1, x.shape[1], *(1,) * (x.ndim - 2)), (x.shape[-1],))
    array = np.clip(weights.draw(*shapes[choose(4)]) + np.float32(1), 0.5, 2)
    functions = (ops.add, ops.sub, ops.mul, ops.div)
    return functions[choose(4)](x, array) if choose(2) else functions[choose(3)](x.graph.constant(array), x)


def _residual(x: Var, pool: list[Var], _: _Weights, choose: Choose) -> Var:
    same = [v for v in pool if v.shape == x.shape]
    other = same[choose(len(same))]
    return x + other if choose(2) else other + x


def _activation(x: Var, _: list[Var], __: _Weights, choose: Choose) -> Var:
    return (ops.relu(x), ops.clip(x, -1.0, 0.5), ops.leaky_relu(x, alpha=0.25), ops.tanh(x))[choose(4)]


_MOVES = (_layer, _layer, _normalization, _normalization, _arithmetic, _residual, _activation, _activation)
