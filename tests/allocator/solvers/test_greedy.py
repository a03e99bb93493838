"""The orders of the greedy strategies, and the search that each problem uses."""

import numpy as np
from hypothesis import given, settings

from allocator.bounds import profile
from allocator.problem import FREE, Conflicts, Problem
from allocator.solvers.base import SolverOptions
from allocator.solvers.greedy import (
    GREEDY_BY_BREADTH,
    GREEDY_BY_SIZE,
    GREEDY_IN_ORDER,
    by_breadth,
    by_size,
    in_order,
    place_in_order,
)
from allocator.solvers.placing.covers import Covers
from allocator.solvers.placing.neighbours import Neighbours
from allocator.solvers.placing.placement import MOST_PAIRS, Placer, suitable_search
from allocator.solvers.placing.sweep import Sweep
from tests.helpers.allocator.strategies import problems
from tests.helpers.allocator.usage_records import paper_example


def plain(begin: list[int], end: list[int], size: list[int]) -> Problem:
    """Returns a problem with lifetimes and sizes only."""
    return Problem(begin, end, size, [1] * len(size), [FREE] * len(size))


def walked(problem: Problem) -> list[int]:
    """Returns the sizes of roots in the order of greedy by breadth: the broadest tick first, then the earliest."""
    root, live = problem.chains.root, profile(problem)
    rows = [r for r in problem.rows() if r.size]
    result: list[int] = []
    for tick in sorted(range(len(live)), key=lambda t: (-live[t], t)):
        alive = {int(root[r.id]) for r in rows if r.begin <= tick < r.end}
        ends = {c: max(r.end for r in rows if root[r.id] == c) for c in alive}
        alive |= {int(root[r.id]) for r in rows if r.begin <= tick < ends.get(int(root[r.id]), 0)}
        result += sorted(alive - set(result), key=lambda c: (-problem.size[c], problem.begin[c], ends[c], c))
    return [int(problem.size[c]) for c in result]


@given(problems(overwrites=True))
@settings(max_examples=40)
def test_by_breadth_goes_through_the_ticks_from_the_broadest_on(problem: Problem) -> None:
    assert problem.size[by_breadth(problem)].tolist() == walked(problem)


def test_ticks_of_one_breadth_are_met_as_they_come() -> None:
    """Ticks 0 and 1 hold 8 bytes each: chunks 2 and 1 of tick 0 come first, though chunk 0 is the largest."""
    assert by_breadth(plain([1, 0, 0], [2, 1, 1], [8, 3, 5])).tolist() == [2, 1, 0]


def test_by_size_the_first_to_begin_goes_first_among_equals() -> None:
    assert by_size(plain([2, 1, 0, 1], [3, 3, 1, 2], [4, 4, 2, 4])).tolist() == [3, 1, 0, 2]


def test_in_order_the_largest_goes_first_among_those_that_begin_at_once() -> None:
    assert in_order(plain([1, 0, 1], [2, 2, 2], [4, 1, 5])).tolist() == [1, 2, 0]


def test_greedy_by_breadth_places_the_paper_example_step_by_step() -> None:
    """By size: 64 and, beside it, 40; 36 on 64; 32 and 28 side by side; 16 where 64 is not; 10 on 40; 8 on 16.

    In order: 28 on 32, 36 on 28, then 16 and 8 into the place of 32, so that 64 has a gap of 36 bytes and goes on top.
    """
    solved = {
        s.name: s.solve(paper_example(), SolverOptions()).offset.tolist() for s in (GREEDY_BY_SIZE, GREEDY_IN_ORDER)
    }
    assert solved["greedy_in_order"] == [0, 32, 60, 0, 16, 96, 0, 10]
    assert solved["greedy_by_size"][5] == solved["greedy_by_size"][0] == 0
    top = {name: max(np.array(at) + paper_example().size) for name, at in solved.items()}
    assert top == {"greedy_by_size": 124, "greedy_in_order": 160}


def clique(lasting: int, passing: int) -> Problem:
    """Returns chunks that live for all ticks, and chunks that live for one tick, one after the other."""
    begin = np.concatenate((np.zeros(lasting, np.int64), np.arange(passing)))
    end = np.concatenate((np.full(lasting, passing), np.arange(passing) + 1))
    size = np.random.default_rng(0).integers(1, 100, lasting + passing)
    return Problem(begin, end, size, np.ones(lasting + passing), np.full(lasting + passing, FREE))


def test_greedy_with_covers_places_long_lived_chunks_as_the_sweep_does() -> None:
    problem = clique(2_500, 3_000)
    assert suitable_search(problem, 0) == Covers.of
    order = by_size(problem)
    swept = Placer.by(Sweep.of, problem)
    expected = swept.offsets(swept.place(swept.bodies(order)))
    assert np.array_equal(place_in_order(problem, order), expected)


def test_greedy_picks_the_conflict_search_by_the_problem() -> None:
    assert suitable_search(clique(10, 10), MOST_PAIRS) == Neighbours.of
    assert suitable_search(clique(10, 10), 0) == Sweep.of
    stack = plain([0] * 3_000, [9] * 3_000, [1] * 3_000)
    assert suitable_search(stack, 0) == Sweep.of
    pairs = Problem([0, 0], [1, 1], [1, 1], [1, 1], [FREE, FREE], conflicts=Conflicts([0], [1]))
    assert suitable_search(pairs, 0) == Neighbours.of


def test_greedy_by_breadth_places_the_peak_before_what_is_larger() -> None:
    """Tick 1 holds 5, 4 and 4 bytes, tick 0 but 6 and 4: chunk 0 comes last, and does not fit below chunk 2."""
    problem = plain([0, 1, 0, 1], [1, 2, 2, 2], [6, 5, 4, 4])
    assert GREEDY_BY_BREADTH.solve(problem, SolverOptions()).offset.tolist() == [9, 0, 5, 9]
    assert GREEDY_BY_SIZE.solve(problem, SolverOptions()).offset.tolist() == [0, 0, 6, 10]
