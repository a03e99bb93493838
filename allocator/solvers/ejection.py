"""Ejection search: chunks are placed below a goal that shrinks, and what is in the way of one is taken out for it."""

import numpy as np
from attrs import define, field, frozen

from allocator.kernels import eject
from allocator.kernels.climb import MODULUS
from allocator.kernels.gaps import DIGITS, NOWHERE
from allocator.kernels.mode import KernelMode
from allocator.problem import FREE, NO_CAPACITY, Column, Problem, column
from allocator.ragged import RaggedArray, row_starts
from allocator.solvers.base import Answer, SolverOptions, Traits, arena_bytes
from allocator.solvers.greedy import GREEDY_BY_SIZE
from allocator.solvers.placing.conflicts import conflict_pairs
from allocator.solvers.placing.units import Units, units_of
from allocator.solvers.search.budget import Budget

_SLOTS = 4
"""Slots of time that a unit lives in, on average."""
_PLAIN = 40
"""Units up to which plain kernels search."""
_SHARE = 0.3
"""The part of the gap between arena and goal by which the arena is to shrink at once, at most."""
_PATIENCE, _LEAST_STEPS = 4.0, 2_000
"""Steps for each unit, and in all, after which a goal is given up, at first."""
_LEAST_SHARE = 1e-3
"""The search begins anew, with more patience, where goals by a smaller part of the gap were given up."""


@frozen(eq=False)
class Ejection:
    """Searches from greedy by size. One node is one step: a unit gets a place below the goal.

    A goal lies between the arena of the best plan and the one that is good enough. One that takes too many steps is
    raised, after a step that is reached the next one is lower. Chains of overwrites are rectangles here, so that the
    bytes that an overwriter leaves free stay free. With no limit given, it has `nodes` nodes, or fewer where many
    units are alive at once: about two seconds.
    """

    name: str = "ejection"
    traits: Traits = Traits()
    nodes: int = 200_000
    meetings: int = 100_000_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and no bound."""
        return self.improve(problem, GREEDY_BY_SIZE.solve(problem, options).offset, options)

    def improve(self, problem: Problem, offset: Column, options: SolverOptions) -> Answer:
        """Searches from a plan that is already there: never a larger arena."""
        units = units_of(problem)
        pinned = problem.pinned[units.ids]
        pinned_end = int((pinned + units.size)[pinned != FREE].max(initial=0))
        near = _Near.of(problem, units)
        budget = Budget.of(options, min(self.nodes, self.meetings // (1 + near.mean)))
        mode = KernelMode(len(units.ids) <= _PLAIN)
        state = _state(units, pinned, near, options.seed, mode)
        search = _Search(units, state, mode, max(options.goal, pinned_end), budget)
        search.keep(offset[units.ids])
        search.go_on()
        is_better = search.arena < arena_bytes(problem, offset)
        return Answer(search.units.offsets(problem, search.offset) if is_better else offset)


@define(eq=False)
class _Search:
    """The best plan so far, by unit, and the state of the kernel; an arena of `goal` bytes is good enough."""

    units: Units
    state: eject.EjectionSearch
    mode: KernelMode
    goal: int
    budget: Budget
    offset: Column = field(converter=column, factory=tuple)
    arena: int = NO_CAPACITY

    @property
    def is_over(self) -> bool:
        """Returns whether the arena is good enough, or the budget spent."""
        return self.arena <= self.goal or self.budget.is_over

    def keep(self, offset: Column) -> None:
        """Keeps a plan if it is the best."""
        arena = int((offset + self.units.size).max(initial=0))
        if arena < self.arena:
            self.offset, self.arena = column(offset), arena
            self.budget.seen.best = arena

    def go_on(self) -> None:
        """Searches until the goal is reached, or the budget spent."""
        share, patience = _SHARE, _PATIENCE
        self._begin()
        while not self.is_over:
            goal = self.arena - max(1, int((self.arena - self.goal) * share))
            self.mode.kernel(eject.take_out_above)(self.state, goal)
            if self._reach(goal, max(int(patience * len(self.units.ids)), _LEAST_STEPS)):
                self.keep(np.array(self.state.offset))
                share = min(_SHARE, 2 * share)
            else:
                share, patience = share / 2, patience * 1.5
            if share < _LEAST_SHARE:
                share = _SHARE
                self._begin()

    def _begin(self) -> None:
        """Puts all units where the best plan has them."""
        for unit, at in enumerate(self.offset.tolist()):
            self.state.offset[unit] = at
        self.state.cursor[eject.WAITING] = 0

    def _reach(self, goal: int, steps: int) -> bool:
        """Returns whether all units have a place below a goal, after so many steps."""
        cursor = self.state.cursor
        while cursor[eject.WAITING] and not cursor[eject.STUCK]:
            portion = self.budget.portion(steps)
            if not portion:
                return False
            done = self.mode.kernel(eject.put_back)(self.state, goal, portion)
            self.budget.spend(done)
            steps -= done
        if cursor[eject.STUCK]:
            self.budget.spend(1)  # so that a search in which nothing can move ends
        return not cursor[eject.WAITING]


@frozen(eq=False)
class _Near:
    """Those that a unit may meet: the lists of units, or the lists of slots of time and the slots of each unit.

    `most` is a length that no list of what a unit meets has more than; `mean` about how long they are.
    """

    lists: RaggedArray
    slots: tuple[Column, Column, Column, Column]
    most: int
    mean: int

    @classmethod
    def of(cls, problem: Problem, units: Units) -> "_Near":
        """Takes memory for each conflict that is given, or else for some numbers for each unit."""
        n = len(units.ids)
        if problem.conflicts is not None:
            lists, none = _met(problem, units), column(())
            met = np.diff(lists.start)
            return cls(lists, (none, none, none, none), int(met.max(initial=0)), int(met.sum()) // max(n, 1))
        width = max(1, int((units.end - units.begin).sum()) // max(n, 1) // _SLOTS)
        first, last = units.begin // width, (units.end - 1) // width
        lists = _slots(first, last)
        met = lists.start[last + 1] - lists.start[first]
        return cls(
            lists, (units.begin, units.end, first, last), min(int(met.max(initial=0)), n), int(met.sum()) // max(n, 1)
        )


def _slots(first: Column, last: Column) -> RaggedArray:
    """Returns the units in each slot of time; unit k lives in the slots first[k] to last[k]."""
    counts = last - first + 1
    units = np.repeat(np.arange(len(first)), counts)
    slots = np.arange(len(units)) - np.repeat(np.cumsum(counts) - counts - first, counts)
    order = np.argsort(slots, kind="stable")
    return RaggedArray(row_starts(slots, int(last.max(initial=-1)) + 1), units[order])


def _met(problem: Problem, units: Units) -> RaggedArray:
    """Returns the units that each unit may not overlap, by the conflicts that are given."""
    unit = np.zeros(len(problem), np.int64)
    unit[units.ids] = np.arange(len(units.ids))
    met = conflict_pairs(problem)
    one, other = unit[problem.chains.root[met.one]], unit[problem.chains.root[met.other]]
    return RaggedArray.grouped(np.concatenate((one, other)), np.concatenate((other, one)), len(units.ids))


def _state(units: Units, pinned: Column, near: _Near, seed: int, mode: KernelMode) -> eject.EjectionSearch:
    """Returns the state of a search with nothing placed but what is pinned."""
    n, is_free = len(units.ids), pinned == FREE
    price = units.size * np.sqrt(units.end - units.begin)
    price = np.maximum(price * (eject.MOST_PRICE / price.max(initial=1.0)), 1.0).astype(np.int64)
    unit_of = np.lexsort((units.begin, -price, -units.size))
    turn = np.empty(n, np.int64)
    turn[unit_of] = np.arange(n)
    columns = mode.numbers(
        *(numbers.copy() for numbers in (*near.slots, near.lists.start, near.lists.item, units.size, units.alignment)),
        *(price, turn, unit_of, np.where(is_free, NOWHERE, pinned)),
        np.where(is_free, eject.FIRST_WEIGHT, eject.PINNED),
    )
    scratch = mode.zeros(n, n, *(2 * near.most,) * 4, DIGITS)
    chance = np.array([int(np.random.default_rng(seed).integers(1, MODULUS))])
    return eject.EjectionSearch(*columns, *scratch, *mode.numbers(chance, np.zeros(3, np.int64)))


EJECTION = Ejection()
