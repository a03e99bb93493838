"""Blocks of chunks that fit together: nothing in them is empty, and their plans are plans of the chunks."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.interrupts import Stop, stopped_by
from allocator.problem import FREE, Column, Problem, column
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.placing.units import units_of
from allocator.solvers.search.blocks import Blocks, touching
from allocator.solvers.search.budget import Budget
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems
from tools.solver_instances import HEIGHT, draw

FEW = problems(max_chunks=30, max_size=4, horizon=6, alignments=(1, 2))
"""Chunks of few sizes and lifetimes, so that many fit together."""


def plain(*rows: tuple[int, int, int], alignment: int = 1) -> Problem:
    """Returns a problem of rows (begin, end, size)."""
    begin, end, size = zip(*rows, strict=True)
    return Problem(begin, end, size, [alignment] * len(rows), [FREE] * len(rows))


def area(begin: Column, end: Column, size: Column) -> int:
    return int(((end - begin) * size).sum())


@given(FEW)
@settings(max_examples=80)
def test_no_byte_of_a_block_is_empty_and_its_plan_is_right(problem: Problem) -> None:
    blocks, units = Blocks.of(problem), units_of(problem)
    joined = blocks.problem
    assert area(joined.begin, joined.end, joined.size) == area(units.begin, units.end, units.size)
    plan = solve(joined, "greedy_by_size")
    offset = blocks.offsets(plan.offset)
    assert is_right(problem, offset.tolist(), plan.arena_bytes)
    assert arena_bytes(problem, offset) == plan.arena_bytes


@given(FEW)
@settings(max_examples=30)
def test_blocks_are_found_again_in_a_plan_that_keeps_them(problem: Problem) -> None:
    blocks = Blocks.of(problem)
    by_block = solve(blocks.problem, "greedy_by_size").offset
    again = blocks.joined(blocks.offsets(by_block))
    assert again is not None and again.tolist() == by_block.tolist()


def test_blocks_are_not_found_in_a_plan_that_tears_them() -> None:
    blocks = Blocks.of(plain((0, 2, 4), (2, 4, 4), (0, 4, 4)))
    assert len(blocks.problem) == 1
    assert blocks.joined(column([0, 4, 8])) is None
    assert blocks.joined(column([0, 0, 4])) is not None


@given(FEW, st.data())
@settings(max_examples=30)
def test_blocks_do_not_depend_on_chunk_numbers(problem: Problem, data: st.DataObject) -> None:
    other = relabelled(problem, data.draw(st.permutations(range(len(problem)))))
    kinds = [
        Counter(zip(*(c.tolist() for c in (p.begin, p.end, p.size, p.alignment)), strict=True))
        for p in (Blocks.of(problem).problem, Blocks.of(other).problem)
    ]
    assert kinds[0] == kinds[1]


numbers = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 3)), max_size=20)


@given(numbers)
def test_as_many_pairs_touch_as_there_may_be(rows: list[tuple[int, int, int]]) -> None:
    begin, life, size = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    end = begin + life
    before, after = touching(begin, end, size, np.ones(len(rows), np.int64))
    assert (end[before] == begin[after]).all() and (size[before] == size[after]).all()
    assert len({*before.tolist()}) == len({*after.tolist()}) == len(before)
    ends, begins = (Counter(zip(c.tolist(), size.tolist(), strict=True)) for c in (end, begin))
    assert len(before) == (ends & begins).total()


def test_bytes_that_are_no_multiple_of_the_alignment_are_not_stacked() -> None:
    assert len(Blocks.of(plain((0, 4, 6), (0, 4, 6), (4, 8, 12), alignment=4)).problem) == 3
    assert len(Blocks.of(plain((0, 4, 8), (0, 4, 8), (4, 8, 16), alignment=4)).problem) == 1


def test_large_sizes_and_late_ticks_do_not_overflow() -> None:
    late, size = 2**60, 2**56
    problem = plain(*[(late + k, late + k + 1, size) for k in range(8)], *[(late, late + 8, size)] * 8)
    blocks = Blocks.of(problem).problem
    assert (blocks.size.tolist(), blocks.begin.tolist(), blocks.end.tolist()) == ([9 * size], [late], [late + 8])


@pytest.mark.parametrize("seed", range(3))
def test_most_pieces_of_a_rectangle_that_was_cut_are_joined(seed: int) -> None:
    assert len(Blocks.of(draw("cut_rectangles", 2_000, seed)).problem) < 200


@pytest.mark.slow
def test_pieces_that_meet_by_hundreds_in_one_tick_are_joined_last() -> None:
    """Rows of them, made first, left 326 blocks, of which no plan is smallest."""
    problem = draw("cut_rectangles", 20_000, 5)
    assert len(Blocks.of(problem).problem) < 60
    assert solve(problem).arena_bytes == HEIGHT


def spiral(count: int) -> Problem:
    """Returns strips around one chunk, at its end and above it in turn: each fits what is within it, and no other."""
    rows, end, size = [(0, 1, 1)], 1, 1
    for k in range(1, count):
        rows.append((end, end + 1, size) if k % 2 else (0, end, 1))
        end, size = end + k % 2, size + (k + 1) % 2
    return plain(*rows)


def test_a_spiral_of_many_chunks_is_left_before_it_takes_long() -> None:
    """Each round joins two blocks only."""
    assert len(Blocks.of(spiral(15)).problem) == 1
    assert len(Blocks.of(spiral(3_000)).problem) > 2_900


def test_random_chunks_are_left_as_they_are() -> None:
    assert len(Blocks.of(draw("random", 2_000, 0)).problem) > 1_900


def test_no_chunks_are_joined_when_a_stop_was_asked_for() -> None:
    problem = draw("cut_rectangles", 200, 0)
    with stopped_by(Stop(is_asked=True)):
        blocks = Blocks.of(problem, Budget.of_time(SolverOptions()))
    assert len(blocks.problem) == len(problem)
    assert len(Blocks.of(problem, Budget.of_time(SolverOptions())).problem) == len(Blocks.of(problem).problem) < 50
