"""Random graphs of concatenations, for what is computed inside others."""

import numpy as np

import ops
from engine import Graph, Var
from tests.helpers.graphs.random_graphs import Choose


def concat_graph(choose: Choose) -> Graph:
    """Returns concatenations of activations, of each other, of views, twice of the same.

    Of rows, or of the channels of a batch, whose images lie apart then.
    """
    graph, lead = Graph("concats"), ((), (1,), (3,))[choose(3)]
    pool = [graph.input("x", (*lead, 2, 4)), graph.constant(np.ones((*lead, 1, 4), np.float32))]
    for _ in range(2 + choose(14)):
        pool.append(_grown(pool, len(lead), choose))
    for i in range(1 + choose(3)):
        graph.output(pool[-1 - choose(min(4, len(pool)))], f"y{i}")
    return graph


def _grown(pool: list[Var], axis: int, choose: Choose) -> Var:
    x = pool[-1 - choose(min(4, len(pool)))]
    kind, rows = choose(9), x.shape[axis]
    if kind < 3 and sum(v.shape[axis] for v in pool[-3:]) < 40:
        return ops.concat([pool[-1 - choose(min(5, len(pool)))] for _ in range(1 + choose(3))], axis=axis)
    if kind == 3:
        start = choose(rows)
        return ops.slice(x, [start], [start + 1 + choose(rows - start)], [axis])
    if kind == 4:
        return ops.reshape(ops.reshape(x, (*x.shape[:axis], rows * 4)), x.shape)
    if kind == 5:
        same = [v for v in pool if v.shape == x.shape]
        return ops.add(x, same[choose(len(same))])
    if kind == 6 and axis:
        return ops.conv1d(x, np.ones((1 + choose(2), rows, 1), np.float32))
    return (ops.relu, ops.neg, ops.tanh)[choose(3)](x)
