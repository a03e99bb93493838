"""What makes a plan safe where operators run at once: which chunks may share bytes, and what must wait for what."""

from collections.abc import Callable
from typing import Protocol

from attrs import field, frozen

from allocator.derive.users import Users
from allocator.problem import Column, Plan, Problem, column

Solve = Callable[[Problem], Plan]
"""A solver with all its options."""


@frozen(eq=False)
class Waits:
    """The waits besides those for data: step after[k] for step before[k]; each pair stands here once.

    Where there is a `level` for each step, all of one level are done before one of the next begins.
    """

    before: Column = field(converter=column, factory=tuple)
    after: Column = field(converter=column, factory=tuple)
    level: Column = field(converter=column, factory=tuple)


class Policy(Protocol):
    """One way to be safe. Problems given to it have lifetimes in the ticks of steps, one after the other."""

    @property
    def name(self) -> str:
        """Returns the name under which a caller asks for it."""

    def may_overwrite(self, others: Column, step: int, /) -> bool:
        """Returns whether a step may overwrite bytes that these other steps write or read."""

    def place(self, problem: Problem, users: Users, solve: Solve, /) -> Plan:
        """Returns a plan in which only chunks share bytes that may do so."""

    def waits(self, problem: Problem, users: Users, plan: Plan, /) -> Waits:
        """Returns the waits that a run must keep so that the plan holds."""
