"""Random networks that can be cut into stripes: chains of convolutions, pools and elementwise operators, and blocks."""

from typing import Any

import numpy as np

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var

_Rng = np.random.Generator


def random_chain(seed: int, layers: int = 5) -> Graph:
    """Returns a network of odd sizes, with random strides, pads, dilations and groups."""
    rng = np.random.default_rng(seed)
    graph = engine.Graph("chain")
    rows, columns = (int(n) for n in rng.integers(17, 40, 2))
    x: Var = graph.input("x", (1, int(rng.choice([3, 8, 16])), rows, columns))
    for _ in range(layers):
        if min(x.shape[2:]) < 7:
            break
        x = rng.choice(np.array([_conv, _conv, _depthwise, _pool, _elementwise, _residual, _branches]))(rng, x)
    graph.output(x, "y")
    return graph


def large_images() -> Graph:
    """Returns a network whose first images are much larger than its input and what comes last."""
    rng = np.random.default_rng(3)
    graph = engine.Graph("large")
    x: Var = graph.input("x", (1, 3, 64, 48))
    for outputs in (16, 32):
        w = _weights(rng, x, outputs, x.shape[1], 3, 3)
        x = ops.max_pool(ops.relu(ops.conv2d(x, w, pads=(1, 1, 1, 1))), (2, 2), strides=(2, 2))
    graph.output(ops.softmax(ops.reduce_mean(x, axes=(2, 3), keepdims=False)), "y")
    return graph


def _weights(rng: _Rng, x: Var, *shape: int) -> Var:
    values = rng.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]))
    constant: Var = x.graph.constant(values.astype(np.float32))
    return constant


def _window(rng: _Rng) -> dict[str, Any]:
    return {
        "strides": tuple(int(n) for n in rng.integers(1, 3, 2)),
        "pads": tuple(int(n) for n in rng.integers(0, 3, 4)),
        "dilations": tuple(int(n) for n in rng.integers(1, 3, 2)),
    }


def _conv(rng: _Rng, x: Var) -> Var:
    group = int(rng.choice([1, 1, 2])) if x.shape[1] % 2 == 0 else 1
    kernel = tuple(int(n) for n in rng.choice([1, 2, 3], 2))
    w = _weights(rng, x, int(rng.choice([8, 16, 24])), x.shape[1] // group, *kernel)
    return ops.relu(ops.conv2d(x, w, _weights(rng, x, w.shape[0]), group=group, **_window(rng)))


def _depthwise(rng: _Rng, x: Var) -> Var:
    return ops.conv2d(x, _weights(rng, x, x.shape[1], 1, 3, 3), group=x.shape[1], **_window(rng))


def _pool(rng: _Rng, x: Var) -> Var:
    kernel = tuple(int(n) for n in rng.integers(2, 4, 2))
    pads = tuple(int(n) for n in rng.integers(0, 2, 4))
    options: dict[str, Any] = {"strides": (int(rng.integers(1, 3)), 2), "pads": pads}
    options["ceil_mode"] = bool(rng.integers(2))
    if rng.integers(2):
        return ops.max_pool(x, kernel, **options)
    return ops.average_pool(x, kernel, count_include_pad=bool(rng.integers(2)), **options)


def _elementwise(rng: _Rng, x: Var) -> Var:
    scale, shift = (_weights(rng, x, x.shape[1], 1, 1) for _ in range(2))
    return ops.sigmoid(x * scale + shift)


def _residual(rng: _Rng, x: Var) -> Var:
    w = _weights(rng, x, x.shape[1], x.shape[1], 3, 3)
    return ops.relu(x + ops.conv2d(ops.relu(x), w, pads=(1, 1, 1, 1)))


def _branches(rng: _Rng, x: Var) -> Var:
    return ops.concat([_same(rng, x, 1), _same(rng, x, 3)], axis=1)


def _same(rng: _Rng, x: Var, kernel: int) -> Var:
    return ops.conv2d(x, _weights(rng, x, 8, x.shape[1], kernel, kernel), pads=(kernel // 2,) * 4)
