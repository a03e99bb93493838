"""Graphs whose sizes data decide, again and again: each cut keeps rows that are not nought in some column."""

from collections.abc import Sequence

import numpy as np

import ops
from engine import Graph, Var
from ops.registry import find
from ops.tensor.dims import SAMPLES, sample_of
from ops.tensor.spec import Array

WIDTH = 4


def staged_graph(cuts: Sequence[int], keep: Sequence[bool] = (), length: int | str = "n") -> Graph:
    """Returns a graph of "x" [n, WIDTH]: each cut computes, and keeps the rows whose element in a column is positive.

    `keep` tells which of the tensors that a cut calculates with are outputs too, so that they stay alive to the end.
    """
    graph = Graph("sieve")
    x = graph.input("x", (length, WIDTH))
    for i, column in enumerate(cuts):
        if i < len(keep) and keep[i]:
            graph.output(ops.transpose(x, (1, 0)), f"kept{i}")
        x = ops.exp(ops.relu(x) * 0.5) - 1.0
        x = sieve(x, column)
    graph.output(ops.softmax(x), "y")
    return graph


def sieve(x: Var, column: int) -> Var:
    """Returns the rows of x [n, WIDTH] whose element in a column is not zero: as many as the data decide."""
    graph = x.graph
    assert isinstance(graph, Graph)
    one = ops.reshape(ops.slice(x, (column,), (column + 1,), (1,)), (-1,))
    (number,) = graph.add(find("count_nonzero"), [one])
    fitting = [max(1, sample_of(x.shape[0], j) * (SAMPLES - j) // (SAMPLES + 1)) for j in range(SAMPLES)]
    (rows,) = graph.add(find("nonzero"), [one], {"count": graph.data_dim(number, 0, fitting)})
    return ops.gather(x, ops.reshape(rows, (-1,)), axis=0)


def rows(count: int, seed: int) -> Array:
    """Returns feeds of such a graph."""
    return np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)
