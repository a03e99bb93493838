"""Branch and bound: the smallest arena, with its proof as far as the budget goes."""

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
        return self.improve(problem, GREEDY_BY_SIZE.solve(problem, options).offset, options)

    def improve(self, problem: Problem, offset: Column, options: SolverOptions) -> Answer:
        """Returns the same, from a plan that is already there: never a larger arena."""
        if count_conflicts(problem) > MOST_CONFLICTS:
            return Answer(offset)
        budget, whole = Budget.of(options, self.nodes), bodies(problem)
        tops = offset[whole.root] + whole.size
        searches = [
            _PartSearch.of(problem, p, offset, options) for p in parts(whole, np.flatnonzero(tops > options.goal))
        ]
        proved = 0
        while not budget.is_over:
            proved = max([proved, *(s.descent.proved for s in searches)])
            unfinished = [s for s in searches if s.descent.arena > max(options.goal, proved)]
            if not unfinished:
                break
            budget.seen.bound = max(proved, budget.seen.bound)
            for search in unfinished:
                search.descent.improve(max(options.goal, proved), budget)
                budget.seen.best = max(options.goal, *(s.descent.arena for s in searches))
        improved = offset.copy()
        for search in searches:
            improved[search.reduction.part.root] = search.offset()
        return Answer(_with_chains(problem, improved), max([proved, *(s.descent.proved for s in searches)]))


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

    def offset(self) -> Column:
        """Returns the offset of each body of the part, by the best plan so far."""
        completed = self.reduction.completed(self.descent.offset)
        better = int((completed + self.reduction.part.size).max()) < self._arena
        return completed if better else self._start


def _with_chains(problem: Problem, offset: Column) -> Column:
    """Returns the offsets of all chunks, from a column that is right for the roots."""
    return without_empty(problem, problem.chains.offsets(offset))


EXACT = Exact()
