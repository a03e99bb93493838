"""GPT-2 small (Radford et al. 2019), which keeps the keys and values of what it has read in the arena.

The caches are parameters that nobody trains: they lie in the arena from run to run, and a run writes those of the
tokens that it is fed into their places. So a run costs what its new tokens cost, and nothing is copied or grows.
"""

import numpy as np
from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.text.errors import OptionError
from engine.zoo.network import Count, Seed, Size, checked
from engine.zoo.transformer import HIDDEN, attend, dense, feed_forward, join_heads, norm, split_heads
from engine.zoo.weights import Weights
from ops.tensor.spec import Array

_EMBEDDED = 0.5
"""Deviation of both vectors that make one of a token; what a layer adds to them is about as large."""


@frozen
class GptSize:
    """The size of a GPT: `width` must be a multiple of `heads`."""

    layers: int
    width: int
    heads: int
    vocabulary: int = 50257
    positions: int = 1024
    expansion: int = 4


SMALL = GptSize(12, 768, 12)


@frozen
class Steps:
    """The number of texts in a run, the tokens of each that are fed, and the most tokens in the cache."""

    batch: int = 1
    tokens: int = 1
    capacity: int = 128


@checked
def gpt2(batch: Count = 1, tokens: Size = 1, capacity: Size = 128, seed: Seed = 0) -> Graph:
    """Returns a graph. Inputs, int64: "ids" [batch, tokens], and "position" [1], the position of the first of them.

    Output "y": logits [batch, 50257] of the token after the last of them. Weights are seeded. Feed a text in order,
    from position 0, in pieces of `tokens`; position + tokens is at most `capacity` (up to 1024). A text may begin again
    at any time: what lies behind the position is not read.
    """
    return decoder(SMALL, "gpt2", Steps(batch, tokens, capacity), seed)


def decoder(size: GptSize, name: str, steps: Steps, seed: int = 0) -> Graph:
    """Returns a graph as `gpt2` with any size."""
    if not steps.tokens <= steps.capacity <= size.positions:
        sizes = f"tokens is {steps.tokens}, and capacity {steps.capacity}"
        raise OptionError(f"{name}: tokens is at most capacity, and that at most {size.positions}; {sizes}")
    graph = Graph(name)
    weights = Weights(graph, seed)
    ids = graph.input("ids", (steps.batch, steps.tokens), "int64")
    places = graph.input("position", (1,), "int64") + np.arange(steps.tokens)
    token, position = _embeddings(size, weights)
    x = ops.gather(token, ids) + ops.gather(position, places)
    seen = ops.less_or_equal(np.arange(steps.capacity), ops.unsqueeze(places, (1,)))
    bias = ops.where(seen, 0.0, np.array(HIDDEN, np.float32))
    for layer in range(size.layers):
        caches = [_Cache.empty(graph, f"{what}_{layer}", size, steps, places) for what in ("keys", "values")]
        x = x + _attention(norm(x, weights), size, weights, caches, bias)
        x = x + feed_forward(norm(x, weights), size.expansion, weights, "tanh")
    graph.output(ops.linear(norm(x[:, -1], weights), token), "y")
    return graph


def trained_decoder(size: GptSize, name: str, batch: int, tokens: int, seed: int = 0) -> Graph:
    """Returns a graph that is trained on whole texts, with no caches and the same seeded weights as parameters.

    Inputs, int64 [batch, tokens]: "ids", and "label", the token after each. Output "loss": the mean cross entropy.
    """
    if tokens > size.positions:
        raise OptionError(f"{name}: tokens is at most {size.positions}, not {tokens}")
    graph = Graph(name)
    weights = Weights(graph, seed, training=True)
    ids, label = (graph.input(n, (batch, tokens), "int64") for n in ("ids", "label"))
    token, position = _embeddings(size, weights)
    x = ops.gather(token, ids) + position[:tokens]
    bias = np.triu(np.full((tokens, tokens), HIDDEN, np.float32), 1)
    for _ in range(size.layers):
        x = x + _attention(norm(x, weights), size, weights, [], bias)
        x = x + feed_forward(norm(x, weights), size.expansion, weights, "tanh")
    logits = ops.linear(ops.reshape(norm(x, weights), (batch * tokens, size.width)), token)
    graph.output(ops.softmax_cross_entropy(logits, ops.reshape(label, (batch * tokens,))), "loss")
    return graph


def _embeddings(size: GptSize, weights: Weights) -> tuple[Var, Var]:
    """Adds a vector for each token, and one for each position."""
    token = weights.draw("token/weight", size.vocabulary, size.width, scale=_EMBEDDED)
    return token, weights.draw("position/weight", size.positions, size.width, scale=_EMBEDDED)


@frozen(eq=False)
class _Cache:
    """Keys or values of one layer: a parameter [capacity, batch, heads, size]; a run writes its rows `places`."""

    graph: Graph
    held: Var
    places: Var

    @classmethod
    def empty(cls, graph: Graph, name: str, size: GptSize, steps: Steps, places: Var) -> "_Cache":
        shape = (steps.capacity, steps.batch, size.heads, size.width // size.heads)
        return cls(graph, graph.parameter(np.zeros(shape, np.float32), name, trainable=False), places)

    def after(self, new: Var) -> Var:
        """Returns all rows, after those of [batch, heads, tokens, size] were written to their places."""
        rows = ops.transpose(new, (2, 0, 1, 3))
        return self.graph.assign(self.held, ops.scatter_nd(self.held, ops.unsqueeze(self.places, (1,)), rows))


def _attention(x: Var, size: GptSize, weights: Weights, caches: list[_Cache], bias: Var | Array) -> Var:
    """Adds attention of each token to itself and to those before it: all of `caches`, or of x where there are none."""
    both = ops.split(dense(x, 3 * size.width, weights, "query_key_value"), 3, axis=2)
    q, *new = (split_heads(part, size.heads) for part in both)
    if caches:
        keys, values = (cache.after(part) for cache, part in zip(caches, new, strict=True))
        keys, values = ops.transpose(keys, (1, 2, 3, 0)), ops.transpose(values, (1, 2, 0, 3))
    else:
        keys, values = ops.transpose(new[0], (0, 1, 3, 2)), new[1]
    return dense(join_heads(attend(q, keys, values, bias)), size.width, weights, "attention")
