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

_LOOKS = 8
"""Units and ticks that are looked at in the time of a step of branch and bound. tools/bench_memories.py shows what this
is worth."""
_ALLOWANCE = 32
"""An assignment may be worse than the best by this part of its cost, at first."""


@frozen(eq=False)
class LocalSearch:
    """Searches for assignments whose load fits into memories of some capacities."""

    units: Units
    filler: Filler
    costs: IntegerCosts
    seed: int

    def improved(self, memory: Column, capacities: Column, steps: int, budget: Budget, nodes: int) -> Column:
        """Returns the best assignment that is reached from one in so many steps, or nodes: the memory of each unit.

        Units that do not fit where they are lie elsewhere first. The result is worse than the start only where that
        does not keep the capacities.
        """
        units, filler = self.units, self.filler
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
                *(np.zeros(len(units), np.int64), np.full(len(units), -1), *np.zeros((2, len(units)), np.int64)),
                *(chance, np.array([0, total, total, 0])),
            )
        )
        kernel, step, most = filler.mode.kernel(memory_search.search), 0, budget.spent + nodes
        while step < steps and (portion := budget.portion(min(SLICE, most - budget.spent))) > 0:
            part = max(step / steps, 1 - (most - budget.spent) / nodes)
            allowance = int(search.cursor[memory_search.BEST] // _ALLOWANCE * (1 - part))
            search.cursor[memory_search.LOOKS] = 0
            done = kernel(state, search, steps - step, allowance, portion * _LOOKS)
            budget.spend(int(search.cursor[memory_search.LOOKS]) // _LOOKS + 1)
            step += done
            if not done:
                break
        return column(search.best)


def _lives(units: Units) -> tuple[Column, Column]:
    """Returns the ticks that matter in which each unit has bytes: the first, and the one behind the last."""
    since, until = np.full(len(units), len(units.ticks)), np.zeros(len(units), np.int64)
    np.minimum.at(since, units.part_unit, units.first)
    np.maximum.at(until, units.part_unit, units.last)
    return np.minimum(since, until), until
