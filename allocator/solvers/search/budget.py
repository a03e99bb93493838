"""How long a search may still go on: in nodes, in seconds, or until somebody asks it to stop."""

import math
import time
from collections.abc import Callable
from typing import Self

from attrs import define, evolve, field

from allocator.interrupts import Stop, current_stop
from allocator.progress import Activity, current
from allocator.solvers.base import NO_NODES, SolverOptions

SLICE = 2_000
"""Nodes between two looks at the clock."""
_LOOKS = 1_000
"""Numbers that a kernel looks at for one node."""


@define(eq=False)
class _Purse:
    """Nodes that are left to all, and the moment of `time.monotonic` at which the time is over."""

    nodes: int
    until: float
    seen: Activity
    stop: Stop


@define(eq=False)
class Budget:
    """Nodes and time that are left to one search. What it has `spent` is reported to the activity that it is part of.

    One of its nodes costs `price` nodes of the purse, which several searches may share. `is_restricted`: the search
    leaves plans out, or counts other bytes, so what it finds and proves is not told.
    """

    _purse: _Purse
    price: int = 1
    is_restricted: bool = False
    spent: int = field(default=0, init=False)

    @classmethod
    def of(cls, options: SolverOptions, nodes: int) -> Self:
        """Returns the budget of the options; `nodes` where they name no limit at all."""
        seen, most = current(), options.nodes if options.is_limited else nodes
        seen.done, seen.total, seen.unit = 0, 0 if most == NO_NODES else most, "steps"
        return cls(_Purse(most, options.until, seen, current_stop()))

    @classmethod
    def of_time(cls, options: SolverOptions) -> Self:
        """Returns the budget of what is no search: no limit but the time."""
        return cls.of(evolve(options, nodes=NO_NODES), NO_NODES)

    def at(self, price: int, *, is_restricted: bool = False) -> "Budget":
        """Returns another one that spends from the same purse."""
        return Budget(self._purse, price, is_restricted)

    def found(self, arena: int) -> None:
        """Tells that there is a plan of so many bytes: from here on a stop ends the search with that one."""
        if not self.is_restricted:
            self._purse.seen.best, self._purse.stop.has_plan = arena, True

    def proved(self, bound: int) -> None:
        """Tells that no arena has less bytes."""
        if not self.is_restricted:
            self._purse.seen.bound = max(bound, self._purse.seen.bound)

    @property
    def is_over(self) -> bool:
        """Returns whether nothing is left, or a stop was asked for."""
        purse = self._purse
        return purse.nodes <= 0 or purse.stop.is_asked or (purse.until < math.inf and time.monotonic() >= purse.until)

    @property
    def left(self) -> int:
        """Returns the nodes that are left; they may be shared with other searches."""
        return max(self._purse.nodes, 0) // self.price

    def spend(self, nodes: int) -> None:
        """Takes nodes from the budget."""
        self.spent += nodes
        self._purse.nodes -= nodes * self.price
        self._purse.seen.done += nodes * self.price

    def portion(self, wanted: int) -> int:
        """Returns nodes to go on with before the clock is looked at again; 0 where the budget is over."""
        return 0 if self.is_over else min(wanted, -(-min(self._purse.nodes, SLICE) // self.price))

    def run(self, kernel: Callable[[int], int], is_done: Callable[[], bool]) -> None:
        """Calls a kernel until it is done, or the budget over.

        It takes how many numbers it may look at, and returns at how many it did.
        """
        while not is_done() and (portion := self.portion(SLICE)):
            self.spend(kernel(portion * _LOOKS) // _LOOKS + 1)
