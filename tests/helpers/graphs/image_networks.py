"""Random convolutional networks: branches, concatenations, additions, pools, odd sizes, shuffles and heads."""

import math
from collections.abc import Callable

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

import ops
from engine import Graph, Var
from ops.tensor.spec import Array

Choose = Callable[[int], int]
_SHAPES = ((1, 3, 13, 11), (2, 8, 9, 9), (1, 4, 17), (1, 6, 7, 5, 6), (1, 1, 12, 12))
MOST_MOVES = 9


@frozen(eq=False)
class _Source:
    """Choices and seeded arrays."""

    choose: Choose
    rng: np.random.Generator

    def draw(self, *shape: int) -> Array:
        return self.rng.standard_normal(shape).astype(np.float32) / 2

    def either(self) -> bool:
        return bool(self.choose(2))


def image_net(choose: Choose, most: int = MOST_MOVES) -> Graph:
    """Builds a graph from choices, of one input and one or two outputs."""
    source = _Source(choose, np.random.default_rng(choose(100)))
    graph = Graph("images")
    pool = [_conv(graph.input("x", _SHAPES[choose(len(_SHAPES))]), [], source)]
    for _ in range(1 + choose(most)):
        x = pool[-1] if choose(4) else pool[choose(len(pool))]
        pool.append(_MOVES[choose(len(_MOVES))](x, pool, source))
    graph.output(_HEADS[choose(len(_HEADS))](pool[-1], source), "y")
    if choose(4) == 0:
        graph.output(pool[choose(len(pool))], "z")
    return graph


@st.composite
def image_nets(draw: st.DrawFn, most: int = MOST_MOVES) -> Graph:
    """Draws a network of at most `most` moves."""
    return image_net(lambda n: draw(st.integers(0, n - 1)), most)


def _conv(x: Var, _: list[Var], source: _Source) -> Var:
    channels, spatial = x.shape[1], x.ndim - 2
    group = (1, 1, channels)[source.choose(3)]
    out = group * (1 + source.choose(8)) if group == 1 else group
    kernel = (1, 3)[source.either()]
    w = source.draw(out, channels // group, *(kernel,) * spatial)
    w *= np.float32(2 / math.sqrt(w[0].size))
    bias = source.draw(out) if source.either() else None
    if x.spec.size < 3000 and group == 1 and source.choose(5) == 0:
        return ops.conv_transpose(x, w.swapaxes(0, 1).copy(), bias, strides=1 + source.choose(2))
    stride = 2 if min(x.shape[2:]) > 4 and source.choose(4) == 0 else 1
    return ops.conv(x, w, bias, pads=kernel // 2, group=group, strides=stride)


def _activation(x: Var, _: list[Var], source: _Source) -> Var:
    which = source.choose(4)
    return ops.clip(x, -1.0, 0.5) if which == 3 else (ops.relu, ops.tanh, ops.sigmoid)[which](x)


def _arithmetic(x: Var, _: list[Var], source: _Source) -> Var:
    """Adds arithmetic with one number, one a channel, or one a last index."""
    ones = (1,) * (x.ndim - 2)
    shapes = ((), (x.shape[1], *ones), (1, x.shape[1], *ones), (x.shape[-1],), (1, *x.shape[1:]))
    array = source.draw(*shapes[source.choose(len(shapes))]) + np.float32(1)
    return x * array if source.either() else x.graph.constant(array) - x


def _norm(x: Var, _: list[Var], source: _Source) -> Var:
    scale, bias, mean, spread = (source.draw(x.shape[1]) for _ in range(4))
    return ops.batch_norm(x, scale, bias, mean, np.abs(spread) + np.float32(0.5))


def _addition(x: Var, pool: list[Var], source: _Source) -> Var:
    same = [v for v in pool if v.shape == x.shape]
    return x + same[source.choose(len(same))]


def _joined(x: Var, pool: list[Var], source: _Source) -> Var:
    axis = (1, 1, 1, 2)[source.choose(4)]
    fits = [v for v in pool if v.ndim == x.ndim and all(v.shape[a] == n for a, n in enumerate(x.shape) if a != axis)]
    return ops.concat([x, fits[source.choose(len(fits))]], axis=axis)


def _pool(x: Var, _: list[Var], source: _Source) -> Var:
    if min(x.shape[2:]) < 3:
        return x
    stride, pads = 1 + source.choose(2), source.choose(2)
    if source.either():
        return ops.max_pool(x, 3, strides=stride, pads=pads)
    return ops.average_pool(x, 3, strides=stride, pads=pads, count_include_pad=source.either())


def _response(x: Var, _: list[Var], source: _Source) -> Var:
    return ops.lrn(x, 1 + source.choose(4), alpha=0.1)


def _gate(x: Var, _: list[Var], source: _Source) -> Var:
    """Adds squeeze and excite."""
    w = source.draw(x.shape[1], x.shape[1], *(1,) * (x.ndim - 2))
    return x * ops.sigmoid(ops.conv(ops.global_average_pool(x), w))


def _shuffle(x: Var, _: list[Var], __: _Source) -> Var:
    n, c, *rest = x.shape
    if c % 2:
        return x
    apart = ops.reshape(x, (n, 2, c // 2, *rest))
    return ops.reshape(ops.transpose(apart, (0, 2, 1, *range(3, x.ndim + 1))), x.shape)


def _cut(x: Var, _: list[Var], source: _Source) -> Var:
    """Takes some channels, a border, the other half, or twice the size."""
    axis, which = 1 + source.choose(2), source.choose(4)
    if which == 0:
        return ops.slice(x, (0,), ((x.shape[axis] + 1) // 2,), (axis,))
    if which == 1:
        return ops.pad(x, (1, 0), axes=(axis,))
    if which == 2 and x.shape[1] > 1:
        a, b = ops.split(x, (1, x.shape[1] - 1), axis=1)
        return ops.concat([b, a], axis=1)
    return ops.resize(x, sizes=(*x.shape[:2], *(2 * n for n in x.shape[2:]))) if x.spec.size < 5000 else x


def _blocks(x: Var, _: list[Var], source: _Source) -> Var:
    """Turns channels to pixels, or pixels to channels, by two."""
    mode = ("DCR", "CRD")[source.either()]
    if x.ndim == 4 and x.shape[1] % 4 == 0:
        return ops.depth_to_space(x, 2, mode)
    if x.ndim == 4 and x.shape[2] % 2 == x.shape[3] % 2 == 0:
        return ops.space_to_depth(x, 2) if source.either() else x
    return x


_LAYERS = (_conv, _conv, _conv, _pool, _norm, _response, _gate)
_MOVES = (*_LAYERS, _activation, _arithmetic, _addition, _joined, _shuffle, _cut, _blocks)


def _as_it_is(x: Var, _: _Source) -> Var:
    return x


def _classes(x: Var, source: _Source) -> Var:
    flat = ops.reshape(ops.global_average_pool(x), (x.shape[0], x.shape[1]))
    return ops.softmax(ops.gemm(flat, source.draw(x.shape[1], 5)), axis=-1)


def _flat(x: Var, source: _Source) -> Var:
    flat = ops.flatten(x, 1)
    return ops.gemm(flat, source.draw(flat.shape[1], 5))


def _to_back(x: Var, source: _Source) -> Var:
    turned = ops.transpose(x, (0, *range(2, x.ndim), 1))
    return ops.reshape(turned, (x.shape[0], -1, x.shape[1])) if source.either() else turned


def _mean(x: Var, source: _Source) -> Var:
    return ops.reduce_mean(x, tuple(range(2, x.ndim)) if source.either() else (1,), keepdims=source.either())


_HEADS = (_as_it_is, _classes, _flat, _to_back, _mean)
