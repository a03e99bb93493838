"""The allocation problem of lowered calls, and the search for its smallest arena, with or without a budget."""

import time
from collections.abc import Mapping

from attrs import evolve

from allocator import solvers
from allocator.derive.chunks import Chunks, to_problem
from allocator.problem import NO_CAPACITY, Column, Plan, Problem
from allocator.solvers.base import Solver
from engine import searches
from engine.lower.calls import Lowered, Role
from engine.planning.options import Options
from engine.searches.in_use import current_place
from ops.schema.workspace import STEP


def problem_of(chunks: Chunks, lowered: Lowered, ids: Mapping[int, int], options: Options) -> Problem:
    """Returns the problem of placing the chunks, with the alignment and padding of the options."""
    problem = to_problem(chunks, options.alignment, options.padding)
    return align_items(problem, lowered, ids, chunks.chunk_of)


def align_items(problem: Problem, lowered: Lowered, ids: Mapping[int, int], chunk_of: Column) -> Problem:
    """Raises alignments: to the element size of every value in a chain, and for what has parts to their alignment."""
    parts = STEP if lowered.target.is_host else 1
    alignment, root = problem.alignment.tolist(), problem.chains.root[chunk_of].tolist()
    for value in lowered.values:
        if value.id in ids:
            chunk = root[ids[value.id]]
            least = parts if value.role in (Role.WORKSPACE, Role.PACKED) else value.spec.dtype.itemsize
            alignment[chunk] = max(alignment[chunk], least)
    return evolve(problem, alignment=alignment)


def solve_problem(problem: Problem, options: Options, budget: int) -> Plan:
    """Returns the plan with the smallest arena found, with the budget in bytes as its capacity.

    If that arena is larger than the budget and the lower bound is not, a second search has the budget as its goal, with
    as many nodes and the time that is left: a plan that fits is easier to find than a smallest one.
    """
    until = time.monotonic() + options.timeout
    plan = _solve(problem, options, NO_CAPACITY, options.timeout)
    left = until - time.monotonic()
    if plan.lower_bound <= budget < plan.arena_bytes and left > 0:
        aimed = _solve(problem, options, budget, left)
        smallest = min(plan, aimed, key=lambda p: p.arena_bytes)
        plan = evolve(smallest, bound=plan.bound.raised(aimed.bound))
    return evolve(plan, capacity=budget)


def _solve(problem: Problem, options: Options, capacity: int, seconds: float) -> Plan:
    place = current_place()
    strategy: str | Solver = options.strategy
    if place is not None and strategy == solvers.BEST:
        strategy = searches.RoundSearch(place)
    return solvers.solve(problem, strategy, options.seed, capacity=capacity, seconds=seconds, nodes=options.nodes)
