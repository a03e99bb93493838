"""An encoder transformer (Vaswani et al. 2017, post-norm as in BERT): MiniLM's size unless told otherwise."""

import numpy as np
from attrs import frozen

import ops
from engine.graph import Graph
from engine.var import Var
from ops.spec import Array


@frozen
class EncoderSize:
    """`width` must be a multiple of `heads`; the feed-forward layer is `expansion` times as wide.

    `sequence` and `batch` may be names.
    """

    layers: int = 6
    width: int = 384
    heads: int = 12
    sequence: int | str = 128
    batch: int | str = 1
    expansion: int = 4


def encoder(size: EncoderSize | None = None, seed: int = 0) -> Graph:
    """Input "x": float32 [batch, sequence, width] (embedded tokens). Output "y": the same shape. Weights are seeded."""
    size = size or EncoderSize()
    weights = _Weights(np.random.default_rng(seed))
    graph = Graph(f"encoder{size.layers}x{size.width}")
    x = graph.input("x", (size.batch, size.sequence, size.width))
    for _ in range(size.layers):
        x = _norm(x + _attention(x, size, weights), weights)
        x = _norm(x + _feed_forward(x, size, weights), weights)
    graph.output(x, "y")
    return graph


@frozen(eq=False)
class _Weights:
    rng: np.random.Generator

    def normal(self, *shape: int, scale: float) -> Array:
        """Normally distributed float32."""
        return self.rng.normal(0.0, scale, shape).astype(np.float32)


def _linear(x: Var, outputs: int, weights: _Weights) -> Var:
    inputs = x.shape[-1]
    return x @ weights.normal(inputs, outputs, scale=inputs**-0.5) + weights.normal(outputs, scale=0.02)


def _norm(x: Var, weights: _Weights) -> Var:
    width = x.shape[-1]
    return ops.layer_norm(x, 1 + weights.normal(width, scale=0.1), weights.normal(width, scale=0.1))


def _attention(x: Var, size: EncoderSize, weights: _Weights) -> Var:
    q, k, v = (_heads(_linear(x, size.width, weights), size) for _ in range(3))
    scores = q @ ops.transpose(k, (0, 1, 3, 2)) * (size.width // size.heads) ** -0.5
    mixed = ops.transpose(ops.softmax(scores) @ v, (0, 2, 1, 3))
    return _linear(ops.reshape(mixed, x.shape), size.width, weights)


def _heads(x: Var, size: EncoderSize) -> Var:
    split = ops.reshape(x, (*x.shape[:2], size.heads, size.width // size.heads))
    return ops.transpose(split, (0, 2, 1, 3))


def _feed_forward(x: Var, size: EncoderSize, weights: _Weights) -> Var:
    return _linear(ops.gelu(_linear(x, size.width * size.expansion, weights)), size.width, weights)
