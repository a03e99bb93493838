"""Better assignments, and what no plan costs less than: relaxation, local search, then branch and bound."""

from collections.abc import Sequence

import numpy as np
from attrs import define

from allocator.kernels.mode import KernelMode
from allocator.memories.addresses import Addresses, Placement, fits
from allocator.memories.exact import MOST_UNITS, Exact
from allocator.memories.greedy import Filler, by_contention
from allocator.memories.integer_costs import IntegerCosts
from allocator.memories.local_search import LocalSearch
from allocator.memories.plan import CLOSE
from allocator.memories.relaxation import Relaxation
from allocator.memories.tree import Tree
from allocator.problem import Column
from allocator.progress import current
from allocator.solvers.base import SolverOptions
from allocator.solvers.search.budget import Budget

_NODES = 40_000_000
"""Steps of all searches, where no limit is given, each as long as one of branch and bound: about four seconds.
tools/bench_memories.py shows what they are worth."""
_PRICES, _EACH = 1_000, 25
"""Steps of the relaxation, and after how many an assignment is made by its prices."""
_STEPS, _EACH_UNIT, _PART = 20_000, 200, 4
"""Steps of local search in one round, at most, also for each unit, and the part of what is left that it may spend."""
_ROUNDS = 4
"""Rounds of local search; after each, memories whose addresses did not fit count as smaller."""
_MARGIN = 256
"""A memory counts as smaller by this part at least."""
_PLAIN = 8
"""Units up to which kernels are plain, and branch and bound comes first: for so few, nobody waits for machine code."""
LOCAL = "local search"


@define(eq=False)
class Improvement:
    """The best placement so far, in a tuple, and what is proved: no plan costs less than `bound`."""

    addresses: Addresses
    filler: Filler
    relaxation: Relaxation
    costs: IntegerCosts
    budget: Budget
    best: tuple[Placement, ...]
    start: Column
    bound: float

    @classmethod
    def of(cls, addresses: Addresses, starts: Sequence[Placement]) -> "Improvement":
        """Returns what begins with the best of some placements."""
        units, limits = addresses.units, addresses.limits
        filler = Filler(units, KernelMode(len(units) <= _PLAIN))
        relaxation = Relaxation.of(units)
        costs = IntegerCosts.of(relaxation.regret)
        budget = Budget.of(SolverOptions(limits.seed, limits.until, limits.nodes), _NODES)
        best = tuple(sorted(starts, key=lambda p: p.cost)[:1])
        start = best[0].memory if best else filler.fill(by_contention(units), units.capacities)
        return cls(addresses, filler, relaxation, costs, budget, best, start, relaxation.bound)

    @property
    def is_over(self) -> bool:
        """Returns whether the best placement is proved to be that, or the budget spent."""
        return self.budget.is_over or any(p.cost <= self.bound * (1 + CLOSE) for p in self.best)

    def run(self) -> None:
        """Searches as long as that may help."""
        if not self.is_over:
            self._relax()
        units = len(self.addresses.units)
        if units <= _PLAIN and not self.is_over:
            self._branch()
        if not self.is_over:
            self._search()
        if self.best and not self.is_over:
            self._take(self.addresses.lifted(self.best[0]))
        if not self.is_over:
            self._bound()
        if _PLAIN < units <= MOST_UNITS and not self.is_over:
            self._branch()

    def _take(self, placement: Placement | None) -> None:
        """Takes a placement if it is the best."""
        if placement is not None and all(placement.cost < best.cost for best in self.best):
            self.best = (placement,)

    def _relax(self) -> None:
        """Raises the bound, and keeps the best assignment that follows from prices as a start."""
        current().item = "by relaxation"
        units, relaxation = self.addresses.units, self.relaxation
        cost = self.best[0].cost if self.best else relaxation.worst
        least = self.costs.total(self.start)
        budget = self.budget.at(relaxation.price)
        for step, _ in enumerate(relaxation.steps(cost), 1):
            if step % _EACH == 0:
                memory = self.filler.fill(relaxation.order(), units.capacities)
                if self.costs.total(memory) < least:
                    self.start, least = memory, self.costs.total(memory)
            budget.spend(1)
            if step == _PRICES or self.budget.is_over:
                break
        self.bound = max(self.bound, min(relaxation.bound, cost))

    def _search(self) -> None:
        """Searches by load, and plans addresses; where they do not fit, memories count as smaller in the next round."""
        current().item = "by local search"
        units, capacities = self.addresses.units, self.addresses.units.capacities.copy()
        steps, memory = min(_STEPS, _EACH_UNIT * len(units)), self.start
        for number in range(_ROUNDS):
            search = LocalSearch(units, self.filler, self.costs, self.addresses.limits.seed + number)
            memory = search.improved(memory, capacities, steps, self.budget, self.budget.left // _PART + 1)
            if (memory == len(capacities)).any():
                return
            self._take(self.addresses.repaired(memory, LOCAL))
            excess = self._excess(memory)
            if not excess.any() or self.is_over:
                return
            capacities = np.where(excess > 0, capacities - np.maximum(excess, capacities // _MARGIN), capacities)
            capacities = np.maximum(capacities, 0)

    def _excess(self, memory: Column) -> Column:
        """Returns by how many bytes the plan of each memory exceeds its capacity."""
        plans = [self.addresses.probe(m, memory == m) for m in range(len(self.addresses.units.capacities))]
        return np.array([0 if fits(plan) else plan.arena_bytes - plan.capacity for plan in plans])

    def _bound(self) -> None:
        """Raises the bound by a tree of relaxations."""
        current().item = "by a tree of relaxations"
        tree = Tree(self.addresses, self.filler, self.relaxation, self.best)
        tree.run(self.budget)
        self.best, self.bound = tree.best, max(self.bound, tree.bound)

    def _branch(self) -> None:
        """Tries all assignments, as far as the budget goes."""
        current().item = "by branch and bound"
        exact = Exact(self.addresses, self.filler, self.costs, self.relaxation, self.best)
        exact.run(self.budget)
        self.best = exact.best
        if exact.is_whole:
            self.bound = max(self.bound, exact.bound)
