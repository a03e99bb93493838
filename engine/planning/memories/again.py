"""What it takes to compute a tensor again in several memories: which calls run, and how long that takes.

Calls read what is there at that moment. What is not is computed again before, by few calls. A call takes the seconds of
its operations and of its transfers: of what was there before where it lies, of what is computed again in the memory
that the tensor comes to.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from allocator.memories.problem import transfer_seconds
from engine.lower.calls import Call, Lowered, Storage
from engine.lower.copied import computable
from engine.lower.costs import operation_seconds
from engine.lower.traffic import Access, accesses
from engine.planning.memories.placed import InMemories

MOST_CALLS = 4
"""Calls that run again for one tensor, at most: what follows a convolution, such as its bias, norm and activation.
tools/bench_moves.py has networks in which some do."""
NOTHING: Collection[int] = frozenset()
"""The values that are dropped where none is."""


@frozen(eq=False)
class Again:
    """The values that can be computed again: `makers` has the call of each. `there` has the ticks of each value:
    that which writes it, and the last one that uses it. `access` has what the call of each tick reads and writes.
    """

    lowered: Lowered
    memories: InMemories
    makers: Mapping[int, Call]
    there: Mapping[int, tuple[int, int]]
    access: Mapping[int, Access]

    @classmethod
    def of(cls, lowered: Lowered, memories: InMemories, there: Mapping[int, tuple[int, int]]) -> "Again":
        """Returns the values of calls that can be computed again where they lie in memories; none that rules name."""
        access, row_of = {access.tick: access for access in accesses(lowered)}, memories.contents.row_of
        makers = {v: call for v, call in computable(lowered).items() if not memories.is_ruled(row_of[v])}
        return cls(lowered, memories, makers, there, access)

    def values(self, value: int, tick: int, dropped: Collection[int] = NOTHING) -> tuple[int, ...]:
        """Returns what to compute again, in order, to have a value right before a tick, itself at last.

        Nothing where that cannot be, or takes too many calls. What is in `dropped` is not there.
        """
        chosen = list[int]()
        return tuple(chosen) if self._find(value, tick, dropped, chosen, MOST_CALLS) else ()

    def _find(self, value: int, tick: int, dropped: Collection[int], chosen: list[int], most: int) -> bool:
        if value in chosen:
            return True
        if value not in self.makers or not most:
            return False
        for read in self.makers[value].inputs:
            is_there = self._is_there(read, tick) and read not in dropped
            if not is_there and not self._find(read, tick, dropped, chosen, most - 1):
                return False
        chosen.append(value)
        return len(chosen) <= MOST_CALLS

    def _is_there(self, value: int, tick: int) -> bool:
        if self.lowered.values[value].storage is Storage.CONSTANT:
            return True
        first, last = self.there.get(value, (tick, 0))
        return first < tick <= last

    def seconds(self, values: tuple[int, ...]) -> tuple[float, ...]:
        """Returns the seconds of computing values again, where the last one comes to each memory."""
        row_of, calls = self.memories.contents.row_of, [self.makers[value] for value in values]
        own = {row_of[v] for call in calls for v in call.outputs + call.workspace if v in row_of}
        moved: Any = np.array(
            [(row, *pair, 1) for call in calls for row, pair in self.access[call.tick].by_row(row_of).items()],
            np.int64,
        ).reshape(-1, 4)
        row, *columns = moved.T
        everywhere = transfer_seconds(self.memories.memories, *columns)
        here = everywhere[np.arange(len(row)), self.memories.assigned.memory[row]]
        seconds = np.where(np.isin(row, list(own))[:, None], everywhere, here[:, None]).sum(axis=0)
        return tuple((seconds + sum(map(operation_seconds, calls))).tolist())
