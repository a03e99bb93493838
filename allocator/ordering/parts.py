"""A piece of a network as the search takes it: arrays of its own, with nodes and chunks numbered from 0 on."""

from collections.abc import Iterable

import numpy as np

from allocator.kernels.ordering import BITS, Board, Part, Table
from allocator.ordering.network import NOBODY, Network, Rows
from allocator.problem import Column

_KEYS = 0x0ADE
"""Seed of the random numbers that stand for nodes."""
_ENTRY_ROWS = 7


def cut_out(net: Network, low: int, high: int) -> Part:
    """The nodes [low, high), where all in front are done and none behind is."""
    lists = [rows.lists()[low:high] for rows in (net.before, net.after, net.reads, net.writes, net.overwrites)]
    before, after, reads, writes, pairs = lists
    chunk = {c: i for i, c in enumerate(dict.fromkeys(c for group in (*reads, *writes) for c in group))}
    users = net.users.lists()
    left = [sum(low <= u < high for u in users[c]) + _goes_on(net, users[c], c, high) for c in chunk]
    start = np.cumsum([0, *(len(found) // 2 for found in pairs)])
    return Part(
        np.array([sum(b >= low for b in found) for found in before], np.int64),
        *_rows([[a - low for a in found if a < high] for found in after]),
        *_rows([[chunk[c] for c in found] for found in reads]),
        *_rows([[chunk[c] for c in found] for found in writes]),
        start.astype(np.int64),
        np.array([chunk[c] for found in pairs for c in found], np.int64),
        np.array(left, np.int64),
        net.size[list(chunk)].copy(),
        np.random.default_rng(_KEYS).integers(1, 1 << BITS, high - low),
        *_rows([[b - low for b in found if b >= low] for found in before]),
        _lazy(net, low, high),
    )


def _lazy(net: Network, low: int, high: int) -> Column:
    """1 for nodes that are done best right before the first of those that wait for them, whatever the order.

    Such a node begins at least as many bytes as it can ever end, so that fewer are alive while it waits; and what it
    needs for itself then, each of those behind it needs as well.
    """
    size, after = net.size.tolist(), net.after.lists()
    lists = zip(net.reads.lists(), net.writes.lists(), net.overwrites.lists(), strict=True)
    own, extra, can_wait = [], [], []
    for reads, writes, pairs in lists:
        lasting = sum(size[c] for c in writes if net.users.start[c] < net.users.start[c + 1] or net.kept[c])
        ended = [c for c in reads if not net.kept[c]]
        over = min((size[c] for c in pairs[::2]), default=0) if ended == pairs[1::2] else 0
        own.append(sum(size[c] for c in writes) - lasting + sum(size[c] for c in ended) - over)
        extra.append(sum(size[c] for c in writes) - sum(size[c] for c in set(pairs[::2])))
        can_wait.append(lasting >= sum(size[c] for c in ended))
    inner = [[b for b in after[node] if b < high] for node in range(low, high)]
    waits = (
        can_wait[low + i] and found and all(extra[b] >= own[low + i] for b in found) for i, found in enumerate(inner)
    )
    return np.array([bool(found) for found in waits], np.int64)


def _goes_on(net: Network, users: list[int], chunk: int, high: int) -> bool:
    """Whether something behind the nodes up to `high` needs a chunk."""
    return bool(net.kept[chunk]) or max(users, default=NOBODY) >= high


def _rows(lists: Iterable[list[int]]) -> tuple[Column, Column]:
    rows = Rows.of(lists)
    return rows.start.copy(), rows.entry.copy()


def new_board(part: Part) -> Board:
    """Where states of the part are played through."""
    nodes, chunks = len(part.waiting), len(part.size)
    return Board(*(np.zeros(n, np.int64) for n in (nodes, chunks, chunks, nodes, 4, nodes)))


def new_table(part: Part, states: int) -> Table:
    """Room for so many states."""
    words = max(-(-len(part.waiting) // BITS), 1)
    columns = (np.zeros(n, np.int64) for n in (2 * states + 1, states, states, 3))
    return Table(np.zeros((_ENTRY_ROWS, states), np.int64), np.zeros((states, words), np.int64), *columns)


def live_between(net: Network, cut: int) -> int:
    """Bytes alive when the nodes in front of a cut are done."""
    ended = [max(users, default=NOBODY) for users in net.users.lists()]
    written = net.writer < cut
    alive = net.kept.astype(bool) | (np.array(ended, np.int64) >= cut)
    return int(net.size[written & alive].sum())
