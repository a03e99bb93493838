"""A piece of a network as the search takes it: arrays of its own, with nodes and chunks numbered from 0 on."""

import numpy as np

from allocator.kernels.ordering import (
    AFTER,
    BEFORE,
    BITKEY,
    BITS,
    HEAP,
    LAZY,
    LOOKED,
    PAIRS,
    READS,
    WAITING,
    WRITES,
    OrderPart,
    OrderState,
    StateTable,
)
from allocator.ordering.step_graph import NO_WRITER, StepGraph
from allocator.problem import Column
from allocator.ragged import RaggedArray

_KEYS = 0x0ADE
"""Seed of the random numbers that stand for nodes."""


def cut_out(graph: StepGraph, low: int, high: int) -> OrderPart:
    """Returns the nodes [low, high), where all in front are done and none behind is."""
    lists = [
        rows.lists()[low:high] for rows in (graph.after, graph.before, graph.reads, graph.writes, graph.overwrites)
    ]
    after, before, *touched = lists
    chunk = {c: i for i, c in enumerate(dict.fromkeys(c for group in (*touched[0], *touched[1]) for c in group))}
    users, inner = graph.users.lists(), [[a - low for a in listed if a >= low] for listed in before]
    node = np.zeros((LAZY + 1, high - low + 1), np.int64)
    rows = [RaggedArray.of([a - low for a in listed if a < high] for listed in after), RaggedArray.of(inner)]
    rows += [RaggedArray.of([chunk[c] for c in listed] for listed in group) for group in touched]
    ends = np.cumsum([0, *(len(listed.item) for listed in rows)])
    for row, listed, begin in zip((AFTER, BEFORE, READS, WRITES, PAIRS), rows, ends, strict=False):
        node[row] = listed.start + begin
    node[WAITING, :-1] = [len(listed) for listed in inner]
    node[BITKEY, :-1] = np.random.default_rng(_KEYS).integers(1, 1 << BITS, high - low)
    node[LAZY, :-1] = _lazy(graph, low, high)
    left = [sum(low <= u < high for u in users[c]) + _goes_on(graph, users[c], c, high) for c in chunk]
    near = np.concatenate([listed.item for listed in rows])
    return OrderPart(node, near, np.array((left, graph.size[list(chunk)]), np.int64))


def _lazy(graph: StepGraph, low: int, high: int) -> Column:
    """Returns 1 for nodes that are done best right before the first node that waits for them, in every order; else 0.

    Such a node begins at least as many bytes as it can ever end, so that fewer are alive while it waits; and what it
    needs for itself then, each of those behind it needs as well.
    """
    size, after = graph.size.tolist(), graph.after.lists()
    lists = zip(graph.reads.lists(), graph.writes.lists(), graph.overwrites.lists(), strict=True)
    own, extra, can_wait = [], [], []
    for reads, writes, pairs in lists:
        lasting = sum(size[c] for c in writes if graph.users.start[c] < graph.users.start[c + 1] or graph.kept[c])
        ended = [c for c in reads if not graph.kept[c]]
        over = min((size[c] for c in pairs[::2]), default=0) if ended == pairs[1::2] else 0
        own.append(sum(size[c] for c in writes) - lasting + sum(size[c] for c in ended) - over)
        extra.append(sum(size[c] for c in writes) - sum(size[c] for c in set(pairs[::2])))
        can_wait.append(lasting >= sum(size[c] for c in ended))
    inner = [[b for b in after[node] if b < high] for node in range(low, high)]
    waits = (
        can_wait[low + i] and followers and all(extra[b] >= own[low + i] for b in followers)
        for i, followers in enumerate(inner)
    )
    return np.array([bool(followers) for followers in waits], np.int64)


def _goes_on(graph: StepGraph, users: list[int], chunk: int, high: int) -> bool:
    """Returns whether something behind the nodes up to `high` needs a chunk."""
    return bool(graph.kept[chunk]) or max(users, default=NO_WRITER) >= high


def new_board(part: OrderPart) -> OrderState:
    """Returns an empty state of the part."""
    nodes, chunks = np.zeros((3, part.node.shape[1]), np.int64), np.zeros_like(part.chunk)
    return OrderState(nodes, chunks, np.zeros(LOOKED + 1, np.int64))


def new_table(part: OrderPart, states: int) -> StateTable:
    """Returns an empty table with room for `states` states."""
    words = max(-(-(part.node.shape[1] - 1) // BITS), 1)
    columns = (np.zeros(n, np.int64) for n in (2 * states + 1, 3))
    return StateTable(np.zeros((HEAP + 1, states), np.int64), np.zeros((states, words), np.int64), *columns)


def live_between(graph: StepGraph, cut: int) -> int:
    """Returns the bytes alive when the nodes in front of a cut are done."""
    ended = [max(users, default=NO_WRITER) for users in graph.users.lists()]
    written = graph.writer < cut
    alive = graph.kept.astype(bool) | (np.array(ended, np.int64) >= cut)
    return int(graph.size[written & alive].sum())
