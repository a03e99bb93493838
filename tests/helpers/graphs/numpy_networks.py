"""Transformers and an LSTM in plain numpy and float64, with the weights that a graph of the zoo has."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
from attrs import field, frozen

from engine.graph.graph import Graph
from ops.tensor.spec import Array


@frozen(eq=False)
class ByHand:
    """Layers by the names that the zoo gives them; each use of a kind takes the next one."""

    arrays: Mapping[str, Array]
    _next: dict[str, int] = field(factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> "ByHand":
        """Returns the network with the constants of a graph."""
        return cls({var.name: array.astype(np.float64) for var, array in graph.constants.items()})

    def layer(self, kind: str) -> str:
        number = self._next.get(kind, 0)
        self._next[kind] = number + 1
        return f"{kind}_{number}"

    def dense(self, x: Array, kind: str) -> Array:
        name = self.layer(kind)
        y: Array = x @ self.arrays[f"{name}/weight"] + self.arrays[f"{name}/bias"]
        return y

    def norm(self, x: Array, epsilon: float = 1e-5) -> Array:
        name, centred = self.layer("norm"), x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
        y: Array = scaled * self.arrays[f"{name}/scale"] + self.arrays[f"{name}/bias"]
        return y

    def encoder_layer(self, x: Array, heads: int, seen: Array, epsilon: float = 1e-5) -> Array:
        q, k, v = (self.dense(x, kind) for kind in ("query", "key", "value"))
        x = self.norm(x + self.dense(attention(q, k, v, heads, seen), "attention"), epsilon)
        return self.norm(x + self.dense(gelu(self.dense(x, "wide")), "narrow"), epsilon)

    def decoder_layer(self, x: Array, heads: int) -> Array:
        causal = np.tri(x.shape[1], dtype=bool)
        q, k, v = np.split(self.dense(self.norm(x), "query_key_value"), 3, axis=-1)
        x = x + self.dense(attention(q, k, v, heads, causal), "attention")
        return x + self.dense(gelu_tanh(self.dense(self.norm(x), "wide")), "narrow")


def attention(q: Array, k: Array, v: Array, heads: int, seen: Array) -> Array:
    """Returns attention; where `seen`, broadcast to [batch, heads, queries, keys], is false, a key is not seen."""
    shape = (*q.shape[:2], heads, q.shape[2] // heads)
    q, k, v = (a.reshape(shape) for a in (q, k, v))
    scores = np.where(seen, np.einsum("bshd,bthd->bhst", q, k) / math.sqrt(shape[-1]), -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    mixed: Array = np.einsum("bhst,bthd->bshd", shares / shares.sum(-1, keepdims=True), v)
    return mixed.reshape(*shape[:2], -1)


def gelu(x: Array) -> Array:
    y: Array = x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return y


def gelu_tanh(x: Array) -> Array:
    y: Array = x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return y


def lstm_last(x: Array, w: Array, r: Array, bias: Array) -> Array:
    """Returns the last h [hidden] of one direction over x [time, inputs]; gates i, o, f, c, a bias for each product."""
    hidden = r.shape[1]
    h, cell = np.zeros(hidden), np.zeros(hidden)
    for row in x:
        i, o, f, c = np.split(w @ row + r @ h + bias[: 4 * hidden] + bias[4 * hidden :], 4)
        cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(c)
        h = _sigmoid(o) * np.tanh(cell)
    return h


def _sigmoid(x: Array) -> Array:
    y: Array = 1 / (1 + np.exp(-x))
    return y


def pieces(length: int, step: int) -> Iterator[slice]:
    """Returns 0:length in consecutive parts."""
    for begin in range(0, length, step):
        yield slice(begin, begin + step)
