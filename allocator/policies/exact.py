"""A chunk may take bytes where all users of the old value are done before the step that writes the new one begins.

"Done before" is what dependences of data say and nothing else, so nothing waits for memory. Of all ways to be safe
without waiting this is the one that lets most chunks share.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from allocator.concurrency import Dependences, HappensBefore, happens_before
from allocator.derive.users import Users
from allocator.errors import TooManyError
from allocator.policies.base import Solve, Waits
from allocator.problem import Column, Conflicts, Plan, Problem, column

MOST_CONFLICTS = 2**25
"""Pairs of chunks that may be alive at once, beyond which solvers would need gigabytes."""


@frozen(eq=False)
class ExactPolicy:
    """Conflicts take the place of lifetimes."""

    order: HappensBefore
    name: str = "exact"

    @classmethod
    def of(cls, dependences: Dependences) -> "ExactPolicy":
        """Derives happens-before. Raises TooManyError."""
        return cls(happens_before(dependences))

    def may_overwrite(self, others: Column, step: int) -> bool:
        """Returns whether the others are done before the step begins."""
        return self.order.holds(others, step)

    def place(self, problem: Problem, users: Users, solve: Solve) -> Plan:
        """Returns the plan of the same chunks with conflicts. Raises TooManyError."""
        return solve(evolve(problem, conflicts=conflicts(problem, users, self.order)))

    def waits(self, problem: Problem, users: Users, plan: Plan) -> Waits:  # noqa: ARG002 (of the protocol)
        """Returns no waits: only data is waited for."""
        return Waits()


def conflicts(problem: Problem, users: Users, order: HappensBefore) -> Conflicts:
    """Returns the pairs of chunks of which neither is over before the other is written. Raises TooManyError.

    Chunks of one chain lie in each other by agreement, chunks of no bytes nowhere: they stand in no pair.
    """
    root, writer = problem.chains.root, users.writer
    chunks = np.flatnonzero(problem.size > 0)
    chunks = chunks[np.argsort(writer[chunks], kind="stable")]
    one, other, count = list[Column](), list[Column](), 0
    for chunk, met in _conflicting(chunks, users, order):
        near = met[root[met] != root[chunk]]
        one.append(np.full(len(near), chunk))
        other.append(near)
        count += len(near)
        if count > MOST_CONFLICTS:
            raise TooManyError(
                f"more than {MOST_CONFLICTS} pairs of chunks may be alive at once, too many to list; "
                "the policy 'colour:8' needs no list"
            )
    nothing = [column(())]
    return Conflicts(np.concatenate(nothing + one), np.concatenate(nothing + other))


def _conflicting(chunks: Column, users: Users, order: HappensBefore) -> Iterator[tuple[int, Column]]:
    """Yields each chunk, by writer, and the chunks behind it that may be written before it is over."""
    writer = users.writer[chunks]
    first = np.searchsorted(writer, np.arange(len(order.later) + 1))
    for place, chunk in enumerate(chunks.tolist()):
        free = order.after_all(users.of(chunk))
        steps = np.flatnonzero(~free[writer[place] :]) + writer[place]
        if len(steps) * 4 > len(chunks):
            behind = np.arange(place + 1, len(chunks))
            yield chunk, chunks[behind[~free[writer[behind]]]]
        else:
            yield chunk, chunks[_ranges(first[steps], first[steps + 1], place + 1)]


def _ranges(low: Column, high: Column, least: int) -> Column:
    """Returns all numbers of half-open ranges that are not below `least`."""
    low = np.maximum(low, least)
    count = np.maximum(high - low, 0)
    ends = np.cumsum(count)
    return column(np.arange(ends[-1] if len(ends) else 0) + np.repeat(low - ends + count, count))
