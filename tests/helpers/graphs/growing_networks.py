"""Networks whose arena passes make larger: left to themselves, level 3 would need more bytes than no passes."""

import numpy as np

import ops
from engine import Graph, Var
from ops.tensor.spec import Array


def weights(rng: np.random.Generator, *shape: int) -> Array:
    """Returns seeded small numbers in float32."""
    return rng.normal(0, 0.1, shape).astype(np.float32)


def audio_encoder(samples: int = 16_000, width: int = 64, seed: int = 0) -> Graph:
    """Returns seven strided convolutions over samples of sound, the first with a normalization of each channel."""
    rng, graph = np.random.default_rng(seed), Graph("audio_encoder")
    h, read = graph.input("x", (1, 1, samples)), 1
    for i, (kernel, stride) in enumerate([(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]):
        h = ops.conv(h, weights(rng, width, read, kernel), weights(rng, width), strides=(stride,))
        if not i:
            h = ops.instance_norm(h, weights(rng, width), weights(rng, width))
        h, read = ops.gelu(h), width
    graph.output(ops.transpose(h, (0, 2, 1)), "y")
    return graph


def quantised_encoder(words: int = 128, width: int = 96, heads: int = 4, layers: int = 2, seed: int = 0) -> Graph:
    """Returns layers of an encoder whose products are of bytes, with scales that each run finds."""
    rng, graph = np.random.default_rng(seed), Graph("quantised_encoder")

    def dense(x: Var, columns: int) -> Var:
        codes, scale, zero = ops.dynamic_quantize_linear(x)
        w = rng.integers(-127, 127, (x.shape[-1], columns)).astype(np.int8)
        product = ops.matmul_integer(codes, w, zero, np.zeros((), np.int8))
        return ops.cast(product, "float32") * (scale * 0.01) + weights(rng, columns)

    def split(x: Var) -> Var:
        return ops.transpose(ops.reshape(x, (1, words, heads, width // heads)), (0, 2, 1, 3))

    h = graph.input("x", (1, words, width))
    for _ in range(layers):
        q, k, v = (split(dense(h, width)) for _ in range(3))
        mixed = ops.softmax((q @ ops.transpose(k, (0, 1, 3, 2))) * 0.2) @ v
        mixed = ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (1, words, width))
        h = ops.layer_norm(h + dense(mixed, width), weights(rng, width), weights(rng, width))
        f = dense(h, 4 * width)
        f = f * 0.5 * (1.0 + ops.erf(f / np.sqrt(2, dtype=np.float32)))
        h = ops.layer_norm(h + dense(f, width), weights(rng, width), weights(rng, width))
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
