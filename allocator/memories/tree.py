"""A better lower bound: a tree in which large units are fixed to memories, with a relaxation in each node.

What makes the bound of one relaxation low is that a large unit lies in a fast memory in part. A node of the tree says
for some units where they lie; the memories that have no room left for others follow from that, and so do those that
would cost more than the best plan. The node with the least bound is split first, at the unit that is divided most, by
its bytes (branch and bound, best first: Land and Doig 1960).
"""

import heapq
import math
from itertools import count

import numpy as np
from attrs import define, field, frozen

from allocator.memories.addresses import Addresses, Placement
from allocator.memories.greedy import Filler, ranks
from allocator.memories.plan import CLOSE
from allocator.memories.problem import Mask, Seconds
from allocator.memories.relaxation import Relaxation
from allocator.problem import column
from allocator.solvers.search.budget import Budget

_STEPS = 40
"""Steps of the relaxation of a node."""
_NODES = 400
"""Nodes of the tree at most. tools/bench_memories.py shows what they are worth."""
_SHARE = 2
"""The tree may spend this part of the budget."""
_MOST_TRIED = 8
"""Assignments of nodes, cheaper than the best plan, for which addresses are planned."""


@frozen(eq=False)
class _Node:
    """Where units may lie, with the best prices for that."""

    can: Mask
    relaxation: Relaxation


@define(eq=False)
class Tree:
    """A search from the best placement so far, if there is one; it is replaced by better ones.

    `bound`: no plan costs less; infinity where there is none.
    """

    addresses: Addresses
    filler: Filler
    relaxation: Relaxation
    best: tuple[Placement, ...]
    bound: float = field(default=0.0, init=False)
    _open: list[tuple[float, int, _Node]] = field(factory=list, init=False)
    _tried: int = field(default=0, init=False)

    @property
    def _cost(self) -> float:
        """Returns what an assignment has to be cheaper than."""
        return self.best[0].cost * (1 - CLOSE) if self.best else math.inf

    def run(self, budget: Budget) -> None:
        """Splits nodes until none can have a better plan, or the tree is large enough."""
        units = self.addresses.units
        own = budget.at(self.relaxation.price)
        most, numbers, ended = own.left // _SHARE, count(), math.inf
        self._add(units.can, self.relaxation, next(numbers), own)
        while self._open and self._open[0][0] < self._cost:
            if own.is_over or own.spent >= most or next(numbers) > _NODES:
                break
            _, _, node = heapq.heappop(self._open)
            unit = self._divided(node)
            if unit < 0:
                ended = min(ended, node.relaxation.bound)
                continue
            for memory in np.flatnonzero(node.can[unit]).tolist():
                can = node.can.copy()
                can[unit] = False
                can[unit, memory] = True
                self._add(can, node.relaxation, next(numbers), own)
        cost = min((placement.cost for placement in self.best), default=math.inf)
        self.bound = min([cost, ended, *(bound for bound, _, _ in self._open[:1])])

    def _add(self, can: Mask, parent: Relaxation, number: int, budget: Budget) -> None:
        """Adds a node where it may have a better plan."""
        can = self._possible(can)
        if not can.any(axis=1).all():
            return
        relaxation = parent.within(can)
        for step, _ in enumerate(relaxation.steps(min(self._cost, parent.worst)), 1):
            budget.spend(1)
            if step == _STEPS or budget.is_over:
                break
        priced = relaxation.priced(relaxation.prices)
        above = priced - priced.min(axis=1, keepdims=True)
        can = self._possible(can & (relaxation.bound + above < self._cost))
        if not can.any(axis=1).all():
            return
        self._try(can, priced)
        if (can.sum(axis=1) == 1).all():
            relaxation.bound = self.addresses.units.cost(column(can.argmax(axis=1)))
        heapq.heappush(self._open, (relaxation.bound, number, _Node(can, relaxation)))

    def _possible(self, can: Mask) -> Mask:
        """Returns where units may lie if those that may lie in one memory alone lie there."""
        units, can = self.addresses.units, can.copy()
        part_unit, ends = units.part_unit, np.stack((units.first, units.last), axis=1).reshape(-1)
        while True:
            choices = can.sum(axis=1)
            before = np.count_nonzero(can)
            for m, capacity in enumerate(units.capacities.tolist()):
                is_fixed = can[:, m] & (choices == 1)
                load = np.append(units.load(is_fixed), 0)
                if load.max() > capacity:
                    return np.zeros_like(can)
                if len(ends):
                    most = np.maximum.reduceat(load, ends)[::2]
                    is_full = np.zeros(len(units), bool)
                    is_full[part_unit[most + units.size > capacity]] = True
                    can[:, m] &= is_fixed | ~is_full
            if np.count_nonzero(can) == before:
                return can

    def _divided(self, node: _Node) -> int:
        """Returns the unit at which a node is split: the one that is divided most, by its bytes; -1 for none."""
        units = self.addresses.units
        is_free = node.can.sum(axis=1) > 1
        if not is_free.any():
            return -1
        most = np.zeros(len(units))
        np.maximum.at(most, units.part_unit, units.size)
        shares = node.relaxation.shares
        divided = shares.sum(axis=1) - shares.max(axis=1)
        return int(np.where(is_free, divided * most, -1.0).argmax())

    def _try(self, can: Mask, priced: Seconds) -> None:
        """Takes the assignment that follows from prices, if it has addresses and costs less than the best."""
        if self._tried == _MOST_TRIED:
            return
        units = self.addresses.units
        least = np.where(can, priced, np.inf)
        first, second = np.sort(least, axis=1)[:, :2].T
        order = np.argsort(first - second, kind="stable")
        state = self.filler.filled(order, units.capacities, least.argmin(axis=1), ranks(units.can, units.seconds))
        memory = column(state.memory)
        if (memory == can.shape[1]).any() or units.cost(memory) >= self._cost:
            return
        self._tried += 1
        placement = self.addresses.repaired(memory, "a tree of relaxations")
        if placement is not None and placement.cost < self._cost:
            self.best = (placement,)
