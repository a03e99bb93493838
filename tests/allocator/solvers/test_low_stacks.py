"""Low stacks of what is alive at the peak."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.cliques.clique import all_chunks
from allocator.problem import FREE, Conflicts, Problem
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import finish
from allocator.solvers.stacked_peak import Peak
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.random_cliques import stacked

NO_LIMIT = 2**40


def alive_at_once(sizes: list[int], alignments: list[int]) -> Problem:
    count = len(sizes)
    return Problem([0] * count, [1] * count, sizes, alignments, [FREE] * count)


@st.composite
def peaks(draw: st.DrawFn, most: int = 6) -> Problem:
    """Draws chunks of two alignments at least, of which each is a multiple of the next smaller one."""
    chunks = draw(
        st.lists(st.tuples(st.integers(1, 60), st.sampled_from((1, 2, 4, 12, 24))), min_size=1, max_size=most)
    )
    size, alignment = zip(*chunks, (5, 48), strict=True)
    return alive_at_once([*size], [*alignment])


def low_stack(problem: Problem, width: int, capacity: int = NO_LIMIT, nodes: int = 10**6) -> np.ndarray:
    peak = Peak.of(problem)
    offset = finish(peak.low_stack(width, capacity, 0, Budget.of(SolverOptions(nodes=nodes), 0)))
    by_chunk = np.zeros(len(problem), np.int64)
    by_chunk[peak.ids[: len(offset)]] = offset
    return by_chunk if len(offset) else offset


@pytest.mark.slow
@given(peaks(most=5), st.integers(1, 3))
@settings(max_examples=40)
def test_a_stack_is_a_plan_and_a_wide_search_finds_the_lowest(problem: Problem, width: int) -> None:
    lowest = stacked(all_chunks(problem))
    for stacks in (width, 2 ** len(problem)):
        offset = low_stack(problem, stacks)
        assert is_right(problem, offset.tolist(), arena_bytes(problem, offset))
        assert arena_bytes(problem, offset) >= lowest
    assert arena_bytes(problem, offset) == lowest


@pytest.mark.slow
@given(peaks(most=5))
@settings(max_examples=20)
def test_a_capacity_below_the_lowest_stack_leaves_none(problem: Problem) -> None:
    lowest = stacked(all_chunks(problem))
    assert len(low_stack(problem, 2 ** len(problem), lowest - 1)) == 0
    assert arena_bytes(problem, low_stack(problem, 2 ** len(problem), lowest)) == lowest


def test_a_search_without_nodes_finds_no_stack() -> None:
    assert len(low_stack(alive_at_once([3, 5, 60], [1, 8, 64]), 4, nodes=1)) == 0


def test_the_peak_is_the_tick_that_needs_most_cells_not_most_bytes() -> None:
    ticks, sizes = np.array([0, 0, 1, 1]), [100, 60, 65, 1]
    problem = Problem(ticks, ticks + 1, sizes, [1, 2, 128, 1], [FREE] * 4)
    assert Peak.of(problem).ids.tolist() == [1, 0]
    assert Peak.of(evolve(problem, size=[100, 60, 65, 65], alignment=[1, 2, 128, 128])).ids.tolist() == []


@pytest.mark.parametrize(
    "problem",
    [
        Problem((), (), (), (), ()),
        alive_at_once([0, 0], [1, 64]),
        alive_at_once([10, 20], [64, 64]),
        alive_at_once([10, 20], [6, 4]),
        evolve(alive_at_once([10, 20], [1, 4]), pinned=[FREE, 64]),
        evolve(alive_at_once([10, 20], [1, 4]), conflicts=Conflicts([0], [1])),
        alive_at_once([20, 10], [1, 2**31]),
    ],
)
def test_there_is_no_peak_where_the_order_of_its_units_does_not_matter_or_cannot_be_chosen(problem: Problem) -> None:
    assert len(Peak.of(problem)) == 0
