"""Local search over assignments, by load: what moves to a faster memory pushes out what loses least there."""

from random import Random

import numpy as np
from attrs import frozen

from allocator.kernels import memory_search
from allocator.kernels.climb import MODULUS
from allocator.memories.greedy import Filler, ranks
from allocator.memories.integer_costs import IntegerCosts
from allocator.memories.units import Units
from allocator.problem import Column, column
from allocator.solvers.search.budget import SLICE, Budget

_LOOKED_AT = 1_000_000
"""Units that are looked at between two looks at the clock."""
_ALLOWANCE = 32
"""An assignment may be worse than the best by this part of its cost, at first."""


@frozen(eq=False)
class LocalSearch:
    """Searches for assignments whose load fits into memories of some capacities."""

    units: Units
    filler: Filler
    costs: IntegerCosts
    seed: int

    def improved(self, memory: Column, capacities: Column, steps: int, budget: Budget) -> Column:
        """Returns the best assignment that is reached from one: the memory of each unit.

        Units that do not fit where they are lie elsewhere first. The result is worse than the start only where that
        does not keep the capacities.
        """
        units, filler, count = self.units, self.filler, len(capacities)
        if not len(units):
            return memory
        regret = np.where(units.can, self.costs.regret, np.inf)
        order = np.argsort(-np.where(units.can, self.costs.regret, 0).max(axis=1), kind="stable")
        state = filler.filled(order, capacities, memory, ranks(units.can, regret))
        total = self.costs.total(column(state.memory))
        since, until = _lives(units)
        chance = np.array([Random(self.seed).randrange(1, MODULUS)])
        search = memory_search.MemorySearch(
            *filler.mode.numbers(
                *(self.costs.rows, since, until, column(state.memory).copy()),
                *(np.zeros(len(units), np.int64), np.full(len(units), -1), chance, np.array([0, total, total])),
            )
        )
        kernel, step = filler.mode.kernel(memory_search.search), 0
        while step < steps:
            portion = budget.portion(min(steps - step, max(1, min(SLICE, _LOOKED_AT // (len(units) * count)))))
            allowance = int(search.cursor[memory_search.BEST] // _ALLOWANCE * (1 - step / steps))
            done = kernel(state, search, portion, allowance) if portion else 0
            budget.spend(done)
            step += done
            if done < portion or not portion:
                break
        return column(search.best)


def _lives(units: Units) -> tuple[Column, Column]:
    """Returns the ticks that matter in which each unit has bytes: the first, and the one behind the last."""
    since, until = np.full(len(units), len(units.ticks)), np.zeros(len(units), np.int64)
    np.minimum.at(since, units.part_unit, units.first)
    np.maximum.at(until, units.part_unit, units.last)
    return np.minimum(since, until), until
