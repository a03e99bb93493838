"""Branch and bound: the smallest arena, with its proof as far as the budget goes."""

from collections.abc import Iterator

import numpy as np
from attrs import define, field, frozen

from allocator.problem import Column, Problem
from allocator.solvers.base import Answer, SolverOptions, Traits, without_empty
from allocator.solvers.greedy import GREEDY_BY_SIZE
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.search.bodies import Bodies, bodies, parts
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.descent import Descent
from allocator.solvers.search.pairwise import Pairwise
from allocator.solvers.search.profiles import arranged
from allocator.solvers.search.reductions import Reduction, reduce
from allocator.solvers.search.steps import answer_of

_FEW = 64
"""Bodies up to which rectangles, too, are searched pair by pair. That trades time for each node for shorter proofs;
tools/bench_solvers.py times the search."""

MOST_CONFLICTS = 4_000_000
"""Pairs of chunks that meet, beyond which a table of them takes too long."""


@frozen(eq=False)
class Exact:
    """Parts that never meet are solved apart; what finds a place in any plan is left out until the rest is placed.

    For each part, capacities between the bound and the best arena known are probed, in many static orders round-robin,
    with limits of nodes that grow (Moffitt 2023, MiniMalloc, section 5); a probe that comes to an end without a plan is
    a proof that there is none. Starts from greedy by size, and stops at any time with the best plan so far: at once
    where more chunks meet than a table can hold.
    """

    name: str = "exact"
    traits: Traits = Traits(most_chunks=20_000)
    nodes: int = 5_000_000

    def solve(self, problem: Problem, options: SolverOptions) -> Answer:
        """Returns the offsets, and the proved bound."""
        start = GREEDY_BY_SIZE.solve(problem, options).offset
        if count_conflicts(problem) > MOST_CONFLICTS:
            return Answer(start)
        return answer_of(self.search(problem, start, options, Budget.of(options, self.nodes)))

    def search(self, problem: Problem, offset: Column, options: SolverOptions, budget: Budget) -> "_Search":
        """Returns a search from a plan: an offset for each chunk."""
        whole = bodies(problem)
        above = np.flatnonzero(offset[whole.root] + whole.size > options.goal)
        searches = [_PartSearch.of(problem, part, offset, options) for part in parts(whole, above)]
        return _Search(problem, options.goal, budget, searches, offset)


@define(eq=False)
class _Search:
    """The searches of all parts above the goal; the plan in which the other parts keep their places."""

    problem: Problem
    goal: int
    budget: Budget
    searches: "list[_PartSearch]"
    start: Column

    @property
    def arena(self) -> int:
        """The bytes of the best plan, or the goal where it needs less."""
        return max([self.goal, *(s.descent.arena for s in self.searches)])

    @property
    def proved(self) -> int:
        """The bytes that the searches of the parts proved that no arena goes below."""
        return max([0, *(s.descent.proved for s in self.searches)])

    def steps(self) -> Iterator[None]:
        """Searches for all parts in turn, with more and more effort."""
        self.budget.found(self.arena)
        while not self.budget.is_over and (unfinished := self._unfinished()):
            for search in unfinished:
                yield from search.descent.improve(max(self.goal, self.proved), self.budget)
                self.budget.found(self.arena)

    def _unfinished(self) -> "list[_PartSearch]":
        """Returns the searches of those parts that may make the arena smaller."""
        least = max(self.goal, self.proved)
        self.budget.proved(self.proved)
        return [s for s in self.searches if s.descent.arena > least]

    def take(self, offset: Column) -> None:
        """Goes on from another plan, part by part where that is smaller."""
        for search in self.searches:
            search.take(offset)

    def offsets(self) -> Column:
        """Returns the best plan of each part."""
        improved = self.start.copy()
        for search in self.searches:
            improved[search.reduction.part.root] = search.offset()
        return without_empty(self.problem, self.problem.chains.offsets(improved))


@define(eq=False)
class _PartSearch:
    """One part: what is searched for, and what is not."""

    reduction: Reduction
    descent: Descent | Pairwise
    _start: Column = field(alias="start")
    _arena: int = field(alias="arena")

    @classmethod
    def of(cls, problem: Problem, part: Bodies, offset: Column, options: SolverOptions) -> "_PartSearch":
        """Begins with the plan of `offset` (of all chunks).

        Where a body is no rectangle, others may interlock with it.
        """
        part = arranged(part)
        start = offset[part.root]
        reduction = reduce(part, options.goal)
        core, core_start = reduction.core, start[reduction.kept]
        descent = (
            Descent(core, core_start, options.seed)
            if core.is_solid.all() and not 0 < len(core) <= _FEW
            else Pairwise.of(problem, core, core_start, options.seed)
        )
        return cls(reduction, descent, start, int((start + part.size).max()))

    def take(self, offset: Column) -> None:
        """Goes on from another plan if it is smaller: an offset for each chunk."""
        start = offset[self.reduction.part.root]
        arena = int((start + self.reduction.part.size).max())
        if arena < self._arena:
            self._start, self._arena = start, arena
        self.descent.take(start[self.reduction.kept])

    def offset(self) -> Column:
        """Returns the offset of each body of the part, by the best plan so far."""
        completed = self.reduction.completed(self.descent.offset)
        better = int((completed + self.reduction.part.size).max()) < self._arena
        return completed if better else self._start


EXACT = Exact()
