"""Networks whose arena passes make larger: left to themselves, level 3 would need more bytes than no passes."""

import numpy as np

import ops
from engine import Graph, Var
from ops.tensor.spec import Array


def weights(rng: np.random.Generator, *shape: int) -> Array:
    """Returns seeded small numbers in float32."""
    return rng.normal(0, 0.1, shape).astype(np.float32)


def audio_encoder(samples: int = 16_000, width: int = 64, seed: int = 0) -> Graph:
    """Returns strided convolutions over samples of sound, the first with a normalization of each channel.

    The second, which reads most, is pointwise: no kernel needs a workspace for it, on any processor.
    """
    rng, graph = np.random.default_rng(seed), Graph("audio_encoder")
    h, read = graph.input("x", (1, 1, samples)), 1
    for i, (kernel, stride) in enumerate([(10, 5), (1, 1), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]):
        written = width if i else 2 * width
        h = ops.conv(h, weights(rng, written, read, kernel), weights(rng, written), strides=(stride,))
        if not i:
            h = ops.instance_norm(h, weights(rng, written), weights(rng, written))
        h, read = ops.gelu(h), written
    graph.output(ops.transpose(h, (0, 2, 1)), "y")
    return graph


def side_branches(words: int = 128, width: int = 96, layers: int = 2, seed: int = 0) -> Graph:
    """Returns layers whose sum has an early product: fused with the sum, it keeps its wide input until the sum."""
    rng, graph = np.random.default_rng(seed), Graph("side_branches")

    def wide(x: Var) -> Var:
        return ops.gelu(x @ weights(rng, width, 4 * width))

    def narrow(x: Var) -> Var:
        return x @ weights(rng, 4 * width, width)

    h = graph.input("x", (1, words, width))
    for _ in range(layers):
        early = narrow(wide(h))
        h = early + ops.layer_norm(narrow(wide(h)), weights(rng, width), weights(rng, width))
    graph.output(h, "y")
    return graph


def random_convolutions(seed: int) -> Graph:
    """Returns convolutions of one or two dimensions at random, with normalizations, activations and additions."""
    rng, graph = np.random.default_rng(seed), Graph(f"random_{seed}")
    axes = int(rng.integers(1, 3))
    side = int(rng.integers(300, 3000)) if axes == 1 else int(rng.integers(12, 48))
    h = graph.input("x", (1, int(rng.choice([1, 4, 16])), *[side] * axes))
    for _ in range(rng.integers(2, 7)):
        kernel, stride = (int(rng.integers(1, 4)), int(rng.integers(1, 3))) if h.shape[-1] > 8 else (1, 1)
        width = int(rng.choice([8, 16, 32, 48]))
        w = weights(rng, width, int(h.shape[1]), *[kernel] * axes)
        y = ops.conv(h, w, strides=(stride,) * axes, pads=(kernel // 2,) * 2 * axes)
        h = _finished(rng, y, h)
    graph.output(h, "y")
    return graph


def _finished(rng: np.random.Generator, y: Var, before: Var) -> Var:
    """Returns a convolution with a random normalization, activation and addition behind it."""
    width = int(y.shape[1])
    scale, bias = weights(rng, width), weights(rng, width)
    kind = int(rng.integers(0, 5))
    if kind == 0:
        y = ops.instance_norm(y, scale, bias)
    elif kind == 1:
        y = ops.batch_norm(y, scale, bias, bias, np.ones(width, np.float32))
    y = y * ops.sigmoid(y) if kind == 2 else ops.gelu(y) if kind == 3 else ops.relu(y)
    return y + before if y.shape == before.shape else y
