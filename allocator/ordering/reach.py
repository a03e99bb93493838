"""Facts that hold for every order: which node is done before which, where an order can be cut, bytes alive at least."""

import numpy as np
import numpy.typing as npt

from allocator.ordering.step_graph import NO_WRITER, StepGraph
from allocator.problem import Column, column

Matrix = npt.NDArray[np.bool_]


def reach(graph: StepGraph) -> Matrix:
    """Returns a matrix: [a, b] says that a is b, or is done before b begins, in every order. Nodes squared, in bytes.

    Nodes squared, in bytes.
    """
    reachable = np.eye(len(graph), dtype=bool)
    after = graph.after.lists()
    for node in range(len(graph) - 1, -1, -1):
        for follower in after[node]:
            reachable[node] |= reachable[follower]
    return reachable


def cuts(before: Matrix) -> tuple[int, ...]:
    """Returns where every order has the same nodes in front, from 0 to all: series composition of partial orders.

    Between two cuts, nodes can be ordered by themselves.
    """
    count = len(before)
    padded = np.vstack((before, np.zeros((1, count), bool)))
    first_unordered = np.argmin(padded, axis=0)  # of each node: the first that need not be done before it
    least = np.minimum.accumulate(first_unordered[::-1])[::-1]
    return (0, *(k for k in range(1, count) if least[k] >= k), count)


def floors(graph: StepGraph, before: Matrix) -> Column:
    """Returns the bytes that are alive while each node runs, in every order.

    These are the bytes that it reads and writes, without those that it may write over its inputs; and what something
    before it wrote that something behind it reads.
    """
    total = np.zeros(len(graph), np.int64)
    later = _needed_later(graph, before)
    everywhere = np.ones(len(graph), bool)
    for c, (size, writer) in enumerate(zip(graph.size.tolist(), graph.writer.tolist(), strict=True)):
        there = everywhere if writer == NO_WRITER else before[writer]
        users = later[c].copy()
        users[graph.users.row(c)] = True
        total[there & users] += size
        if writer != NO_WRITER and not users[writer]:
            total[writer] += size  # its writer needs its bytes, even if nothing reads them
    return column(total - _overlaps(graph, later))


def _needed_later(graph: StepGraph, before: Matrix) -> Matrix:
    """Returns a matrix: [c, v] says that chunk c is read behind node v in every order, or kept."""
    needed = np.zeros((len(graph.size), len(graph)), bool)
    for c, users in enumerate(graph.users.lists()):
        if graph.kept[c]:
            needed[c] = True
        elif users:
            needed[c] = before[:, users].any(axis=1)
            alone = [u for u in users if not (before[u, users].sum() > 1)]
            needed[c, alone] = False  # it reads the chunk itself, and no node must read it behind it
    return needed


def _overlaps(graph: StepGraph, later: Matrix) -> Column:
    """Returns the most bytes that each node can write over its inputs, when they end there."""
    most = np.zeros(len(graph), np.int64)
    for node, pairs in enumerate(graph.overwrites.lists()):
        used = set[int]()
        for src, dest in zip(pairs[::2], pairs[1::2], strict=True):
            if not later[dest, node] and src not in used and dest not in used:
                used |= {src, dest}
                most[node] += graph.size[src]
    return column(most)
