"""Which calls may run at the same time: none, or those that a policy of the allocator lets run in parallel."""

from collections.abc import Callable, Collection
from typing import Protocol

from attrs import frozen

from allocator import policies
from allocator.derive.users import Users, users
from allocator.policies.base import Policy, Waits
from allocator.policies.edges import implicit
from allocator.problem import Plan, Problem
from allocator.steps import Program
from engine.lower.calls import Lowered
from engine.lower.schedule import Schedule, beside, by_data, dependences, in_queue, in_sequence

Solve = Callable[[Problem], Plan]


class Concurrency(Protocol):
    """Decides which chunks may share bytes, and what calls must wait for."""

    def may_overwrite(self, chunk: int, tick: int, /) -> bool:
        """Returns whether the call of a tick may write over the bytes of a chunk."""

    def solve(self, problem: Problem, solve: Solve, /) -> Plan:
        """Returns a plan that is safe for calls that run at the same time."""

    def schedule(self, problem: Problem, plan: Plan, copies: Collection[int] = (), /) -> Schedule:
        """Returns the schedule: the calls that each call waits for when it runs with that plan.

        An engine makes the copies of some ticks.
        """


@frozen(eq=False)
class Sequential:
    """One call after the other: lifetimes in ticks say everything but for copies that run beside calls."""

    lowered: Lowered
    program: Program

    def may_overwrite(self, _: int, __: int, /) -> bool:
        """Returns True: nothing else runs in that tick."""
        return True

    def solve(self, problem: Problem, solve: Solve, /) -> Plan:
        """Returns the plan of the solver."""
        return solve(problem)

    def schedule(self, problem: Problem, plan: Plan, copies: Collection[int] = (), /) -> Schedule:
        """Returns the schedule in which each call waits for the one before, and copies for what shares their bytes."""
        if not copies:
            return in_sequence(self.lowered)
        return beside(self.lowered, copies, Waits(*implicit(problem, users(self.program), plan.offset)))


@frozen(eq=False)
class Parallel:
    """Calls run at the same time where the policy allows it; `users` has the calls that touch each chunk."""

    lowered: Lowered
    policy: Policy
    users: Users

    def may_overwrite(self, chunk: int, tick: int, /) -> bool:
        """Returns whether no other user of the chunk can run at the same time as the call of that tick."""
        return self.policy.may_overwrite(self.users.others(chunk, tick), tick)

    def solve(self, problem: Problem, solve: Solve, /) -> Plan:
        """Returns a plan in which only chunks share bytes for which the policy allows it."""
        return self.policy.place(problem, self.users, solve)

    def schedule(self, problem: Problem, plan: Plan, copies: Collection[int] = (), /) -> Schedule:
        """Returns the schedule in which each call waits for its data, and for what the policy adds."""
        schedule = by_data(self.lowered, self.policy.name, self.policy.waits(problem, self.users, plan))
        return in_queue(schedule, copies) if copies else schedule


def concurrency_of(lowered: Lowered, program: Program, parallel: str) -> Concurrency:
    """Returns the concurrency of calls under the policy of that name; "" stands for one call after the other."""
    if not parallel:
        return Sequential(lowered, program)
    return Parallel(lowered, policies.policy(parallel, dependences(lowered)), users(program))
