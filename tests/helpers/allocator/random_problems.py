"""Problems that are valid by construction, out of any source of chance."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.problem import FREE, Conflicts, Problem


class Dice(Protocol):
    """A source of chance."""

    def number(self, low: int, high: int, /) -> int:
        """Returns a number in [low, high]; the simplest is `low`."""


@frozen
class Kind:
    """Properties that a problem may have.

    `horizon` is the last begin; no chunk lives longer than that, or than `longest`. `overwrites` and `pins` tell how
    many of 100 possible chunks; pinned mostly below `highest`. `is_timeless`: conflicts replace lifetimes.
    """

    max_size: int
    horizon: int
    alignments: tuple[int, ...]
    overwrites: int = 0
    pins: int = 0
    highest: int = 64
    is_timeless: bool = False
    longest: int = 1_000


@define
class _Rows:
    """The chunks so far; a chain is a root and its overwriters, each as (chunk, its offset in the root)."""

    begin: list[int] = field(factory=list)
    end: list[int] = field(factory=list)
    size: list[int] = field(factory=list)
    alignment: list[int] = field(factory=list)
    pinned: list[int] = field(factory=list)
    src: list[int] = field(factory=list)
    dest: list[int] = field(factory=list)
    overwrite_offset: list[int] = field(factory=list)
    chain: list[list[tuple[int, int]]] = field(factory=list)
    chain_of: list[int] = field(factory=list)

    def add(self, begin: int, length: int, size: int, alignment: int) -> None:
        self.begin.append(begin)
        self.end.append(begin + length)
        self.size.append(size)
        self.alignment.append(alignment)
        self.pinned.append(FREE)

    def add_root(self, begin: int, length: int, size: int, alignment: int) -> None:
        self.chain_of.append(len(self.chain))
        self.chain.append([(len(self.size), 0)])
        self.add(begin, length, size, alignment)

    def add_overwriter(self, dest: int, at: int, begin: int, length: int, size: int) -> None:
        chain = self.chain[self.chain_of[dest]]
        self.src.append(len(self.size))
        self.dest.append(dest)
        self.overwrite_offset.append(at)
        self.chain_of.append(self.chain_of[dest])
        chain.append((len(self.size), chain[-1][1] + at))
        self.add(begin, length, size, 1)

    def may_be_overwritten(self) -> list[int]:
        return [c[-1][0] for c in self.chain if self.end[c[-1][0]] - self.begin[c[-1][0]] > 1]

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Returns all pairs of chunks of different chains."""
        count = len(self.size)
        return ((a, b) for a in range(count) for b in range(a) if self.chain_of[a] != self.chain_of[b])

    def overlap_in_time(self, a: int, b: int) -> bool:
        return self.begin[a] < self.end[b] and self.begin[b] < self.end[a]


def built(dice: Dice, count: int, kind: Kind) -> Problem:
    """Returns a problem of `count` chunks."""
    rows = _Rows()
    for _ in range(count):
        _add_chunk(dice, kind, rows)
    pairs = [p for p in rows.pairs() if rows.overlap_in_time(*p)]
    conflicts = None
    if kind.is_timeless:
        pairs = _some(dice, pairs if dice.number(0, 1) else list(rows.pairs()))
        conflicts = Conflicts([a for a, _ in pairs], [b for _, b in pairs])
    _pin(dice, kind, rows, pairs)
    columns = (rows.begin, rows.end, rows.size, rows.alignment, rows.pinned, rows.src, rows.dest, rows.overwrite_offset)
    return Problem(*columns, conflicts)


def _add_chunk(dice: Dice, kind: Kind, rows: _Rows) -> None:
    length, size = dice.number(1, min(kind.horizon, kind.longest)), dice.number(0, kind.max_size)
    targets = rows.may_be_overwritten() if dice.number(0, 99) >= 100 - kind.overwrites else []
    if not targets:
        alignment = kind.alignments[dice.number(0, len(kind.alignments) - 1)]
        rows.add_root(dice.number(0, kind.horizon), length, size, alignment)
        return
    dest = targets[dice.number(0, len(targets) - 1)]
    size = min(size, rows.size[dest])
    begin = rows.end[dest] - 1
    if kind.is_timeless:
        begin = dice.number(rows.begin[dest] + 1, rows.end[dest] + 1)
    rows.add_overwriter(dest, dice.number(0, rows.size[dest] - size), begin, length, size)


def _some(dice: Dice, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns a quarter, a half or three quarters of the pairs."""
    every = 2 ** len(pairs) - 1
    share, one, other = dice.number(0, 2), dice.number(0, every), dice.number(0, every)
    mask = (one & other, one, one | other)[share]
    return [p for k, p in enumerate(pairs) if mask >> k & 1]


def _pin(dice: Dice, kind: Kind, rows: _Rows, pairs: list[tuple[int, int]]) -> None:
    """Pins roots, each where it conflicts with no pinned chain: at a random offset, or the next one above."""
    near: dict[int, set[int]] = {}
    for a, b in pairs:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    placed: dict[int, int] = {}
    for chain in rows.chain:
        root = chain[0][0]
        if dice.number(0, 99) < 100 - kind.pins:
            continue
        step = rows.alignment[root]
        offset = dice.number(0, kind.highest // step) * step
        while any(
            offset + at < placed[b] + rows.size[b] and placed[b] < offset + at + rows.size[a]
            for a, at in chain
            for b in near.get(a, set()) & placed.keys()
        ):
            offset += step
        rows.pinned[root] = offset
        placed |= {a: offset + at for a, at in chain}


def relabelled(problem: Problem, order: Sequence[int]) -> Problem:
    """Returns the same chunks in another order: chunk k was chunk order[k]."""
    taken = np.array(order, np.int64)
    new_id = np.argsort(taken)
    columns: dict[str, Any] = {
        name: getattr(problem, name)[taken] for name in ("begin", "end", "size", "alignment", "pinned")
    }
    if problem.conflicts is not None:
        columns["conflicts"] = Conflicts(new_id[problem.conflicts.one], new_id[problem.conflicts.other])
    return evolve(problem, **columns, src=new_id[problem.src], dest=new_id[problem.dest])
