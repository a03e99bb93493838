"""Strip packing by covers: the lowest gap is filled with the set of chunks that leaves the least empty."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.problem import FREE, Column, Problem
from allocator.solvers import solve, strip_packing
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.strip_packing import STRIP_PACKING_COVER
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.strategies import problems
from tools.solver_instances import draw


def packed(problem: Problem, until: float = np.inf) -> Column:
    return STRIP_PACKING_COVER.solve(problem, SolverOptions(until=until)).offset


def plain(*rows: tuple[int, int, int]) -> Problem:
    """Returns a problem of rows (begin, end, size)."""
    begin, end, size = zip(*rows, strict=True)
    return Problem(begin, end, size, [1] * len(rows), [FREE] * len(rows))


@given(problems(max_chunks=30))
@settings(max_examples=60)
def test_offsets_are_right_with_time_and_without(problem: Problem) -> None:
    for until in (0.0, np.inf):
        offset = packed(problem, until)
        assert is_right(problem, offset.tolist(), arena_bytes(problem, offset))


@given(problems(max_chunks=20))
@settings(max_examples=20)
def test_plain_and_compiled_kernels_give_the_same(problem: Problem) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strip_packing, "_PLAIN", -1)
        compiled = packed(problem)
    assert compiled.tolist() == packed(problem).tolist()


def test_large_alignments_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    begin = rng.integers(50, size=300)
    alignment = [2**50] * 300
    problem = Problem(begin, begin + rng.integers(1, 9, 300), rng.integers(1, 2**40, 300), alignment, [FREE] * 300)
    assert arena_bytes(problem, packed(problem)) < 300 * 2**50


@given(problems(max_chunks=20), st.sampled_from((2**20, 2**50)))
@settings(max_examples=20)
def test_only_the_order_of_ticks_counts(problem: Problem, stretch: int) -> None:
    rigid = evolve(problem, src=(), dest=(), overwrite_offset=())
    longer = evolve(rigid, begin=problem.begin * stretch, end=problem.end * stretch)
    assert packed(longer).tolist() == packed(rigid).tolist()


def test_two_that_fill_the_gap_come_before_one_that_is_longer() -> None:
    """Best fit puts chunk 2 below, which lives longest, and no other one fits beside it at the bottom."""
    problem = plain((0, 3, 4), (3, 6, 4), (1, 5, 4))
    assert packed(problem).tolist() == [0, 0, 4]
    assert solve(problem, "strip_packing_bestfit").offset.tolist() == [4, 4, 0]


@pytest.mark.parametrize("kind", ["random", "cut_rectangles", "mixed_alignment", "log_uniform"])
def test_it_leaves_less_empty_than_best_fit(kind: str) -> None:
    """For most instances, so the sum of several counts."""
    drawn = [draw(kind, 3_000, seed) for seed in range(5)]
    gaps = [
        sum(solve(problem, strategy).arena_bytes / lower_bound(problem) - 1 for problem in drawn)
        for strategy in ("strip_packing_cover", "strip_packing_bestfit")
    ]
    assert gaps[0] < 0.8 * gaps[1]


def test_a_limit_of_nodes_ends_it_with_a_plan_that_is_right() -> None:
    problem = draw("random", 3_000, 0)
    short = evolve(STRIP_PACKING_COVER, nodes=20).solve(problem, SolverOptions()).offset
    assert check(problem, short, arena_bytes(problem, short)) is None
    assert arena_bytes(problem, short) > arena_bytes(problem, packed(problem))


def test_no_chunks_and_chunks_of_no_bytes_are_planned() -> None:
    assert len(packed(Problem([], [], [], [], []))) == 0
    assert packed(plain((0, 1, 0), (0, 2, 0))).tolist() == [0, 0]
