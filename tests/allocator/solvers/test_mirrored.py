"""Problems seen from above, in which the topmost chunks are chosen first."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.problem import FREE, Conflicts, Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.exact import EXACT
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.mirrored import Mirrored, MirroredSearch, mirrored
from allocator.solvers.naive import NAIVE
from allocator.solvers.quick import quickest
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import answer_of
from allocator.solvers.strip_packing import STRIP_PACKING_BESTFIT
from tests.helpers.allocator.brute_force import minimal_peak
from tests.helpers.allocator.strategies import problems
from tools.solver_instances import KINDS, draw

CELL = 4
ALIGNED = problems(max_chunks=20, max_size=3 * CELL, alignments=(CELL,))
TINY = problems(max_chunks=6, max_size=2 * CELL, horizon=5, alignments=(CELL,))


def aligned(kind: str, count: int, seed: int) -> Problem:
    problem = draw(kind, count, seed)
    return evolve(problem, alignment=np.where(np.isin(np.arange(count), problem.src), 1, 64))


def training_step() -> Problem:
    """Returns values of a forward pass and, at the peak, a loss of four bytes that outlives a gradient."""
    return Problem([0, 1, 2, 3, 4], [9, 8, 7, 6, 5], [192, 128, 256, 4, 128], [64] * 5, [FREE] * 5)


def seen_from_above(problem: Problem, goal: int) -> Mirrored:
    mirror = mirrored(problem, goal)
    assert mirror is not None
    return mirror


@given(ALIGNED, st.integers(0, 3 * CELL))
@settings(max_examples=60)
def test_a_plan_seen_from_above_is_one_of_the_whole_problem(problem: Problem, more: int) -> None:
    goal = lower_bound(problem) + more
    mirror = mirrored(problem, goal)
    if mirror is None:
        return
    for solver in (NAIVE, FIRST_FIT):
        placed = solver.solve(mirror.problem, SolverOptions()).offset
        offset = mirror.offsets(placed)
        arena = arena_bytes(problem, offset)
        assert check(problem, offset, arena) is None
        if arena_bytes(mirror.problem, placed) <= mirror.goal:
            assert arena <= goal


@given(TINY)
@settings(max_examples=60)
def test_no_plan_from_above_is_below_the_optimum_and_best_reaches_it(problem: Problem) -> None:
    least = minimal_peak(problem)
    mirror = mirrored(problem, least)
    if mirror is not None:
        placed = solve(mirror.problem, "exact").offset
        assert arena_bytes(problem, mirror.offsets(placed)) >= least
    assert solve(problem).arena_bytes == least


def test_a_chunk_of_one_cell_is_left_out_and_lies_topmost() -> None:
    problem = training_step()
    goal = lower_bound(problem)
    assert goal == 11 * 64 + 4
    assert arena_bytes(problem, STRIP_PACKING_BESTFIT.solve(problem, SolverOptions()).offset) == 12 * 64
    mirror = seen_from_above(problem, goal)
    assert mirror.problem.size.tolist() == [192, 128, 256, 128] and (mirror.problem.pinned == FREE).all()
    offset = quickest(problem, SolverOptions(goal=goal), (STRIP_PACKING_BESTFIT,)).offset
    assert check(problem, offset, goal) is None
    assert offset[3] == 11 * 64


def test_several_short_chunks_share_the_last_cell() -> None:
    problem = Problem([0, 0, 1, 2], [3, 1, 2, 3], [65, 4, 10, 4], [64] * 4, [FREE] * 4)
    mirror = seen_from_above(problem, 138)
    assert mirror.problem.size.tolist() == [128]
    offset = mirror.offsets(np.zeros(1, np.int64))
    assert offset.tolist() == [0, 128, 128, 128]


def test_a_larger_chunk_is_pinned_and_the_last_cell_kept_free_in_other_ticks() -> None:
    problem = Problem([0, 1, 2], [3, 2, 3], [128, 65, 64], [64] * 3, [FREE] * 3)
    mirror = seen_from_above(problem, 193)
    assert mirror.problem.pinned.tolist() == [FREE, 0, FREE, 0, 0]
    assert (mirror.problem.begin[3:].tolist(), mirror.problem.end[3:].tolist()) == ([0, 2], [1, 3])


def test_what_overwrites_the_topmost_chunk_goes_with_it() -> None:
    problem = Problem([0, 0, 1], [3, 2, 3], [200, 9, 4], [64, 64, 1], [FREE] * 3, [2], [1], [5])
    mirror = seen_from_above(problem, 256 + 9)
    assert mirror.offsets(np.zeros(1, np.int64)).tolist() == [0, 256, 261]


def test_where_what_lies_topmost_does_not_matter_nothing_is_chosen() -> None:
    begin, end, size = [0, 0, 0], [2, 2, 2], [64, 64, 5]
    free = Problem(begin, end, size, [64] * 3, [FREE] * 3)
    assert mirrored(free, 133) is not None
    assert mirrored(free, 132) is None, "the small chunk has more bytes than that"
    assert mirrored(free, 197) is None, "three cells would do"
    assert mirrored(free, 192) is None, "whole cells"
    assert mirrored(evolve(free, alignment=np.array([64, 64, 1])), 133) is None
    assert mirrored(evolve(free, pinned=np.array([0, FREE, FREE])), 133) is None
    assert mirrored(evolve(free, conflicts=Conflicts([0], [1])), 133) is None
    assert mirrored(Problem((), (), (), (), ()), 0) is None


def test_cells_of_too_many_bytes_are_not_looked_at() -> None:
    """Whole cells have twice as many bytes as sizes and alignments have together."""
    cell, short = 2**55, range(20, 120)
    begin, end = [0, 1, 2, 3, 4, *short], [9, 8, 7, 6, 5, *(tick + 1 for tick in short)]
    size = [3 * cell, 2 * cell, 4 * cell, 4, 2 * cell] + [4] * len(short)
    problem = Problem(begin, end, size, [cell] * len(size), [FREE] * len(size))
    assert mirrored(problem, lower_bound(problem)) is None
    assert solve(problem, nodes=1_000).lower_bound == 11 * cell + 4


@pytest.mark.parametrize(("kind", "count"), [("training_mirror", 68), ("cut_rectangles", 48), ("log_uniform", 92)])
def test_a_search_from_above_proves_plans_of_one_alignment(kind: str, count: int) -> None:
    problem = aligned(kind, count, 0)
    options = SolverOptions(goal=lower_bound(problem), nodes=100_000)
    start = FIRST_FIT.solve(problem, options).offset
    mirror = seen_from_above(problem, options.goal)
    search = MirroredSearch(EXACT, mirror).search(problem, start, options, Budget.of(options, 0))
    offset = answer_of(search).offset
    assert check(problem, offset, options.goal) is None
    assert search.proved == 0, "other plans may lie lower"


@pytest.mark.parametrize("kind", KINDS)
def test_best_is_right_on_problems_of_one_alignment(kind: str) -> None:
    for seed in range(2):
        plan = solve(aligned(kind, 60, seed), nodes=30_000)
        assert plan.status in {Status.OPTIMAL, Status.FEASIBLE}
