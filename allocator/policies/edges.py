"""The smallest plan of the sequence, and what must wait so that it is safe: memory first, parallelism second.

Where chunks share bytes, the writer of the later one waits for all users of the earlier one. MXNet's notes call these
implicit dependences.
"""

import numpy as np
from attrs import define, field, frozen
from sortedcontainers import SortedDict

from allocator.concurrency import MOST_STEPS, Dependences, happens_before
from allocator.derive.users import Users
from allocator.policies.base import Solve, Waits
from allocator.problem import Column, Plan, Problem


@frozen(eq=False)
class Edges:
    """Steps wait in `dependences` for data already."""

    dependences: Dependences
    name: str = "edges"

    def may_overwrite(self, others: Column, step: int) -> bool:
        """Returns whether the others are over in sequence; if so, the step will wait for them."""
        return bool((others < step).all())

    def place(self, problem: Problem, users: Users, solve: Solve) -> Plan:  # noqa: ARG002 (of the protocol)
        """Returns the plan of the sequence."""
        return solve(problem)

    def waits(self, problem: Problem, users: Users, plan: Plan) -> Waits:
        """Returns the dependences that the plan implies, but for those that the data implies."""
        before, after = implicit(problem, users, plan.offset)
        if self.dependences.count <= MOST_STEPS:
            is_implied = happens_before(self.dependences).pairs(before, after)
            before, after = before[~is_implied], after[~is_implied]
        return Waits(before, after)


def implicit(problem: Problem, users: Users, offset: Column) -> tuple[Column, Column]:
    """Returns pairs (step, step that must wait for it): one uses bytes that the other overwrites.

    Each once, by waiter.
    """
    taken, pairs = _Bytes(), set[tuple[int, int]]()
    writer = users.writer
    chunks = np.flatnonzero(problem.size > 0)
    for chunk in chunks[np.argsort(writer[chunks], kind="stable")].tolist():
        taker, low = int(writer[chunk]), int(offset[chunk])
        for old in taken.replace(low, low + int(problem.size[chunk]), chunk):
            pairs.update((user, taker) for user in users.others(old, taker).tolist())
    rows = np.array(sorted(pairs, key=lambda edge: edge[::-1]), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@define(eq=False)
class _Bytes:
    """The chunk that last had each byte: start of a run -> (its end, chunk). Runs do not overlap."""

    runs: "SortedDict[int, tuple[int, int]]" = field(factory=SortedDict)

    def replace(self, low: int, high: int, chunk: int) -> list[int]:
        """Gives [low, high) to a chunk. Returns the chunks that had some of it."""
        first = max(self.runs.bisect_right(low) - 1, 0)
        starts = [s for s in self.runs.islice(first, self.runs.bisect_left(high)) if self.runs[s][0] > low]
        former = []
        for start in starts:
            end, old = self.runs.pop(start)
            former.append(old)
            if start < low:
                self.runs[start] = (low, old)
            if end > high:
                self.runs[high] = (end, old)
        self.runs[low] = (high, chunk)
        return former
