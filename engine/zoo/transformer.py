"""Parts of transformers (Vaswani et al. 2017): linear layers, normalizations, attention with several heads."""

import ops
from engine.graph.var import Var
from engine.zoo.weights import Weights
from ops.tensor.spec import Array

_NEAR = 0.1
"""The standard deviation of scales and biases of normalizations around 1 and 0."""
_BIAS = 0.02
HIDDEN = -1e9
"""Added to the score of a key that may not be read: its share is then 0."""


def dense(x: Var, outputs: int, weights: Weights, kind: str) -> Var:
    """Adds x @ w + b, for the last axis of x."""
    name, inputs = weights.layer(kind), x.shape[-1]
    matrix = weights.draw(f"{name}/weight", inputs, outputs, scale=inputs**-0.5)
    return x @ matrix + weights.draw(f"{name}/bias", outputs, scale=_BIAS)


def norm(x: Var, weights: Weights, epsilon: float = 1e-5) -> Var:
    """Adds a layer normalization of the last axis."""
    name, width = weights.layer("norm"), x.shape[-1]
    scale = weights.draw(f"{name}/scale", width, scale=_NEAR, mean=1.0)
    return ops.layer_norm(x, scale, weights.draw(f"{name}/bias", width, scale=_NEAR), epsilon=epsilon)


def split_heads(x: Var, heads: int) -> Var:
    """Returns [batch, sequence, width] as [batch, heads, sequence, width / heads]."""
    split = ops.reshape(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return ops.transpose(split, (0, 2, 1, 3))


def join_heads(x: Var) -> Var:
    """Returns [batch, heads, sequence, size] as [batch, sequence, heads * size]."""
    batch, heads, sequence, size = x.shape
    return ops.reshape(ops.transpose(x, (0, 2, 1, 3)), (batch, sequence, heads * size))


def attend(q: Var, k: Var, v: Var, bias: Var | Array | None = None) -> Var:
    """Adds attention:

    for each query a mean of values, weighted by how well their keys match; `k` is [..., size, sequence].
    """
    scores = q @ k * float(q.shape[-1] ** -0.5)
    return ops.softmax(scores if bias is None else scores + bias) @ v


def self_attention(x: Var, heads: int, weights: Weights, bias: Var | None = None) -> Var:
    """Adds attention of every position to every position, except those that `bias` hides."""
    width = x.shape[-1]
    q, k, v = (split_heads(dense(x, width, weights, kind), heads) for kind in ("query", "key", "value"))
    mixed = join_heads(attend(q, ops.transpose(k, (0, 1, 3, 2)), v, bias))
    return dense(mixed, width, weights, "attention")


def feed_forward(x: Var, expansion: int, weights: Weights, approximate: str = "none") -> Var:
    """Adds a linear layer that is `expansion` times wider, a Gelu, and a linear layer back to the width."""
    width = x.shape[-1]
    wide = ops.gelu(dense(x, width * expansion, weights, "wide"), approximate)
    return dense(wide, width, weights, "narrow")


def encoder_layer(
    x: Var, heads: int, expansion: int, weights: Weights, *, bias: Var | None = None, epsilon: float = 1e-5
) -> Var:
    """Adds attention and a feed-forward layer, each with a residual addition and a normalization behind, as in BERT."""
    x = norm(x + self_attention(x, heads, weights, bias), weights, epsilon)
    return norm(x + feed_forward(x, expansion, weights), weights, epsilon)
