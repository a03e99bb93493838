import numpy as np
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.cliques.clique import Crowd, everybody
from allocator.cliques.feasible import Freedom
from allocator.cliques.stacks import bytes_in_stacks
from allocator.problem import FREE, Problem
from tests.helpers.allocator.brute_force import minimal_peak
from tests.helpers.allocator.random_cliques import crowds, stacked


def alone(crowd: Crowd) -> Freedom:
    """Nothing is pinned."""
    zeros = np.zeros(len(crowd))
    return Freedom(Problem(zeros, zeros + 1, crowd.size, zeros + 1, zeros + FREE), crowd)


@given(crowds())
@settings(max_examples=60)
def test_stacking_bound_is_that_of_the_best_order(crowd: Crowd) -> None:
    low = evolve(crowd, head=crowd.shift)
    assert bytes_in_stacks(low, alone(low), 0) == stacked(low)


@given(crowds(), st.integers(0, 60))
def test_stacking_bound_keeps_the_bound_it_is_given(crowd: Crowd, proved: int) -> None:
    low = evolve(crowd, head=crowd.shift)
    assert bytes_in_stacks(low, alone(low), proved) == max(bytes_in_stacks(low, alone(low), 0), proved)


@st.composite
def beside_pinned(draw: st.DrawFn) -> Problem:
    """Chunks that are alive in tick 1; some live in tick 0 too, where others are pinned."""
    count, pins = draw(st.integers(1, 4)), draw(st.integers(0, 3))
    begin = [0] * pins + draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    end = [1] * pins + [2] * count
    size = draw(st.lists(st.integers(1, 4), min_size=pins + count, max_size=pins + count))
    alignment = [1] * pins + draw(st.lists(st.sampled_from((1, 2, 3)), min_size=count, max_size=count))
    low = np.cumsum([0, *size[:pins]])[:pins] + np.cumsum(
        draw(st.lists(st.integers(0, 4), min_size=pins, max_size=pins))
    )
    return Problem(begin, end, size, alignment, [*low, *[FREE] * count])


@given(beside_pinned())
def test_chunks_lie_beside_pinned_ones_of_their_whole_life(problem: Problem) -> None:
    whole = everybody(problem)
    crowd = whole.some(problem.end == 2)
    found = bytes_in_stacks(crowd, Freedom(problem, whole), 0)
    highest = int((problem.pinned + problem.size)[problem.pinned != FREE].max(initial=0))
    assert max(found, highest) <= minimal_peak(problem)
