"""What holds of every order: who comes before whom, where an order can be cut, and bytes that no order can avoid."""

import numpy as np
import numpy.typing as npt

from allocator.ordering.step_graph import NOBODY, StepGraph
from allocator.problem import Column, column

Matrix = npt.NDArray[np.bool_]


def reach(net: StepGraph) -> Matrix:
    """[a, b]: a is b, or is done before b begins, in every order. Nodes squared, in bytes."""
    reachable = np.eye(len(net), dtype=bool)
    after = net.after.lists()
    for node in range(len(net) - 1, -1, -1):
        for follower in after[node]:
            reachable[node] |= reachable[follower]
    return reachable


def cuts(before: Matrix) -> tuple[int, ...]:
    """Where every order has the same nodes in front, from 0 to all: series composition of partial orders.

    Between two cuts, nodes can be ordered by themselves.
    """
    count = len(before)
    padded = np.vstack((before, np.zeros((1, count), bool)))
    first_unordered = np.argmin(padded, axis=0)  # of each node: the first that need not be done before it
    least = np.minimum.accumulate(first_unordered[::-1])[::-1]
    return (0, *(k for k in range(1, count) if least[k] >= k), count)


def floors(net: StepGraph, before: Matrix) -> Column:
    """By node: bytes that are alive while it runs, whatever the order.

    What it reads and writes, without what it may write over its inputs; and what something before it wrote that
    something behind it reads.
    """
    total = np.zeros(len(net), np.int64)
    later = _needed_later(net, before)
    everywhere = np.ones(len(net), bool)
    for c, (size, writer) in enumerate(zip(net.size.tolist(), net.writer.tolist(), strict=True)):
        there = everywhere if writer == NOBODY else before[writer]
        users = later[c].copy()
        users[net.users.entry[net.users.start[c] : net.users.start[c + 1]]] = True
        total[there & users] += size
        if writer != NOBODY and not users[writer]:
            total[writer] += size  # its writer needs its bytes, even if nobody reads them
    return column(total - _overlaps(net, later))


def _needed_later(net: StepGraph, before: Matrix) -> Matrix:
    """[c, v]: chunk c is read behind node v in every order, or kept."""
    needed = np.zeros((len(net.size), len(net)), bool)
    for c, users in enumerate(net.users.lists()):
        if net.kept[c]:
            needed[c] = True
        elif users:
            needed[c] = before[:, users].any(axis=1)
            alone = [u for u in users if not (before[u, users].sum() > 1)]
            needed[c, alone] = False  # it reads the chunk itself, and nobody must behind it
    return needed


def _overlaps(net: StepGraph, later: Matrix) -> Column:
    """By node: most bytes that it can write over its inputs, when they end there."""
    most = np.zeros(len(net), np.int64)
    for node, pairs in enumerate(net.overwrites.lists()):
        used = set[int]()
        for src, dest in zip(pairs[::2], pairs[1::2], strict=True):
            if not later[dest, node] and src not in used and dest not in used:
                used |= {src, dest}
                most[node] += net.size[src]
    return column(most)
