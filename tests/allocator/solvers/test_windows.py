"""Ejection search in windows of time, and first fit by begin, from whose plan it starts in large problems."""

import math
import time

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.problem import FREE, Column, Problem
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.first_fit import FIRST_FIT_BY_BEGIN
from allocator.solvers.quick import is_hurried, suitable
from allocator.solvers.search.budget import Budget
from allocator.solvers.windows import IN_WINDOWS
from tests.helpers.allocator.strategies import problems
from tools.solver_instances import RANDOM, draw


def lowered(problem: Problem, offset: Column, nodes: int) -> Column:
    """Returns the plan of a search in windows from another one."""
    options = SolverOptions(nodes=nodes, goal=lower_bound(problem))
    search = IN_WINDOWS.search(problem, offset, options, Budget.of(options, nodes))
    for _ in search.steps():
        assert search.arena <= arena_bytes(problem, offset)
    assert search.arena == arena_bytes(problem, search.offsets())
    return search.offsets()


def hurried(chunks: int) -> SolverOptions:
    """Returns options that leave a microsecond for each chunk."""
    return SolverOptions(until=time.monotonic() + 1e-6 * chunks)


def first_fit(problem: Problem) -> Column:
    """Places chunks by begin, each at the lowest place that is free, with no ring of those that are alive."""
    rows = np.flatnonzero(problem.size > 0)
    ties = problem.alignment[rows], -problem.size[rows], -problem.end[rows], problem.begin[rows]
    offset, placed = np.zeros(len(problem), np.int64), list[int]()
    for row in rows[np.lexsort(ties)].tolist():
        size, alignment = int(problem.size[row]), int(problem.alignment[row])
        alive = [k for k in placed if problem.end[k] > problem.begin[row]]
        tops = sorted({0, *(-(-int(offset[k] + problem.size[k]) // alignment) * alignment for k in alive)})
        offset[row] = next(
            low for low in tops if all(low + size <= offset[k] or offset[k] + problem.size[k] <= low for k in alive)
        )
        placed.append(row)
    return offset


@given(problems(max_chunks=20, overwrites=False))
def test_first_fit_by_begin_takes_the_lowest_free_place(problem: Problem) -> None:
    assert FIRST_FIT_BY_BEGIN.solve(problem, SolverOptions()).offset.tolist() == first_fit(problem).tolist()


@pytest.mark.parametrize("kind", [RANDOM, "mixed_alignment", "giants"])
def test_windows_lower_the_highest_chunks(kind: str) -> None:
    problem = draw(kind, 20_000, 1)
    start = FIRST_FIT_BY_BEGIN.solve(problem, SolverOptions()).offset
    offset = lowered(problem, start, 150_000)
    arena = arena_bytes(problem, offset)
    assert check(problem, offset, arena) is None
    assert arena < arena_bytes(problem, start)
    assert np.array_equal(lowered(problem, start, 150_000), offset)


@pytest.mark.parametrize("strategy", ["first_fit_by_begin", "pushdown_sorted"])
def test_windows_go_on_from_a_plan_with_overwrites(strategy: str) -> None:
    """The bytes that an overwriter leaves free hold other chunks in the plan of push-down, and may go on to do so."""
    plain = draw(RANDOM, 20_000, 2)
    dest = np.arange(0, 19_000, 10)
    src = plain.end[dest] - 1
    is_one = (src > dest) & (np.isin(src, dest, invert=True))
    dest, (src, first) = dest[is_one], np.unique(src[is_one], return_index=True)
    size = plain.size.copy()
    size[src] = (size[dest[first]] + 1) // 2
    problem = evolve(plain, size=size, src=src, dest=dest[first], overwrite_offset=np.zeros(len(src)))
    start = solve(problem, strategy).offset
    offset = lowered(problem, start, 50_000)
    assert check(problem, offset, arena_bytes(problem, offset)) is None


def test_windows_are_no_use_where_all_chunks_live_long() -> None:
    count = 5_000
    begin = np.arange(count)
    problem = Problem(begin, begin + count, np.arange(1, count + 1), np.ones(count), np.full(count, FREE))
    offset = solve(problem, "naive").offset
    assert np.array_equal(lowered(problem, offset, 1_000), offset)


def test_a_problem_without_bytes_has_no_windows() -> None:
    problem = Problem([0], [1], [0], [1], [FREE])
    assert lowered(problem, np.zeros(1, np.int64), 1_000).tolist() == [0]


def test_best_hurries_only_where_time_is_short_and_few_chunks_are_alive() -> None:
    problem, begin = draw(RANDOM, 60_000, 1), np.arange(60_000)
    assert suitable(problem, hurried(len(problem))) == [FIRST_FIT_BY_BEGIN]
    assert not is_hurried(problem, SolverOptions())
    assert not is_hurried(draw(RANDOM, 20_000, 1), hurried(20_000))
    assert not is_hurried(evolve(problem, end=begin + 500), hurried(len(problem)))
    assert not is_hurried(evolve(problem, pinned=np.where(begin == 7, 0, FREE)), hurried(len(problem)))


def test_a_hurried_plan_is_as_low_as_one_that_takes_much_longer() -> None:
    problem = draw(RANDOM, 200_000, 1)
    options = SolverOptions(until=math.inf, nodes=150_000, goal=lower_bound(problem))
    start = FIRST_FIT_BY_BEGIN.solve(problem, options).offset
    assert arena_bytes(problem, lowered(problem, start, 150_000)) < 1.06 * options.goal
