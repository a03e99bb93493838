"""Greedy assignments: unit after unit, each into the memory where it costs least of those that have room."""

import numpy as np
from attrs import frozen

from allocator.kernels import assignment
from allocator.kernels.mode import KernelMode
from allocator.memories.problem import Mask, Seconds
from allocator.memories.units import Units
from allocator.problem import Column, column


@frozen(eq=False)
class Filler:
    """Fills memories with units, in any order."""

    units: Units
    mode: KernelMode

    @classmethod
    def of(cls, units: Units) -> "Filler":
        """Returns what fills the memories of these units."""
        return cls(units, KernelMode.of(len(units)))

    def fill(self, order: Column, capacities: Column, *, slowest: bool = False) -> Column:
        """Returns the memory of each unit, the number of memories where none has room.

        A unit goes where it costs least, or most if `slowest`. Units that can lie in one memory alone come first, and
        keep the order among themselves.
        """
        nowhere = np.full(len(self.units), len(capacities))
        state = self.filled(order, capacities, nowhere, ranks(self.units.can, self.units.seconds * (1 - 2 * slowest)))
        return column(state.memory)

    def filled(self, order: Column, capacities: Column, wanted: Column, rank: Column) -> assignment.Assignment:
        """Returns memories that are filled in an order: each unit where it is wanted, else by its rank of memories."""
        units, mode = self.units, self.mode
        forced = units.can.sum(axis=1) <= 1
        numbers = mode.numbers(order[np.argsort(~forced[order], kind="stable")], wanted)
        state = self.empty(capacities, rank)
        mode.kernel(assignment.fill)(state, *numbers)
        return state

    def empty(self, capacities: Column, rank: Column) -> assignment.Assignment:
        """Returns the assignment in which each unit lies nowhere."""
        units, count = self.units, len(capacities)
        return assignment.Assignment(
            *self.mode.numbers(
                *(units.start, units.first, units.last, units.size, rank, capacities),
                *(np.zeros(count * len(units.ticks), np.int64), np.full(len(units), count)),
                *np.zeros((2, count), np.int64),
            )
        )


def ranks(can: Mask, seconds: Seconds) -> Column:
    """Returns the memories in which each unit may lie, by cost (ties: in the order of memories), then their number.

    A row has one number more than there are memories; the last ones mean nothing where a unit may not lie everywhere.
    """
    count = can.shape[1]
    order = np.argsort(np.where(can, seconds, np.inf), axis=1, kind="stable")
    order = np.where(np.take_along_axis(can, order, axis=1), order, count)
    return np.hstack((order, np.full((len(can), 1), count))).reshape(-1)


def by_arrival(units: Units) -> Column:
    """Returns the units in the order in which their lifetimes begin."""
    return np.argsort(units.begin, kind="stable")


def by_density(units: Units) -> Column:
    """Returns the units by the seconds that they save in their fastest memory for each byte and tick of their life.

    That is the order of a knapsack (Dantzig 1957), whose weight is the area of a lifetime.
    """
    life = (units.end - units.begin).astype(float)
    return _by_worth(units, _most_bytes(units) * life)


def by_contention(units: Units) -> Column:
    """Returns the units by the seconds that they save for each byte in the ticks in which room is scarce.

    That is where not all have room that would cost least in one memory. A byte counts there as many times as the room
    is exceeded, and nothing elsewhere: a knapsack at the peaks.
    """
    wanted = units.seconds.argmin(axis=1)
    pressure = np.zeros(len(units))
    for m, capacity in enumerate(units.capacities.tolist()):
        is_in = wanted == m
        excess = np.maximum(0.0, units.load(is_in) / capacity - 1)
        pressure[is_in] = units.of_units(units.over_lives(excess))[is_in]
    return _by_worth(units, pressure)


def by_size(units: Units) -> Column:
    """Returns the units by their most bytes, the largest first: what is large finds room hardest."""
    return np.argsort(-_most_bytes(units), kind="stable")


def _most_bytes(units: Units) -> Column:
    most = np.zeros(len(units), np.int64)
    np.maximum.at(most, units.part_unit, units.size)
    return most


def _by_worth(units: Units, weight: Seconds) -> Column:
    """Returns the units by seconds saved over weight, the most first; what weighs nothing comes before all."""
    least = units.seconds.min(axis=1)
    most = np.where(units.can, units.seconds, -np.inf).max(axis=1)
    saved = np.where(units.can.any(axis=1), most - least, 0.0)
    worth = np.full(len(units), np.inf)
    np.divide(saved, weight, out=worth, where=weight > 0)
    return np.argsort(-worth, kind="stable")
