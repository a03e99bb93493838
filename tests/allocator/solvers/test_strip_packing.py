"""Strip packing by best fit, by hand and against a plain skyline with one height for each tick."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.problem import FREE, Problem, align_up
from allocator.solvers import solve
from tests.helpers.allocator.megengine_problems import megengine_problem
from tests.helpers.allocator.strategies import problems
from tests.helpers.allocator.usage_records import paper_example


def lines(height: list[int]) -> list[tuple[int, int, int]]:
    """Returns (height, first tick, end) of the level parts of a skyline."""
    edges = [0, *(t for t in range(1, len(height)) if height[t] != height[t - 1]), len(height)]
    return [(height[low], low, high) for low, high in pairwise(edges)]


def packed(begin: list[int], end: list[int], size: list[int], alignment: list[int]) -> list[int]:
    """Computes the strategy, word by word, on chunks without overwrites."""
    height, offset = [0] * max(end, default=0), [0] * len(size)
    waiting = {c for c in range(len(size)) if size[c]}
    while waiting:
        least, low, high = min(lines(height))
        fitting = [c for c in waiting if low <= begin[c] and end[c] <= high]
        if fitting:
            chunk = max(fitting, key=lambda c: (end[c] - begin[c], size[c], -begin[c], -alignment[c]))
            waiting.remove(chunk)
            offset[chunk] = align_up(least, alignment[chunk])
            height[begin[chunk] : end[chunk]] = [offset[chunk] + size[chunk]] * (end[chunk] - begin[chunk])
        else:
            lifted = min(height[t] for t in (low - 1, high) if 0 <= t < len(height))
            height[low:high] = [lifted] * (high - low)
    return offset


def top(size: list[int], offset: list[int]) -> int:
    return max((o + s for o, s in zip(offset, size, strict=True) if s), default=0)


def as_units(problem: Problem) -> tuple[list[int], ...]:
    """Returns columns in which each root lives as long as its chain, and overwriters have no bytes."""
    end, size = problem.end.tolist(), problem.size.tolist()
    over = sorted(zip(problem.src.tolist(), problem.dest.tolist(), strict=True), key=lambda p: -problem.begin[p[0]])
    for src, dest in over:
        if size[src]:
            end[dest] = max(end[dest], end[src])
    for src, _ in over:
        size[src] = 0
    return problem.begin.tolist(), end, size, problem.alignment.tolist()


@given(problems(max_chunks=20, horizon=12))
@settings(max_examples=60)
def test_strip_packing_equals_a_plain_skyline(problem: Problem) -> None:
    begin, end, size, alignment = as_units(problem)
    expected = packed(begin, end, size, alignment)
    result = solve(problem, "strip_packing_bestfit").offset.tolist()
    kinds = list(zip(begin, end, size, alignment, strict=True))
    places = [sorted((k, o) for k, o in zip(kinds, by, strict=True) if k[2]) for by in (result, expected)]
    assert places[0] == places[1]  # units that are alike may change places


@given(st.integers(0, 2**32), st.sampled_from((1, 16)))
@settings(max_examples=10)
def test_strip_packing_equals_a_plain_skyline_on_larger_problems(seed: int, alignment: int) -> None:
    problem = megengine_problem(seed, 120, alignment)
    begin, end, size, alignments = as_units(problem)
    expected = packed(begin, end, size, alignments)
    plan = solve(problem, "strip_packing_bestfit")
    assert plan.arena_bytes == top(size, expected)


def test_strip_packing_places_the_paper_example_as_by_hand() -> None:
    """Ticks are half-open here. Chunks 1 and 2 live longest (4), and 2 is larger: bytes 0 to 36 of ticks 2 to 6.

    Left of it chunk 0 fits, right of it chunk 6, and chunk 7 on top of that. Nothing fits into tick 6 alone: it is
    lifted to 36. Nothing fits into ticks 0 to 2 above chunk 0: lifted too, and chunk 1 fits at 36. Nothing fits into
    tick 0, or into ticks 5 and 6, which are lifted to chunk 7's top at 50; there chunk 5 fits. All is lifted to its
    top at 114; chunk 3 stands there, and chunk 4 on chunk 3.
    """
    plan = solve(paper_example(), "strip_packing_bestfit")
    assert plan.offset.tolist() == [0, 36, 0, 114, 130, 50, 0, 10]
    assert plan.arena_bytes == 138


def test_strip_packing_places_the_largest_of_equal_lifetimes_first() -> None:
    problem = Problem([0, 0, 0], [3, 3, 4], [2, 5, 1], [1] * 3, [FREE] * 3)
    assert solve(problem, "strip_packing_bestfit").offset.tolist() == [6, 1, 0]


def test_a_line_that_nothing_fits_on_is_lifted_to_its_lower_neighbour() -> None:
    """Between chunks 0 and 1 tick 2 is free, but chunk 2 needs tick 3 too: it goes on the lower one, chunk 1."""
    problem = Problem([0, 3, 2], [2, 6, 4], [9, 4, 3], [1] * 3, [FREE] * 3)
    plan = solve(problem, "strip_packing_bestfit")
    assert plan.offset.tolist() == [0, 0, 4]


def test_a_chain_keeps_the_bytes_of_its_root() -> None:
    """Chunk 1 overwrites the upper half of chunk 0; chunk 2 would fit below chunk 1, but stands on its root."""
    problem = Problem([0, 1, 2], [2, 5, 4], [8, 4, 4], [1] * 3, [FREE] * 3, [1], [0], [4])
    plan = solve(problem, "strip_packing_bestfit")
    assert plan.offset.tolist() == [0, 4, 8]


def test_a_line_is_lifted_to_alignment() -> None:
    problem = Problem(np.zeros(2), np.array([3, 2]), np.array([5, 4]), np.array([1, 8]), np.full(2, FREE))
    assert solve(problem, "strip_packing_bestfit").offset.tolist() == [0, 8]
