"""Addresses in each memory, by the planner of one arena. What it cannot place below a capacity moves elsewhere."""

import math
import time

import numpy as np
from attrs import define, evolve, field, frozen

from allocator.memories.problem import Mask, MemoryProblem
from allocator.memories.units import Units
from allocator.parts import part_of
from allocator.problem import Column, Plan, Problem, Status, column
from allocator.solvers import BEST, solve
from allocator.solvers.base import NO_NODES

_PROBE_NODES = 4_000
"""Nodes of the planner to find whether chunks fit below a capacity: a hundredth of a second. tools/bench_memories.py
shows what they are worth."""
_MOST_FAILURES = 16
"""How many moves to faster memories may find no addresses before no more are tried."""
_MOST_REPAIRS = 64
"""How often chunks that stick out of memories are moved before an assignment is given up."""


@frozen(eq=False)
class Limits:
    """How thoroughly addresses are planned: by which strategy, with which seed, until when, with how many nodes."""

    strategy: str = BEST
    seed: int = 0
    until: float = math.inf
    nodes: int = NO_NODES

    @property
    def seconds(self) -> float:
        """Returns the seconds that are left."""
        return max(0.0, self.until - time.monotonic())


@frozen(eq=False)
class Placement:
    """The memory of each unit, with a plan that fits for each memory, and the seconds of all transfers."""

    memory: Column = field(converter=column)
    plans: tuple[Plan, ...]
    cost: float
    maker: str


@define(eq=False)
class Addresses:
    """Plans of sets of units in single memories; each set is planned once."""

    units: Units
    limits: Limits
    _plans: dict[tuple[int, bytes], Plan] = field(factory=dict, init=False)
    _misfits: list[tuple[int, Mask]] = field(factory=list, init=False)

    def probe(self, m: int, is_in: Mask) -> Plan:
        """Returns a plan of some units in a memory; its status says whether they fit, or never do."""
        key = m, np.packbits(is_in).tobytes()
        if key not in self._plans:
            nodes = min(_PROBE_NODES, self.limits.nodes)
            capacity = self.units.problem.memories[m].capacity
            self._plans[key] = solve(
                self.problem_in(m, is_in), seed=self.limits.seed, capacity=capacity, nodes=nodes,
                seconds=self.limits.seconds,
            )  # fmt: skip
            if self._plans[key].status is Status.INFEASIBLE:
                self._misfits.append((m, is_in))
        return self._plans[key]

    def is_misfit(self, memory: Column) -> bool:
        """Returns whether it is proved that an assignment has no addresses: units are together that never fit."""
        return any((memory[is_in] == m).all() for m, is_in in self._misfits)

    def problem_in(self, m: int, is_in: Mask) -> Problem:
        """Returns the problem of some units as one arena, in a memory."""
        return problem_in(self.units.problem, m, is_in[self.units.unit_of])

    def placed(self, memory: Column, maker: str) -> Placement | None:
        """Returns the assignment with addresses; None where a unit lies nowhere, or the planner finds no place."""
        if (memory == self.units.can.shape[1]).any():
            return None
        plans = []
        for m in range(self.units.can.shape[1]):
            plan = self.probe(m, memory == m)
            if not fits(plan):
                return None
            plans.append(plan)
        return Placement(memory, tuple(plans), self.units.cost(memory), maker)

    def repaired(self, memory: Column, maker: str) -> Placement | None:
        """Returns the assignment with addresses, after units that find none have moved to where they cost least more.

        None where no memory has room for one, or a unit lies nowhere.
        """
        memory, count = memory.copy(), self.units.can.shape[1]
        if (memory == count).any():
            return None
        was_in = np.zeros((len(self.units), count), bool)
        for _ in range(_MOST_REPAIRS):
            full = [m for m in range(count) if not fits(self.probe(m, memory == m))]
            if not full or self.limits.seconds == 0:
                break
            for m in full:
                if not self._move_out(memory, m, was_in):
                    return None
        return self.placed(column(memory), maker)

    def _move_out(self, memory: Column, m: int, was_in: Mask) -> bool:
        """Moves the units of a memory that stick out of it. Returns whether another one had room for each."""
        is_in = memory == m
        outside = self._sticking_out(m, is_in)
        for unit in outside[np.argsort(-(self.units.end - self.units.begin)[outside], kind="stable")].tolist():
            was_in[unit, m] = True
            seconds = np.where(was_in[unit], np.inf, self.units.seconds[unit])
            for other in np.argsort(seconds, kind="stable").tolist():
                if seconds[other] < np.inf and self._has_room(memory, unit, other):
                    memory[unit] = other
                    break
            else:
                return False
        return True

    def _sticking_out(self, m: int, is_in: Mask) -> Column:
        """Returns the units of a memory that end above its capacity, in its plan."""
        plan = self.probe(m, is_in)
        part = self.problem_in(m, is_in)
        high = (plan.offset + part.size > self.units.problem.memories[m].capacity) & (part.size > 0)
        rows = np.flatnonzero(is_in[self.units.unit_of])[high]
        outside = np.zeros(len(self.units), bool)
        outside[self.units.unit_of[rows]] = True
        return np.flatnonzero(outside)

    def _has_room(self, memory: Column, unit: int, m: int) -> bool:
        is_in = memory == m
        is_in[unit] = True
        return bool((self.units.load(is_in) <= self.units.problem.memories[m].capacity).all())

    def lifted(self, placement: Placement) -> Placement:
        """Returns the placement after units have moved to where they cost less, if they find addresses there."""
        units, failures = self.units, 0
        gain = units.seconds[np.arange(len(units)), placement.memory] - units.seconds.min(axis=1)
        for unit in np.argsort(-gain, kind="stable")[: np.count_nonzero(gain > 0)].tolist():
            seconds = units.seconds[unit]
            here = int(placement.memory[unit])
            for m in np.argsort(seconds, kind="stable").tolist():
                if failures == _MOST_FAILURES or self.limits.seconds == 0:
                    return placement
                if seconds[m] >= seconds[here]:
                    break
                if not self._has_room(placement.memory, unit, m):
                    continue
                moved = placement.memory.copy()
                moved[unit] = m
                better = self.placed(column(moved), placement.maker)
                if better is not None:
                    placement = better
                    break
                failures += 1
        return placement

    def final(self, placement: Placement) -> Placement:
        """Returns the placement with the arenas that a short search finds where no capacity is good enough."""
        nodes = min(_PROBE_NODES, self.limits.nodes)
        plans = (self.smallest(m, placement.memory == m, nodes) for m in range(len(placement.plans)))
        better = (
            small if small.arena_bytes <= plan.capacity else evolve(plan, bound=plan.bound.raised(small.bound))
            for small, plan in zip(plans, placement.plans, strict=True)
        )
        return evolve(placement, plans=tuple(better))

    def smallest(self, m: int, is_in: Mask, nodes: int) -> Plan:
        """Returns the plan of some units in a memory by the strategy of the limits, as small as it makes it."""
        limits, capacity = self.limits, self.units.problem.memories[m].capacity
        problem = self.problem_in(m, is_in)
        plan = solve(problem, limits.strategy, limits.seed, nodes=nodes, seconds=limits.seconds)
        return evolve(plan, capacity=capacity)


def problem_in(problem: MemoryProblem, m: int, is_in: Mask) -> Problem:
    """Returns chunks of a mask, in whole chains, as the problem of one arena, with the alignment of a memory."""
    part = part_of(problem.chunks, is_in)
    alignment, edge = part.alignment.copy(), problem.memories[m].alignment
    for root in np.flatnonzero(part.chains.root == np.arange(len(part))).tolist():
        alignment[root] = math.lcm(int(alignment[root]), edge)
    if np.array_equal(alignment, part.alignment):
        return part
    return evolve(part, alignment=alignment)


def fits(plan: Plan) -> bool:
    """Returns whether the arena of a plan is within its capacity."""
    return plan.status in {Status.OPTIMAL, Status.FEASIBLE}
