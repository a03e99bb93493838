"""Random networks that are trained: residuals, shared weights, views, several readers; and chains of equal layers."""

from collections.abc import Callable

import numpy as np

import engine
import ops
from engine import Graph, Var

Choose = Callable[[int], int]
_WIDTH = 6
_ROWS = 4
_OPTIMISERS = (engine.SGD(0.05), engine.SGD(0.05, 0.9), engine.Adam(0.01))


def random_training(choose: Choose, most: int = 14) -> Graph:
    """Returns one step of training of a random network."""
    graph = Graph("training")
    x = graph.input("x", (_ROWS, _WIDTH))
    weights = [_weight(graph, i) for i in range(1 + choose(4))]
    pool = [x @ weights[0]]
    for _ in range(2 + choose(most)):
        pool.append(_layer(choose, pool, weights))
    for i in range(choose(3)):
        graph.output(pool[choose(len(pool))], f"y{i}")
    total = pool[-1] + pool[choose(len(pool))]
    loss = ops.reduce_mean(total * total, axes=None, keepdims=False)
    for weight in weights[1:]:  # each is needed for a gradient
        loss = loss + ops.reduce_sum(weight * weight, None, keepdims=False) * 0.001
    engine.train_step(graph, loss, _OPTIMISERS[choose(len(_OPTIMISERS))])
    return graph


def _weight(graph: Graph, number: int) -> Var:
    rng = np.random.default_rng(number)
    return graph.parameter(rng.normal(0, _WIDTH**-0.5, (_WIDTH, _WIDTH)).astype(np.float32), f"w{number}")


def _layer(choose: Choose, pool: list[Var], weights: list[Var]) -> Var:
    recent = pool[-1 - choose(min(2, len(pool)))]
    other = pool[choose(len(pool))]
    kind = choose(8)
    if kind < 2:
        return ops.relu(recent @ weights[choose(len(weights))])
    if kind < 4:
        return recent + other if kind == 2 else recent * other
    if kind == 4:
        turned = ops.transpose(ops.reshape(recent, (_ROWS, 2, _WIDTH // 2)), (0, 2, 1))
        return ops.reshape(ops.tanh(turned), (_ROWS, _WIDTH))
    if kind == 5:
        return ops.softmax(recent @ ops.transpose(other, (1, 0))) @ other
    if kind == 6:
        half = recent[:, : _WIDTH // 2]
        return ops.concat([ops.sigmoid(half), recent[:, _WIDTH // 2 :]], axis=1)
    return (ops.tanh, ops.neg, ops.sigmoid)[choose(3)](recent)


def chain(layers: int, width: int = 64, rows: int = 256) -> Graph:
    """Returns a perceptron of equal layers, whose activations are larger than its weights."""
    graph = Graph(f"chain{layers}")
    x = graph.input("x", (rows, width))
    rng = np.random.default_rng(0)
    for i in range(layers):
        weight = graph.parameter(rng.normal(0, width**-0.5, (width, width)).astype(np.float32), f"w{i}")
        x = ops.tanh(x @ weight)
    engine.train_step(graph, ops.reduce_mean(x * x, axes=None, keepdims=False), engine.SGD(0.1))
    return graph
