"""Which steps of a program touch which bytes, and what is wrong where steps run at once: by brute force."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen

from allocator.derive.chunks import Chunks
from allocator.problem import Column
from allocator.steps import Program
from tests.helpers.allocator.brute_force import owner_of

Matrix = npt.NDArray[np.bool_]
Edge = tuple[int, int]


def data_edges(program: Program, *, views: bool) -> list[Edge]:
    """Returns edges from writers to readers; the feed is before all and the fetch after all.

    With `views`, a view counts as a write of the value that it shows and a read of its source.
    """
    last = len(program.steps) - 1
    result = {(0, tick) for tick in range(1, last + 1)} | {(tick, last) for tick in range(last)}
    writer = {v: tick for tick, step in enumerate(program.steps) for v in step.writes}
    shown = {view.out: tick for tick, step in enumerate(program.steps) for view in step.views}
    for tick, step in enumerate(program.steps):
        result |= {(writer[owner_of(program, v)[0]], tick) for v in step.reads}
        if views:
            named = (*step.reads, *(view.src for view in step.views))
            result |= {((writer | shown)[v], tick) for v in named}
    return sorted((a, b) for a, b in result if a != b)


def closure(count: int, edges: list[Edge]) -> Matrix:
    """Returns [a, b]: step a is over before step b begins. Warshall's algorithm."""
    closed = np.zeros((count, count), bool)
    for a, b in edges:
        closed[a, b] = True
    for middle in range(count):
        closed |= closed[:, [middle]] & closed[[middle], :]
    return closed


def by_levels(program: Program) -> Program:
    """Returns the same steps level after level of their dependences; in one level as before."""
    level = list[int]()
    edges = data_edges(program, views=True)
    for tick in range(len(program.steps)):
        level.append(max((level[a] + 1 for a, b in edges if b == tick), default=0))
    order = sorted(range(len(level)), key=lambda tick: level[tick])
    return evolve(program, steps=tuple(program.steps[tick] for tick in order))


def touching(program: Program) -> dict[int, set[int]]:
    """Returns the steps that write or read the bytes of each value that owns some."""
    result: dict[int, set[int]] = {}
    for tick, step in enumerate(program.steps):
        for value in step.reads + step.writes:
            result.setdefault(owner_of(program, value)[0], set()).add(tick)
    return result


@frozen
class _Access:
    """An access of a step to the bytes [low, high) of a value."""

    tick: int
    value: int
    low: int
    high: int
    is_write: bool

    def conflicts(self, other: "_Access") -> bool:
        return self.low < other.high and other.low < self.high and (self.is_write or other.is_write)


@frozen(eq=False)
class Placed:
    """A program in an arena."""

    program: Program
    chunks: Chunks
    offset: Column = field(repr=False)

    def races(self, order: Matrix) -> list[tuple[int, int]]:
        """Returns pairs of values whose bytes two steps touch in no order, at least one of them writing."""
        conflicting = (p for p in combinations(self._accesses(), 2) if p[0].tick != p[1].tick and p[0].conflicts(p[1]))
        return [(a.value, b.value) for a, b in conflicting if not order[a.tick, b.tick] and not order[b.tick, a.tick]]

    def wrong_bytes(self) -> list[int]:
        """Returns the values that are read when absent, or overwritten in a way that their step does not allow."""
        holder = dict[int, int]()
        result = list[int]()
        for tick in range(len(self.program.steps)):
            now = [a for a in self._accesses() if a.tick == tick]
            reads, writes = [a for a in now if not a.is_write], [a for a in now if a.is_write]
            for a in reads:
                owner = owner_of(self.program, a.value)[0]
                result += [a.value for byte in range(a.low, a.high) if holder.get(byte) != owner]
            result += [a.value for a, b in combinations(writes, 2) if a.conflicts(b)]
            result += [a.value for a in writes for b in reads if a.conflicts(b) and not self._may(tick, a, b)]
            holder |= {byte: a.value for a in writes for byte in range(a.low, a.high)}
        return result

    def _may(self, tick: int, write: _Access, read: _Access) -> bool:
        allowed = (o for o in self.program.steps[tick].overwrites if (o.out, o.src) == (write.value, read.value))
        return any(write.low == read.low + o.offset for o in allowed)

    def _accesses(self) -> Iterator[_Access]:
        start = self.offset[self.chunks.chunk_of] + self.chunks.offset_in_chunk
        for tick, step in enumerate(self.program.steps):
            for values, is_write in ((step.reads, False), (step.writes, True)):
                for v in values:
                    low = int(start[v])
                    yield _Access(tick, v, low, low + self.program.sizes[v], is_write)
