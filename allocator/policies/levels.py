"""Lifetimes in levels: steps that wait for as many others run at once, with a barrier before the next of them."""

from attrs import field, frozen

from allocator.concurrency import Clock, Dependences, levels
from allocator.derive.users import Users
from allocator.policies.base import Solve, Waits
from allocator.policies.clocks import lifetimes_by, spans
from allocator.problem import Column, Plan, Problem, column


@frozen(eq=False)
class Levels:
    """Step i belongs to level[i]; steps stand in the order of their levels."""

    level: Column = field(converter=column)
    name: str = "levels"

    @classmethod
    def of(cls, dependences: Dependences) -> "Levels":
        """Returns levels as early as the data allows."""
        return cls(levels(dependences))

    def may_overwrite(self, others: Column, step: int) -> bool:
        """Returns whether the others stand in earlier levels."""
        return bool((self.level[others] < self.level[step]).all())

    def place(self, problem: Problem, users: Users, solve: Solve) -> Plan:
        """Returns the plan of lifetimes in levels."""
        return solve(lifetimes_by(spans(Clock(self.level, self.level + 1), users), problem, users))

    def waits(self, problem: Problem, users: Users, plan: Plan) -> Waits:  # noqa: ARG002 (of the protocol)
        """Returns a barrier behind each level."""
        return Waits(level=self.level)
