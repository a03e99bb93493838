from enum import StrEnum
from unittest.mock import patch

import numpy as np
import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allocator.check import offsets as judge
from allocator.check.offsets import Fault, FaultKind, check
from allocator.kernels.judge import CURSOR, find_overlap
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, Problem, column
from allocator.solvers import STRATEGIES, solve
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.strategies import offsets, problems

SMALL = problems(max_chunks=5, max_size=4, horizon=4, alignments=(1, 2))


def kind_of(problem: Problem, offset: Column, arena_bytes: int) -> StrEnum | None:
    fault = check(problem, offset, arena_bytes)
    return fault.kind if fault else None


def free(begin: list[int], end: list[int], size: list[int]) -> Problem:
    """Returns a problem without alignment, pins and overwrites."""
    return Problem(begin, end, size, [1] * len(size), [FREE] * len(size))


def pair(end: int = 5) -> Problem:
    """Returns a problem: chunk 1 overwrites bytes [2, 6) of chunk 0 in tick 2, in which chunk 2 begins."""
    return Problem([0, 2, 2], [3, end, 4], [8, 4, 2], [1, 1, 1], [FREE] * 3, [1], [0], [2])


@given(st.data())
def test_check_judges_any_plan_as_brute_force_does(data: st.DataObject) -> None:
    problem = data.draw(SMALL)
    offset = data.draw(offsets(problem, 10))
    arena = data.draw(st.integers(4, 16))
    assert (check(problem, column(offset), arena) is None) == is_right(problem, offset, arena)


@given(st.data())
def test_check_judges_a_nearly_right_plan_as_brute_force_does(data: st.DataObject) -> None:
    problem = data.draw(SMALL)
    assume(len(problem))
    plan = solve(problem, data.draw(st.sampled_from(sorted(STRATEGIES))))
    offset = plan.offset.copy()
    offset[data.draw(st.integers(0, len(problem) - 1))] += data.draw(st.integers(-3, 3))
    arena = plan.arena_bytes + data.draw(st.integers(-1, 3))
    assert (check(problem, offset, arena) is None) == is_right(problem, offset.tolist(), arena)


def test_chunks_that_touch_in_bytes_or_in_time_do_not_overlap() -> None:
    assert kind_of(free([0, 0], [2, 2], [4, 4]), column([0, 4]), 8) is None
    assert kind_of(free([0, 2], [2, 4], [4, 4]), column([0, 0]), 4) is None


def test_one_byte_in_one_tick_is_an_overlap() -> None:
    fault = check(free([0, 1], [2, 4], [4, 4]), column([0, 3]), 8)
    assert fault is not None
    assert (fault.kind, fault.chunks) == (FaultKind.OVERLAP, (0, 1))
    assert "chunk 0 has bytes [0, 4) in ticks [0, 2) and chunk 1 has bytes [3, 7) in ticks [1, 4)" in fault.message


def test_an_overwriter_shares_the_last_tick_with_what_it_overwrites() -> None:
    assert kind_of(pair(), column([0, 2, 8]), 10) is None


@pytest.mark.parametrize("offset", [0, 1, 2, 6, 7])
def test_a_third_chunk_that_begins_in_the_tick_of_overwriting_must_stay_off_all_old_bytes(offset: int) -> None:
    assert kind_of(pair(), column([0, 2, offset]), 10) == FaultKind.OVERLAP


def test_bytes_beside_an_overwriter_are_free_from_the_next_tick_on() -> None:
    problem = evolve(pair(), begin=[0, 2, 3])
    assert kind_of(problem, column([0, 2, 0]), 10) is None
    assert kind_of(problem, column([0, 2, 1]), 10) == FaultKind.OVERLAP


def test_an_overwriter_at_another_offset_is_refused() -> None:
    fault = check(pair(), column([0, 3, 8]), 10)
    assert fault is not None
    assert (fault.kind, fault.chunks) == (FaultKind.OVERWRITE, (1, 0))
    assert "must lie at 2, but lies at 3" in fault.message


def test_each_kind_of_fault_in_one_chunk_is_named() -> None:
    problem = Problem([0], [1], [8], [4], [4])
    assert kind_of(problem, column([4]), 12) is None
    assert kind_of(problem, column([4]), 11) == FaultKind.ARENA
    assert kind_of(problem, column([8]), 16) == FaultKind.PINNED
    assert kind_of(problem, column([6]), 16) == FaultKind.ALIGNMENT
    assert kind_of(problem, column([-4]), 16) == FaultKind.NEGATIVE
    assert kind_of(problem, column([4, 4]), 16) == FaultKind.LENGTH


def test_chunks_of_no_bytes_may_lie_anywhere() -> None:
    problem = Problem([0, 0], [2, 2], [0, 4], [64, 1], [FREE, FREE])
    assert kind_of(problem, column([2, 0]), 4) is None


@given(problems(), st.data())
def test_a_solver_that_forgets_alignment_is_caught(problem: Problem, data: st.DataObject) -> None:
    aligned = np.flatnonzero((problem.alignment > 1) & (problem.size > 0))
    assume(len(aligned))
    offset = solve(problem, "greedy_by_size").offset.copy()
    offset[data.draw(st.sampled_from(aligned.tolist()))] += 1
    assert kind_of(problem, offset, 10_000) == FaultKind.ALIGNMENT


@given(problems(alignments=(1,)))
def test_a_solver_that_packs_one_byte_too_tight_is_caught(problem: Problem) -> None:
    apart = evolve(problem, src=(), dest=(), overwrite_offset=(), begin=[0] * len(problem), end=[9] * len(problem))
    used = np.flatnonzero(apart.size > 0)
    assume(len(used) > 1)
    offset = solve(apart, "naive").offset.copy()
    offset[used[np.argsort(offset[used])][1:]] -= 1
    assert kind_of(apart, offset, 10_000) == FaultKind.OVERLAP


@given(problems(alignments=(1,)))
def test_a_solver_that_ends_lifetimes_one_tick_early_is_caught(problem: Problem) -> None:
    """Chunk n begins in the last tick of chunk n - 1 and overwrites nothing; all are put at 0."""
    count = int((problem.size > 0).sum())
    assume(count > 1)
    stairs = free(list(range(count)), list(range(2, count + 2)), problem.size[problem.size > 0].tolist())
    assert kind_of(stairs, column([0] * count), 10_000) == FaultKind.OVERLAP
    assert kind_of(evolve(stairs, end=stairs.end - 1), column([0] * count), 10_000) is None


def compiled_fault(problem: Problem, offset: Column) -> Fault | None:
    """Returns the fault that the code for very many chunks reports, a few chunks after the other."""
    with patch.multiple(judge, MANY=0, GROUP=7, SLICE=3):
        return check(problem, offset, 2**40)


@st.composite
def cliques(draw: st.DrawFn) -> tuple[Problem, Column]:
    """Draws a plan without faults, or one in which a chunk or two were moved or swapped."""
    count = draw(st.integers(1, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    begin = random.integers(0, 30, count)
    problem = Problem(
        begin, begin + random.integers(1, 20, count), random.integers(0, 9, count), np.ones(count), np.full(count, FREE)
    )
    offset = solve(problem, "greedy_by_size").offset.copy()
    for _ in range(draw(st.integers(0, 2))):
        one, other = random.integers(0, count, 2)
        offset[one] = max(0, offset[other] + random.integers(-4, 5))
    return problem, column(offset)


@given(cliques())
@settings(max_examples=80)
def test_a_compiled_verdict_names_the_same_two_chunks(drawn: tuple[Problem, Column]) -> None:
    assert compiled_fault(*drawn) == check(*drawn, 2**40)


@given(problems(max_chunks=20), st.data())
def test_a_compiled_check_permits_overwriters(problem: Problem, data: st.DataObject) -> None:
    offset = solve(problem, "greedy_by_size").offset.copy()
    assert compiled_fault(problem, offset) is None
    assume(len(problem))
    offset[data.draw(st.integers(0, len(problem) - 1))] += data.draw(st.integers(0, 3))
    assert compiled_fault(problem, offset) == check(problem, offset, 2**40)


@given(cliques())
@settings(max_examples=20)
def test_the_kernel_of_the_judge_finds_the_same_plain(drawn: tuple[Problem, Column]) -> None:
    problem, low = drawn
    high, holder = low + np.maximum(problem.size, 1), np.argsort(low, kind="stable")
    place = np.argsort(holder)
    entering, leaving = np.lexsort((low, problem.begin)), np.argsort(problem.end, kind="stable")
    rows = (problem.begin, problem.end, low, high, entering, leaving, place, holder)
    trees = [np.zeros(2 << len(low).bit_length(), np.int8) for _ in range(2)]
    cursors, most = [np.zeros(CURSOR, np.int64) for _ in range(2)], len(low)
    plain = find_overlap(*rows, trees[0], cursors[0], most)
    assert plain == compiled(find_overlap)(*rows, trees[1], cursors[1], most)
    assert np.array_equal(trees[0], trees[1]) and np.array_equal(cursors[0], cursors[1])


def test_a_byte_too_little_in_a_tall_stack_is_found() -> None:
    """Chunks come in no order of address, each between two of many, and stay to the end."""
    count = 30_000
    begin = np.random.default_rng(0).permutation(count)
    stack = Problem(begin, np.full(count, count), np.full(count, 8), np.ones(count), np.full(count, FREE))
    offset = np.arange(count) * 8
    assert kind_of(stack, column(offset), 8 * count) is None
    offset[-1] -= 1
    fault = check(stack, column(offset), 8 * count)
    assert fault is not None
    assert (fault.kind, fault.chunks) == (FaultKind.OVERLAP, (count - 2, count - 1))
