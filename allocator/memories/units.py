"""Chains of overwrites as what is assigned: their bytes in each tick that matters, and their seconds in each memory."""

from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from allocator.breadths import first_tick
from allocator.memories.problem import Mask, MemoryProblem, Seconds, possible
from allocator.problem import Column, column, distinct
from allocator.ragged import row_starts


@frozen(eq=False)
class Units:
    """Unit k is the chain of root ids[k]; it lies in one memory. `unit_of` is the unit of each chunk.

    `ticks`: those in which most chunks are alive, that is, each other tick has no chunk alive that one of them lacks.
    So what fits in them fits in all. A chunk with bytes of its own is a part: `size` bytes in ticks[first:last]; those
    of unit k are parts start[k] to start[k + 1]. `seconds` and `can`, by unit and memory: the time of all transfers,
    infinity where the unit may not lie, and whether it may. `begin` and `end`: the lifetime in ticks of the problem.
    """

    problem: MemoryProblem
    ids: Column
    unit_of: Column
    ticks: Column
    start: Column
    first: Column
    last: Column
    size: Column
    seconds: Seconds
    can: Mask
    begin: Column
    end: Column

    @classmethod
    def of(cls, problem: MemoryProblem) -> "Units":
        """Returns the chains of a problem whose lifetimes decide."""
        chunks = problem.chunks
        root = chunks.chains.root
        ids = np.flatnonzero(root == np.arange(len(chunks)))
        unit_of = np.searchsorted(ids, root)
        seconds = np.zeros((len(ids), len(problem.memories)))
        np.add.at(seconds, unit_of, problem.seconds)
        enter, end = first_tick(chunks), chunks.end
        last_end = np.zeros(len(ids), np.int64)
        np.maximum.at(last_end, unit_of, end)
        rows = np.flatnonzero((chunks.size > 0) & (enter < end))
        rows = rows[np.argsort(unit_of[rows], kind="stable")]
        ticks, can = _fullest_ticks(enter[rows], end[rows]), possible(problem)[ids]
        return cls(
            problem=problem,
            ids=ids,
            unit_of=unit_of,
            ticks=ticks,
            start=row_starts(unit_of[rows], len(ids)),
            first=np.searchsorted(ticks, enter[rows]),
            last=np.searchsorted(ticks, end[rows]),
            size=chunks.size[rows],
            seconds=np.where(can, seconds, np.inf),
            can=can,
            begin=chunks.begin[ids],
            end=last_end,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def part_unit(self) -> Column:
        """Returns the unit of each part."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @property
    def capacities(self) -> Column:
        """Returns the bytes of each memory."""
        return column([memory.capacity for memory in self.problem.memories])

    def cost(self, memory: Column) -> float:
        """Returns the seconds of all transfers, by the memory of each unit."""
        return float(self.seconds[np.arange(len(self)), memory].sum())

    def load(self, is_in: Mask) -> Column:
        """Returns the bytes of the chosen units in each tick that matters."""
        weight = np.where(is_in[self.part_unit], self.size, 0)
        change = np.zeros(len(self.ticks) + 1, np.int64)
        np.add.at(change, self.first, weight)
        np.subtract.at(change, self.last, weight)
        return column(np.cumsum(change)[:-1])

    def over_lives(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Returns, for each part, its bytes times the sum of a number of each tick over its life.

        Rows of numbers, such as one for each memory, give as many rows.
        """
        total = np.zeros((*values.shape[:-1], len(self.ticks) + 1), values.dtype)
        np.cumsum(values, axis=-1, out=total[..., 1:])
        parts: npt.NDArray[Any] = self.size * (total[..., self.last] - total[..., self.first])
        return parts

    def of_units(self, weight: Seconds) -> Seconds:
        """Returns the sum of weights (one for each part) of each unit."""
        total: Seconds = np.append(0.0, np.cumsum(weight))
        return total[self.start[1:]] - total[self.start[:-1]]


def _fullest_ticks(enter: Column, end: Column) -> Column:
    """Returns the ticks in which something enters and after which something ends before the next enters."""
    ticks = distinct(enter)
    following = np.searchsorted(ticks, distinct(end))  # the first tick that is not before an end
    return ticks[distinct(following) - 1]
