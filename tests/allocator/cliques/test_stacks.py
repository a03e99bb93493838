import numpy as np
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.cliques.clique import Clique, all_chunks
from allocator.cliques.feasible import FeasibleOffsets
from allocator.cliques.stacks import bytes_in_stacks
from allocator.problem import FREE, Problem
from tests.helpers.allocator.brute_force import minimal_peak
from tests.helpers.allocator.random_cliques import cliques, stacked


def alone(clique: Clique) -> FeasibleOffsets:
    """Returns the search for offsets of a clique without pinned chunks."""
    zeros = np.zeros(len(clique))
    return FeasibleOffsets(Problem(zeros, zeros + 1, clique.size, zeros + 1, zeros + FREE), clique)


@given(cliques())
@settings(max_examples=30)
def test_stacking_bound_is_that_of_the_best_order(clique: Clique) -> None:
    low = evolve(clique, head=clique.shift)
    assert bytes_in_stacks(low, alone(low), 0) == stacked(low)


@given(cliques(), st.integers(0, 60))
def test_stacking_bound_keeps_the_bound_it_is_given(clique: Clique, proved: int) -> None:
    low = evolve(clique, head=clique.shift)
    assert bytes_in_stacks(low, alone(low), proved) == max(bytes_in_stacks(low, alone(low), 0), proved)


@st.composite
def beside_pinned(draw: st.DrawFn) -> Problem:
    """Draws chunks that are alive in tick 1; some live in tick 0 too, where others are pinned."""
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
    whole = all_chunks(problem)
    clique = whole.some(problem.end == 2)
    proved = bytes_in_stacks(clique, FeasibleOffsets(problem, whole), 0)
    highest = int((problem.pinned + problem.size)[problem.pinned != FREE].max(initial=0))
    assert max(proved, highest) <= minimal_peak(problem)
