"""The best assignment of few units, with its proof: branch and bound by the prices of the relaxation."""

import math

import numpy as np
from attrs import define, field

from allocator.kernels import memory_branching
from allocator.kernels.memory_branching import ENDED, PAUSED
from allocator.kernels.memory_search import MOST_COST
from allocator.memories.addresses import Addresses, Placement
from allocator.memories.greedy import Filler, ranks
from allocator.memories.integer_costs import IntegerCosts
from allocator.memories.relaxation import Relaxation
from allocator.problem import Column, column
from allocator.solvers.search.budget import SLICE, Budget

MOST_UNITS = 64
"""Units up to which all assignments may be tried."""
_MOST_LEAVES = 2_000
"""Assignments that fit by load, and whose addresses are planned."""


@define(eq=False)
class Exact:
    """A search from the best placement so far, if there is one; it is replaced by better ones.

    `is_whole`: all assignments were looked at. `unknown`: the least cost of those that fit by load, for which no
    addresses were found, though they were not proved not to exist.
    """

    addresses: Addresses
    filler: Filler
    costs: IntegerCosts
    relaxation: Relaxation
    best: tuple[Placement, ...]
    unknown: float = field(default=math.inf, init=False)
    is_whole: bool = field(default=False, init=False)

    @property
    def bound(self) -> float:
        """Returns what no plan costs less than, as far as the search is whole: infinity where there is no plan.

        Integer costs of all units together are wrong by less than one part each.
        """
        least = min([self.unknown, *(placement.cost for placement in self.best)])
        return least - len(self.costs.regret) / self.costs.scale if self.is_whole else 0.0

    def run(self, budget: Budget) -> None:
        """Searches until all is seen, or the budget spent."""
        units = self.addresses.units
        rank, extra, cost, least = self._bounds()
        order = self._order(extra)
        state = self.filler.empty(units.capacities, rank)
        depths = len(units) + 1
        search = memory_branching.Branching(
            *self.filler.mode.numbers(
                *(order, extra, cost, *np.zeros((1, depths), np.int64), np.full(depths, least)),
                *(np.zeros(depths, np.int64), np.zeros(1, np.int64)),
            )
        )
        kernel, leaves = self.filler.mode.kernel(memory_branching.branch), 0
        while leaves < _MOST_LEAVES and (portion := budget.portion(SLICE)):
            result = kernel(state, search, self._limit(), portion)
            budget.spend(portion)
            if result == ENDED:
                self.is_whole = True
                return
            if result != PAUSED:
                leaves += 1
                self._try(np.array(state.memory))

    def _limit(self) -> int:
        """Returns the integer cost that an assignment has to be below."""
        if not self.best:
            return 2 * MOST_COST
        return min(self.costs.total(placement.memory) for placement in self.best)

    def _bounds(self) -> tuple[Column, Column, Column, int]:
        """Returns ranks by priced costs, by how much each raises the bound, the costs, and the bound of all.

        Prices are integers, so that the sums are a Lagrangian bound of the integer costs, without errors of rounding.
        """
        units = self.addresses.units
        prices = np.floor(self.relaxation.prices * self.costs.scale).astype(np.int64)
        priced = self.costs.regret.astype(np.int64)
        for m, row in enumerate(units.over_lives(prices)):
            np.add.at(priced[:, m], units.part_unit, row)
        least = np.where(units.can, priced, np.iinfo(np.int64).max).min(axis=1)
        rank = ranks(units.can, priced.astype(float))
        width = units.can.shape[1] + 1
        chosen = np.minimum(rank.reshape(-1, width), width - 2)
        extra = np.take_along_axis(priced, chosen, axis=1) - least[:, None]
        held = int((prices * self.relaxation.capacities).sum())
        cost = np.take_along_axis(self.costs.regret.astype(np.int64), chosen, axis=1)
        return rank, column(extra.reshape(-1)), column(cost.reshape(-1)), int(least.sum()) - held

    def _order(self, extra: Column) -> Column:
        """Returns the units, those first whose second choice raises the bound most; forced ones before all."""
        units = self.addresses.units
        second = extra.reshape(len(units), -1)[:, min(1, units.can.shape[1] - 1)]
        return np.lexsort((-second, units.can.sum(axis=1) > 1))

    def _try(self, memory: Column) -> None:
        """Takes an assignment as the best if it has addresses."""
        cost = self.addresses.units.cost(memory)
        if self.addresses.is_misfit(memory):
            return
        placement = self.addresses.placed(column(memory), "branch and bound")
        if placement is not None:
            self.best = (placement,)
        elif not self.addresses.is_misfit(memory):
            self.unknown = min(self.unknown, cost)
