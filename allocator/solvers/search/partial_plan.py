"""Units with and without a place below a target: the kernel of ejection search and its arrays behind a few verbs."""

from random import Random

import numpy as np
from attrs import define, field, frozen

from allocator.kernels import eject
from allocator.kernels.climb import MODULUS
from allocator.kernels.gaps import DIGITS, NOWHERE
from allocator.kernels.mode import KernelMode
from allocator.problem import FREE, Column, Problem, column, distinct, stable_order
from allocator.ragged import RaggedArray
from allocator.solvers.base import arena_bytes
from allocator.solvers.placing.conflicts import conflict_pairs
from allocator.solvers.placing.units import Units, offsets_of, units_of
from allocator.solvers.search.budget import Budget

_SLOTS = 2
"""Slots of time that a unit lives in, on average."""
_UNITS_OF_NODE = 60
"""Units that are looked at in the time of one node of a search."""
_PLAIN, _PLAIN_STEPS = 40, 2_000
"""Units up to which plain kernels search, and for how many steps: for so few, none waits for machine code."""


@define(eq=False)
class PartialPlan:
    """Units that have a place, and units that wait for one. At first all wait, but for those that are pinned.

    Unit k is the chain of root ids[k].
    """

    problem: Problem
    ids: Column
    _state: eject.EjectionSearch
    _mode: KernelMode
    _steps: int = 0

    @classmethod
    def of(cls, problem: Problem, seed: int = 0) -> "PartialPlan":
        """Returns the plan in which nothing has a place but what is pinned."""
        units = units_of(problem)
        units = units.in_order(np.argsort(units.begin, kind="stable"))
        return cls.of_units(problem, units, problem.pinned[units.ids], seed)

    @classmethod
    def of_units(cls, problem: Problem, units: Units, pinned: Column, seed: int = 0) -> "PartialPlan":
        """Returns the same of some units, by begin, which are pinned as a column of them says."""
        mode = KernelMode(len(units.ids) <= _PLAIN)
        state = _state(units, pinned, _Near.of(problem, units), seed, mode)
        mode.kernel(eject.take_out_above)(state, 0)
        return cls(problem, units.ids, state, mode)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def waiting(self) -> int:
        """Returns how many units have no place."""
        return int(self._state.cursor[eject.WAITING])

    @property
    def is_whole(self) -> bool:
        """Returns whether all units have a place."""
        return self.waiting == 0

    @property
    def is_stuck(self) -> bool:
        """Returns whether pinned units leave no place below the target to one that waits."""
        return self._state.cursor[eject.STUCK] != 0

    def start_from(self, offset: Column) -> None:
        """Puts all units where a plan has them: an offset for each chunk."""
        (by_unit,) = self._mode.numbers(offset[self.ids])
        self._state = self._state._replace(offset=by_unit)
        self._state.cursor[eject.WAITING] = 0

    def take_out_above(self, target: int) -> None:
        """Takes out all that ends above a target."""
        self._mode.kernel(eject.take_out_above)(self._state, target)

    def put_back(self, target: int, steps: int, budget: Budget) -> int:
        """Places units that wait, each below the target, in so many steps at most. Returns the number of steps.

        A step is one node of the budget, or as many as it takes where it looks at many units. Ends in time to look at
        the clock: see `Budget.portion`.
        """
        portion = budget.portion(steps)
        if self._mode.is_plain and self._steps > _PLAIN_STEPS:
            self._mode = KernelMode(False)
            self._state = eject.EjectionSearch(*(np.array(numbers, np.int64) for numbers in self._state))
        done = self._mode.kernel(eject.put_back)(self._state, target, portion, portion * _UNITS_OF_NODE)
        budget.spend(max(done, int(self._state.cursor[eject.LOOKED]) // _UNITS_OF_NODE))
        self._steps += done
        return done

    def offsets(self) -> Column:
        """Returns the offset of each chunk, where all units have a place."""
        return offsets_of(self.problem, self.ids, self._state.offset)

    def placed(self) -> Column:
        """Returns the offset of each unit that has a place, FREE for all others."""
        return column(np.array(self._state.offset))


@define(eq=False)
class PlanRepair:
    """What searches have in common that repair one plan: the best plan so far (`best`, an offset for each chunk)."""

    plan: PartialPlan
    budget: Budget
    best: Column
    arena: int = field(init=False)
    proved: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.take(self.best)

    def take(self, offset: Column) -> None:
        """Goes on from another plan: an offset for each chunk."""
        self.best, self.arena = offset, arena_bytes(self.plan.problem, offset)
        self.budget.found(self.arena)

    def offsets(self) -> Column:
        """Returns the offset of each chunk in the best plan."""
        return self.best


@frozen(eq=False)
class _Near:
    """What each unit may meet: the first columns of `EjectionSearch`, of units by begin; `most` is how many at most."""

    columns: tuple[Column, ...]
    most: int

    @classmethod
    def of(cls, problem: Problem, units: Units) -> "_Near":
        """Takes memory for each conflict that is given, or else for some numbers for each unit."""
        if problem.conflicts is not None:
            return cls.by_conflicts(_met(problem, units))
        begin, end, first = _ranks(units)
        width = max(1, int((end - begin).sum()) // max(len(begin), 1) // _SLOTS)
        slot = begin // width
        since, until = first[slot * width], first[end]
        lists = RaggedArray.of_ranges(slot + 1, (end - 1) // width)  # of what lives on at the beginning of each slot
        most = lists.start[slot + 1] - lists.start[slot] + until - since
        return cls((begin, end, slot, since, until, lists.start, lists.item), int(most.max(initial=0)))

    @classmethod
    def by_conflicts(cls, lists: RaggedArray) -> "_Near":
        """Returns what is listed; all live in one tick."""
        none = np.zeros(len(lists), np.int64)
        columns = (none, none + 1, np.arange(len(lists)), none, none, lists.start, lists.item)
        return cls(columns, int(np.diff(lists.start).max(initial=0)))


def _ranks(units: Units) -> tuple[Column, Column, Column]:
    """Returns the lifetimes in ticks in which a unit begins, one after the other: the same units meet.

    So slots are no more than units, whatever ticks there are, and one long life does not make all slots wide. The third
    column has the first unit of each of these ticks, and how many units there are.
    """
    is_first = np.append(True, np.diff(units.begin) != 0)[: len(units.begin)]
    first = np.append(np.flatnonzero(is_first), len(units.begin))
    return np.cumsum(is_first) - 1, np.searchsorted(units.begin[first[:-1]], units.end), first


def _met(problem: Problem, units: Units) -> RaggedArray:
    """Returns the units that each unit may not overlap, by the conflicts that are given."""
    unit = np.zeros(len(problem), np.int64)
    unit[units.ids] = np.arange(len(units.ids))
    met = conflict_pairs(problem)
    one, other = unit[problem.chains.root[met.one]], unit[problem.chains.root[met.other]]
    count = len(units.ids)
    pairs = distinct(np.concatenate((one * count + other, other * count + one)))
    return RaggedArray.grouped(pairs // max(count, 1), pairs % max(count, 1), count)


def _state(units: Units, pinned: Column, near: _Near, seed: int, mode: KernelMode) -> eject.EjectionSearch:
    """Returns the state of a search with nothing placed but what is pinned. Units are numbered by begin.

    Order and prices count a unit with its padding: what an alignment keeps free around it is hard to find, too.
    """
    n, is_free = len(units.ids), pinned == FREE
    padded = units.padded
    price = padded * np.sqrt(units.end - units.begin)
    price = np.maximum(price * (eject.MOST_PRICE / price.max(initial=1.0)), 1.0).astype(np.int64)
    unit_of = stable_order(price.max(initial=0) - price, padded.max(initial=0) - padded)
    turn = np.empty(n, np.int64)
    turn[unit_of] = np.arange(n)
    columns = mode.numbers(
        *(*near.columns, units.size, units.alignment, price, turn, unit_of, np.where(is_free, NOWHERE, pinned)),
        np.where(is_free, eject.FIRST_WEIGHT, eject.PINNED),
    )
    scratch = mode.zeros(n, *(2 * near.most + 1,) * 4, DIGITS)
    chance = np.array([Random(seed).randrange(1, MODULUS)])
    return eject.EjectionSearch(*columns, *scratch, *mode.numbers(chance, np.zeros(3, np.int64)))
