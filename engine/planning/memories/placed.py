"""Where a plan lies in several memories, as data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from allocator.bounds import proved_bound
from allocator.memories.memory import Memory
from allocator.memories.plan import MemoryPlan
from allocator.memories.problem import MemoryProblem
from allocator.parts import part_of
from allocator.problem import FREE, Column, Plan, Problem, column
from allocator.solvers.base import arena_bytes
from engine.check.memories import Room
from engine.lower.calls import Lowered
from engine.lower.copied import Copied
from engine.lower.traffic import Traffic


@frozen(eq=False)
class Contents:
    """What lies in memories: the chunks of a program, a row each, and behind them its constants.

    `row_of` has the row of each value. `constants` are the values of the constants by row, `sizes` their bytes; arrays
    that are the same have one row. `allowed`, of shape (rows, memories), says where rules let a row lie.
    """

    row_of: Mapping[int, int]
    chunks: int
    constants: tuple[int, ...]
    sizes: Column = field(converter=column)
    traffic: Traffic
    allowed: Any

    @property
    def count(self) -> int:
        """Returns how many rows there are."""
        return self.chunks + len(self.constants)

    def problem(self, chunks: Problem, memories: tuple[Memory, ...]) -> MemoryProblem:
        """Returns the problem of chunks and constants; the latter are alive in all ticks."""
        count, traffic = len(self.constants), self.traffic
        added: dict[str, Any] = {
            "begin": np.zeros(count, np.int64),
            "end": np.full(count, max(int(chunks.end.max(initial=1)), 1)),
            "size": self.sizes,
            "alignment": np.ones(count, np.int64),
            "pinned": np.full(count, FREE),
        }
        columns: dict[str, Any] = {name: np.concatenate((getattr(chunks, name), rows)) for name, rows in added.items()}
        return MemoryProblem(
            evolve(chunks, **columns), memories, traffic.read, traffic.written, traffic.calls, self.allowed
        )

    def names(self, lowered: Lowered) -> list[str]:
        """Returns the name of the tensor that each row was made for."""
        names = [""] * self.count
        for value, row in sorted(self.row_of.items(), key=lambda pair: lowered.values[pair[0]].is_view):
            names[row] = names[row] or lowered.values[value].name
        return names


@frozen
class Moved:
    """The tensors of a plan that change their memory, as copies of the calls without any, in the order of ticks.

    `values` has the copy that each of them makes. `plain_seconds`: what all transfers take without them; 0 where
    nothing fits then.
    """

    copies: tuple[Copied, ...]
    values: tuple[int, ...]
    plain_seconds: float


@frozen(eq=False)
class InMemories:
    """Where a plan lies in several memories.

    Row i of `problem` and `assigned` is row i of the `contents`. `assigned` has the memory of each row, its offset from
    the first byte of that memory, and what that costs. The chunks of memory m lie there as `parts[m]` says, which has
    its arena and its bound; that part begins at byte `starts[m]` of the whole arena.
    """

    problem: MemoryProblem
    assigned: MemoryPlan
    contents: Contents
    parts: tuple[Plan, ...]
    starts: tuple[int, ...]

    @property
    def memories(self) -> tuple[Memory, ...]:
        """Returns the memories, in the order in which they lie behind each other."""
        return self.problem.memories

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """Returns the bytes [low, high) of the arena that are those of each memory."""
        return tuple((low, low + part.arena_bytes) for low, part in zip(self.starts, self.parts, strict=True))

    def is_ruled(self, chunk: int) -> bool:
        """Returns whether a rule says where a chunk may lie."""
        writable = [memory.writable for memory in self.memories]
        return bool((self.contents.allowed[chunk] != writable).any())

    def rows_in(self, memory: int, *, constants: bool) -> Column:
        """Returns the constants, or the chunks, that lie in a memory."""
        is_constant = np.arange(len(self.problem)) >= self.contents.chunks
        return column(np.flatnonzero((self.assigned.memory == memory) & (is_constant == constants)))

    @property
    def rooms(self) -> tuple[Room, ...]:
        """Returns the memories as the judge of places wants to know them."""
        memory_of, offset, rooms = self.assigned.memory.tolist(), self.assigned.offset.tolist(), []
        constants = [pair for pair in self.contents.row_of.items() if pair[1] >= self.contents.chunks]
        for m, (memory, (low, high)) in enumerate(zip(self.memories, self.ranges, strict=True)):
            weights = tuple((value, offset[row]) for value, row in constants if memory_of[row] == m)
            rooms.append(Room(memory.name, low, high, memory.capacity, memory.alignment, memory.writable, weights))
        return tuple(rooms)

    def constant_bytes(self, memory: int) -> int:
        """Returns the bytes of the constants in a memory."""
        return int(self.problem.chunks.size[self.rows_in(memory, constants=True)].sum())

    @property
    def arena(self) -> Plan:
        """Returns the plan of all chunks in one arena; that of a memory which has all, unless it aligns them more."""
        count = self.contents.chunks
        memory = self.assigned.memory[:count]
        problem = part_of(self.problem.chunks, np.arange(len(self.problem)) < count)
        for m, part in enumerate(self.parts):
            is_all = (memory == m).all() and not self.starts[m]
            if is_all and not (problem.alignment % self.memories[m].alignment).any():
                return part
        offset = np.where(problem.size > 0, self.assigned.offset[:count] + np.array(self.starts, np.int64)[memory], 0)
        largest = max(self.parts, key=lambda part: part.arena_bytes)
        return Plan(offset, arena_bytes(problem, offset), proved_bound(problem), largest.strategy)
