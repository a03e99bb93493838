"""Two networks of realistic sizes whose data decide sizes: the tail of a detector, and a greedy decoder; with numpy."""

import math

import numpy as np
from attrs import frozen

import engine
import ops
from engine import Graph, Var
from ops.tensor.spec import Array

CLASSES, ANCHORS = 4, 3
WIDTH, WORDS = 256, 5000


@frozen(eq=False)
class Weights:
    """Drawn one after the other."""

    rng: np.random.Generator

    def draw(self, *shape: int, scale: float = 1.0) -> Array:
        """Draws normal weights. With scale 1, a product with them is about as large as what is multiplied."""
        inputs = shape[0] if len(shape) == 2 else math.prod(shape[1:])
        return (self.rng.standard_normal(shape) * scale / math.sqrt(inputs)).astype(np.float32)


def detector(image: int | str = 128) -> Graph:
    """Builds a detector of "image" [1, 3, h, w]: features by convolution, boxes and scores of anchors, then a tail."""
    graph, weights = Graph("detector"), Weights(np.random.default_rng(0))
    x = graph.input("image", (1, 3, image, image))
    for channels in (16, 32, 64):
        x = ops.relu(ops.conv2d(x, weights.draw(channels, x.shape[1], 3, 3, scale=1.4), pads=1))
        x = ops.max_pool(x, 2, strides=2)
    offsets = ops.conv2d(x, weights.draw(4 * ANCHORS, 64, 1, 1))
    scores = ops.sigmoid(ops.conv2d(x, weights.draw(CLASSES * ANCHORS, 64, 1, 1, scale=2.0)))
    boxes = ops.transpose(ops.reshape(offsets, (1, 4, -1)), (0, 2, 1))
    seen = ops.reshape(ops.transpose(x, (0, 2, 3, 1)), (-1, 64))
    _add_tail(graph, boxes, ops.reshape(scores, (1, CLASSES, -1)), seen)
    return graph


def tail(boxes: int | str = "boxes") -> Graph:
    """Builds the tail, of "boxes" [1, boxes, 4], "scores" [1, CLASSES, boxes] and "features" [boxes, 64].

    "kept" are rows (image, class, box) of those of a score above the input `least` that overlap no better one. Of
    those, as many as have a score above the input `sure`, best first: "shown" has their boxes, "scores" their scores,
    "classes" what a layer makes of their features.
    """
    graph = Graph("tail")
    inputs = graph.input("boxes", (1, boxes, 4)), graph.input("scores", (1, CLASSES, boxes))
    _add_tail(graph, *inputs, graph.input("features", (boxes, 64)))
    return graph


def _add_tail(graph: Graph, offsets: Var, scores: Var, features: Var) -> None:
    least, sure = (graph.input(name, (), "float32") for name in ("least", "sure"))
    low = offsets[:, :, :2]
    boxes: Var = ops.concat([low, low + ops.abs(offsets[:, :, 2:]) + 0.1], axis=2)
    kept = ops.non_max_suppression(boxes, scores, 200, 0.5, least)
    graph.output(kept, "kept")
    kept_scores = ops.gather_nd(scores, kept)
    number = ops.count_nonzero(ops.less(sure, kept_scores))
    best, places = ops.top_k(kept_scores, number, axis=0)
    numbers = ops.reshape(ops.gather(kept, places)[:, 2:], (-1,))
    graph.output(ops.gather(ops.reshape(boxes, (-1, 4)), numbers), "shown")
    graph.output(best, "scores")
    cells = ops.mod(numbers, graph.constant(features.shape[0]))
    layer = Weights(np.random.default_rng(5)).draw(64, 512)
    graph.output(ops.softmax(ops.relu(ops.gather(features, cells) @ layer)), "classes")


@frozen(eq=False)
class Decoder:
    """The weights of a greedy decoder: embeddings, one block of attention over all tokens so far, a layer above it."""

    table: Array
    q: Array
    k: Array
    v: Array
    up: Array
    down: Array
    head: Array

    @staticmethod
    def drawn(seed: int = 1) -> "Decoder":
        """Returns a decoder with random weights."""
        weights = Weights(np.random.default_rng(seed))
        q, k, v = (weights.draw(WIDTH, WIDTH, scale=2.0) for _ in range(3))
        table, head = weights.draw(WORDS, WIDTH, scale=WORDS**0.5), weights.draw(WIDTH, WORDS)
        return Decoder(table, q, k, v, weights.draw(WIDTH, 4 * WIDTH), weights.draw(4 * WIDTH, WIDTH), head)

    def graph(self) -> Graph:
        """Builds the graph: inputs "prompt" [n], "end" (a token) and "most" (tokens in all), output "tokens"."""
        graph = Graph("decoder")
        prompt = graph.input("prompt", ("n",), "int64")
        end, most = (graph.input(name, (), "int64") for name in ("end", "most"))
        one = graph.constant(np.ones(1, np.int64))

        def turn(tokens: Var) -> Var:
            token = ops.arg_max(self._logits(tokens), axis=1, keepdims=False)
            return ops.concat([tokens, token])

        def goes_on(tokens: Var) -> Var:
            unlike = ops.logical_not(ops.equal(ops.reshape(tokens[-1:], ()), end))
            count = ops.reduce_sum(ops.expand(one, (tokens.shape[0],)), keepdims=False)
            more: Var = ops.logical_and(unlike, ops.less(count, most))
            return more

        graph.output(engine.while_loop(goes_on, turn, prompt), "tokens")
        return graph

    def _logits(self, tokens: Var) -> Var:
        """Returns the logits of the token behind the last one."""
        x: Var = ops.gather(self.table, tokens)
        last = x[-1:]
        scores = ops.softmax((last @ self.q) @ ops.transpose(x @ self.k) * WIDTH**-0.5)
        mixed = last + scores @ (x @ self.v)
        hidden: Var = mixed + ops.tanh(mixed @ self.up) @ self.down
        return hidden @ self.head

    def numpy(self, prompt: Array, end: int, most: int) -> list[int]:
        """Computes the same tokens as the graph, in numpy."""
        tokens: list[int] = prompt.tolist()
        while tokens[-1] != end and len(tokens) < most:
            x = self.table[tokens]
            scores = (x[-1:] @ self.q) @ (x @ self.k).T * np.float32(WIDTH**-0.5)
            weights = np.exp(scores - scores.max())
            mixed = x[-1:] + weights / weights.sum() @ (x @ self.v)
            hidden = mixed + np.tanh(mixed @ self.up) @ self.down
            tokens.append(int(np.argmax(hidden @ self.head)))
        return tokens
