"""Cuts of the operators in their order, by dynamic programming over the places of the cuts."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.cuts.problem import TRAFFIC, CutProblem
from allocator.problem import Column

Matrix = npt.NDArray[np.float64]
Segment = tuple[int, int, int]
"""A part with its first operator and the one behind its last: (part, first, end)."""


@frozen(eq=False)
class Memory:
    """What segments need beside weights: the most of `of_operator`, times `factor`; all they need where `measured`."""

    of_operator: Column
    factor: float = 1.0
    measured: Mapping[Segment, float] = field(factory=dict)


def cut_in_order(problem: CutProblem, memory: Memory) -> tuple[int, ...] | None:
    """Returns the ends of the parts in the best cut of the order; None where no cut fits.

    Of cuts with the same objective, one whose fullest part is emptiest is taken; of cuts with the same longest time,
    one that sends few bytes. O(parts * operators²).
    """
    return _Table(problem, memory).best()


@frozen(eq=False)
class _Table:
    """`value[j, e]`, `second[j, e]`: the best of parts 0 .. j - 1 with the operators before e; `start` where the last
    of them begins."""

    problem: CutProblem
    memory: Memory
    value: Matrix = field(init=False)
    second: Matrix = field(init=False)
    start: Column = field(init=False)

    def __attrs_post_init__(self) -> None:
        shape = (self.problem.parts + 1, len(self.problem) + 1)
        object.__setattr__(self, "value", np.full(shape, np.inf))
        object.__setattr__(self, "second", np.full(shape, np.inf))
        object.__setattr__(self, "start", np.full(shape, -1, np.int64))
        self.value[0, 0] = self.second[0, 0] = 0.0

    def best(self) -> tuple[int, ...] | None:
        n, parts = len(self.problem), self.problem.parts
        open_at = _open_places(self.problem)
        for first in range(n + 1):
            if not self.problem.is_whole:
                self._leave_empty(first)
            if first < n and open_at[first]:
                self._extend(first, open_at)
        if not np.isfinite(self.value[parts, n]):
            return None
        ends = [n]
        for part in range(parts, 1, -1):
            ends.append(int(self.start[part, ends[-1]]))
        return tuple(reversed(ends))

    def _leave_empty(self, first: int) -> None:
        for part in range(1, self.problem.parts + 1):
            before, now = self.value[part - 1, first], self.value[part, first]
            if (before, self.second[part - 1, first]) < (now, self.second[part, first]):
                self.value[part, first], self.second[part, first] = before, self.second[part - 1, first]
                self.start[part, first] = first

    def _extend(self, first: int, open_at: npt.NDArray[np.bool_]) -> None:
        """Lets each part begin at `first` and end anywhere behind."""
        problem = self.problem
        received = np.cumsum(problem.values.new_since(first, len(problem))[first:])
        needs = self._needs(first)
        capacities = np.array(problem.capacities, np.float64)[:, None]
        fits = (needs <= capacities) & open_at[first + 1 :]
        fill = needs / np.maximum(capacities, 1.0)
        traffic = problem.objective == TRAFFIC
        worth = received.astype(np.float64)
        if not traffic:
            worth = np.cumsum(np.array(problem.seconds[first:])) + worth * problem.seconds_a_byte
        before, second = self.value[:-1, first, None], self.second[:-1, first, None]
        value = before + worth if traffic else np.maximum(before, worth)
        tie = np.maximum(second, fill) if traffic else second + received
        old, old_tie = self.value[1:, first + 1 :], self.second[1:, first + 1 :]
        better = fits & np.isfinite(before) & ((value < old) | ((value == old) & (tie < old_tie)))
        old[better], old_tie[better] = value[better], tie[better]
        self.start[1:, first + 1 :][better] = first

    def _needs(self, first: int) -> Matrix:
        """Returns what each part would need, if it began at `first`, by its end."""
        problem, memory = self.problem, self.memory
        kept = np.cumsum(problem.weights.new_since(first, len(problem))[first:])
        arena = np.maximum.accumulate(memory.of_operator[first:]) * memory.factor
        needs: Matrix = np.tile(kept + arena, (problem.parts, 1))
        for (part, begin, end), nbytes in memory.measured.items():
            if begin == first:
                needs[part, end - first - 1] = nbytes
        return needs


@frozen
class Shortage:
    """The part in which a cut of the order gets stuck, the operators that it would have, and the bytes that they need.

    `nbytes` are those of weights and of the operator that writes most.
    """

    part: int
    operators: range
    nbytes: int


def shortage(problem: CutProblem) -> Shortage:
    """Returns where operators run out of room, if each part takes as many of the order as it can hold.

    The last part takes all that is left; where no part gets stuck, it is the last one that is told.
    """
    open_at, n, first = _open_places(problem), len(problem), 0
    for part, capacity in enumerate(problem.capacities):
        kept = np.cumsum(problem.weights.new_since(first, n)[first:])
        needs = kept + np.maximum.accumulate(problem.least[first:])
        last = n - (problem.parts - part - 1)
        ends = [end for end in range(first + 1, last + 1) if open_at[end] or end == n]
        held = [end for end in ends if needs[end - first - 1] <= capacity]
        if part == problem.parts - 1 or not held:
            end = n if part == problem.parts - 1 else min(ends, default=n)
            return Shortage(part, range(first, end), int(needs[end - first - 1]))
        first = max(held)
    return Shortage(0, range(0), 0)


def _open_places(problem: CutProblem) -> npt.NDArray[np.bool_]:
    """Returns, for each place before an operator and the end, whether a cut there leaves together what has to be."""
    is_open = np.ones(len(problem) + 1, bool)
    for group in problem.together:
        is_open[min(group) + 1 : max(group) + 1] = False
    return is_open
