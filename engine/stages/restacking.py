"""Addresses for chunks of other sizes: stacked in the order of a plan that was searched for.

Lifetimes and overwrites are those of the searched plan. Each chain of overwrites begins at the lowest address above all
chunks that were below it and live at the same time: the least arena with that order. Nothing is searched for, so a
search may find a smaller arena. The result counts as good enough where its arena, divided by the most bytes alive at
once, is no larger than that of the searched plan. Where no order is good enough, addresses are searched for, and the
order that is found is tried for the sizes to come.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import define, evolve, field, frozen

from allocator.breadths import breadths_of, first_tick
from allocator.derive.chunks import judge
from allocator.derive.overwrites import Refusal
from allocator.problem import Column, Plan, Problem
from allocator.solvers.base import arena_bytes
from engine.planning.placed import PlacedPlan

MOST_ORDERS = 4
"""Orders that are kept. Each is tried before addresses are searched for."""
_DECIDED_BY_SIZE = frozenset((Refusal.NONE, Refusal.OUTSIDE, Refusal.ELSEWHERE, Refusal.GIVEN))
Below = tuple[tuple[int, int], ...]
"""Chunks that lie below another one and are alive with it: the root of their chain, and the chunk."""
Solve = Callable[[Problem], Plan]


@frozen(eq=False)
class Order:
    """The roots of chains in the order of their addresses, each with the chunks right below it.

    The plan that it comes from has an arena of `arena_bytes`, and `breadth` bytes alive at once.
    """

    roots: tuple[tuple[int, Below], ...]
    arena_bytes: int
    breadth: int

    def offsets(self, size: Column, problem: Problem) -> Column:
        """Returns the offset of each chunk, for chunks of these sizes."""
        sizes, alignment, at = size.tolist(), problem.alignment.tolist(), [0] * len(size)
        for root, below in self.roots:
            low = 0
            for other, chunk in below:
                low = max(low, at[other] + sizes[chunk])
            at[root] = -(-low // alignment[root]) * alignment[root]
        return np.array(at, np.int64)[problem.chains.root]


@frozen(eq=False)
class Candidates:
    """Overwrites that sizes may allow: the owner that is written, the value that it is written over, the owner of that,
    and the offset inside the value. Of each pair of `rivals`, at most one is taken.
    """

    out: Column
    value: Column
    owner: Column
    offset: Column
    rivals: Column


@define(eq=False)
class Restacking:
    """The orders of plans with the same chunks. `value` has the value that each chunk of `plan` is for."""

    plan: PlacedPlan
    value: Column
    candidates: Candidates
    orders: list[Order]
    decided: tuple[npt.NDArray[Any], ...] = field(init=False)

    @decided.default
    def _decided(self) -> tuple[npt.NDArray[Any], ...]:
        extents = np.array([v.layout.extent for v in self.plan.lowered.values], np.int64)
        return self._decisions(*extents.reshape(-1, 2).T)

    def decides_alike(self, low: Column, high: Column) -> bool:
        """Returns whether chunks of other sizes would overwrite each other as they do in the plan.

        [low, high) are the bytes of each value, from the first byte of its owner.
        """
        return all(map(np.array_equal, self.decided, self._decisions(low, high)))

    def _decisions(self, low: Column, high: Column) -> tuple[npt.NDArray[Any], ...]:
        """Returns all that sizes decide: which values are empty, what fits where, and what is taken first."""
        c, size = self.candidates, high - low
        written, room, offset = size[c.out], size[c.owner], low[c.value] + c.offset
        fits = (offset >= 0) & (offset <= room - written)
        one, other = c.rivals.T
        first = np.sign(written[other] - written[one])
        first = np.where(first == 0, np.sign(room[one] - room[other]), first)
        return size[self.value] > 0, fits, offset == 0, first

    def sizes(self, low: Column, high: Column) -> Column:
        """Returns the bytes of each chunk, with the padding that the plan has."""
        size = (high - low)[self.value]
        is_root = self.plan.problem.chains.root == np.arange(len(size))
        return size + np.where(is_root & (size > 0), self.plan.options.padding, 0)

    def offsets(self, size: Column, solve: Solve) -> Column:
        """Returns the offset of each chunk, for chunks of these sizes; `solve` searches where no order is good."""
        problem, breadth = self.plan.problem, _breadth(self.plan.problem, size)
        for order in self.orders:
            offset = order.offsets(size, problem)
            arena = int((offset + size).max(initial=0))
            if arena * order.breadth <= order.arena_bytes * breadth:
                return offset
        searched = evolve(problem, size=size)
        plan = solve(searched)
        self.orders = [_order(searched, plan.offset), *self.orders][:MOST_ORDERS]
        return plan.offset


def restacking(plan: PlacedPlan) -> tuple[Restacking, ...]:
    """Returns the order of a plan; () where a chunk begins inside the bytes of the chunk that it overwrites."""
    if plan.problem.overwrite_offset.any():
        return ()
    owners = plan.owners(plan.chunks)
    value = np.array([owners[chunk].id for chunk in range(len(plan.problem))], np.int64)
    return (Restacking(plan, value, _candidates(plan), [_order(plan.problem, plan.plan.offset)]),)


def _breadth(problem: Problem, size: Column) -> int:
    """Returns the most bytes alive at once for chunks of these sizes."""
    return int(breadths_of(first_tick(problem), problem.end, size).value.max(initial=0))


def _order(problem: Problem, offset: Column) -> Order:
    begin, end, rows, root = first_tick(problem), problem.end, np.flatnonzero(problem.size > 0), problem.chains.root
    below = dict[int, dict[tuple[int, int], None]]()
    for chunk in rows[np.argsort(offset[rows], kind="stable")].tolist():
        alive = rows[(begin[rows] < end[chunk]) & (begin[chunk] < end[rows])]
        under = alive[(offset[alive] < offset[chunk]) & (root[alive] != root[chunk])]
        pairs = zip(root[under].tolist(), under.tolist(), strict=True)
        below.setdefault(int(root[chunk]), {}).update(dict.fromkeys(pairs))
    roots = tuple((chunk, _right_below(pairs, below)) for chunk, pairs in below.items())
    return Order(roots, arena_bytes(problem, offset), _breadth(problem, problem.size))


def _right_below(pairs: Iterable[tuple[int, int]], below: Mapping[int, Collection[tuple[int, int]]]) -> Below:
    """Returns those of the pairs that no other one is above of: what lies below a root lies below all that it bears."""
    implied = set[tuple[int, int]]().union(*(below[root] for root, _ in pairs))
    return tuple(pair for pair in pairs if pair not in implied)


def _candidates(plan: PlacedPlan) -> Candidates:
    values, of = plan.lowered.values, {number: value for value, number in plan.ids.items()}
    judged = [j for j in judge(plan.program) if j.refusal in _DECIDED_BY_SIZE and plan.options.overwrite]
    forwards = [
        next(o.offset for o in plan.program.steps[j.step].overwrites if (o.out, o.src) == (j.out, j.src))
        for j in judged
    ]
    rivals = [
        (i, k)
        for k, one in enumerate(judged)
        for i, other in enumerate(judged[:k])
        if one.out == other.out or one.candidate.dest == other.candidate.dest
    ]
    return Candidates(
        np.array([of[j.out] for j in judged], np.int64),
        np.array([of[j.src] for j in judged], np.int64),
        np.array([values[of[j.src]].owner for j in judged], np.int64),
        np.array(forwards, np.int64),
        np.array(rivals, np.int64).reshape(-1, 2),
    )
