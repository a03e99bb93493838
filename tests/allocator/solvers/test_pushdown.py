"""Push-down, by id and sorted, against a plain simulation and plain fixed-point addresses."""

import subprocess
import sys
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.kernels.freelist import NO_CHUNK
from allocator.problem import FREE, Problem, align_up
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions
from allocator.solvers.free_list import FreeList
from allocator.solvers.megengine import PUSHDOWN
from allocator.solvers.placing.timeline import sorted_timeline, timeline_by_id
from tests.helpers.allocator.megengine_problems import megengine_problem
from tests.helpers.allocator.strategies import problems

ORDERS: Mapping[str, Callable[[Problem], list[int]]] = {
    "pushdown": lambda problem: np.flatnonzero(problem.size > 0).tolist(),
    "pushdown_sorted": lambda problem: sorted_timeline(problem).ids.tolist(),
}
"""What comes first in a tick, by the name of the strategy. MegEngine goes by id."""
both = pytest.mark.parametrize("name", ORDERS)


def recorded(problem: Problem, name: str) -> list[tuple[int, int]]:
    """Returns the pairs (below, above) that push-down must keep.

    In each tick the free list first frees, then places chunks, then overwriters.
    """
    order, memory = ORDERS[name](problem), FreeList()
    dest = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    overwritten = {dest[c][0] for c in order if c in dest}
    pairs: list[tuple[int, int]] = []
    for tick in range(int(problem.end.max(initial=0)) + 1):
        for chunk in (c for c in order if problem.end[c] == tick and c not in overwritten):
            memory.free(tick, chunk)
        for chunk in sorted((c for c in order if problem.begin[c] == tick), key=dest.__contains__):
            if chunk in dest:
                memory.overwrite(tick, chunk, int(problem.size[chunk]), *dest[chunk])
                continue
            event = memory.alloc(tick, chunk, int(problem.size[chunk]))
            pairs += [p for p in ((event.below, chunk), (chunk, event.above)) if NO_CHUNK not in p]
    return pairs


def fixed_point(problem: Problem, pairs: list[tuple[int, int]]) -> list[int]:
    """Returns offsets: roots move up until each chunk lies above all that must be below it."""
    result = problem.chains
    address = [0] * len(problem)
    changed = True
    while changed:
        changed = False
        for below, above in pairs:
            top = address[result.root[below]] + int(result.offset[below] + problem.size[below])
            root = int(result.root[above])
            least = align_up(max(top - int(result.offset[above]), 0), int(problem.alignment[root]))
            if least > address[root]:
                address[root], changed = least, True
    return address


@both
@given(problem=problems(max_chunks=20, horizon=12))
@settings(max_examples=80)
def test_push_down_is_the_least_plan_that_keeps_what_the_free_list_recorded(name: str, problem: Problem) -> None:
    address, result = fixed_point(problem, recorded(problem, name)), problem.chains
    expected = np.array(address, np.int64)[result.root] + result.offset
    used = problem.size > 0
    assert solve(problem, name).offset[used].tolist() == expected[used].tolist()


@both
@given(seed=st.integers(0, 2**32), alignment=st.sampled_from((1, 16)))
@settings(max_examples=10)
def test_push_down_is_right_where_many_blocks_are_free(name: str, seed: int, alignment: int) -> None:
    problem = megengine_problem(seed, 120, alignment)
    address, result = fixed_point(problem, recorded(problem, name)), problem.chains
    expected = np.array(address, np.int64)[result.root] + result.offset
    assert solve(problem, name).offset.tolist() == expected.tolist()


def test_within_a_tick_sorted_chunks_are_the_longest_lived_first_then_the_largest_and_overwriters_last() -> None:
    """Chunk 3 overwrites chunk 0; chunk 5 has no bytes."""
    begin, end, size = [0, 2, 2, 2, 2, 2], [3, 9, 9, 99, 5, 5], [8, 1, 4, 8, 9, 0]
    problem = Problem(begin, end, size, [1] * 6, [FREE] * 6, [3], [0], [0])
    line = sorted_timeline(problem)
    assert line.ids.tolist() == [0, 2, 1, 4, 3]
    assert line.dest.tolist() == [NO_CHUNK] * 4 + [0]
    assert line.ids[line.freed].tolist() == [4, 2, 1, 3]


def test_within_a_tick_ids_decide_what_begins_and_ends_first_and_overwriters_come_last() -> None:
    """Chunk 1 overwrites chunk 0; chunk 5 has no bytes."""
    begin, end, size = [0, 2, 2, 2, 1, 2], [3, 9, 9, 5, 5, 5], [8, 1, 4, 8, 9, 0]
    line = timeline_by_id(Problem(begin, end, size, [1] * 6, [FREE] * 6, [1], [0], [0]))
    assert line.ids.tolist() == [0, 4, 2, 3, 1]
    assert line.ids[line.freed].tolist() == [3, 4, 1, 2]


def test_the_longer_lived_of_two_that_begin_together_lies_below_where_they_are_sorted() -> None:
    """By id, chunk 1 lies above chunk 0; sorted, it lies at the bottom. Chunk 2 goes where chunk 0 was."""
    problem = Problem([0, 0, 1], [1, 3, 3], [4, 2, 4], [1] * 3, [FREE] * 3)
    assert solve(problem, "pushdown").offset.tolist() == [0, 4, 0]
    assert solve(problem, "pushdown_sorted").offset.tolist() == [2, 0, 2]


def test_a_block_grows_and_pushes_up_what_lies_above() -> None:
    """Chunk 0 leaves 4 bytes below chunk 1; chunk 2 of 6 bytes takes them and 2 more."""
    problem = Problem([0, 1, 2], [2, 5, 5], [4, 3, 6], [1] * 3, [FREE] * 3)
    plan = solve(problem, "pushdown")
    assert plan.offset.tolist() == [0, 6, 0]
    assert plan.arena_bytes == plan.lower_bound == 9


@pytest.mark.parametrize("padding", [0, 1, 7])
def test_a_chain_of_growing_chunks_reaches_its_bound(padding: int) -> None:
    """MegEngine's own test (PushdownChain): sizes i + 1, lifetimes [i, i + 2)."""
    ids = np.arange(5)
    problem = Problem(ids, ids + 2, ids + 1 + padding, np.ones(5), np.full(5, FREE))
    plan = solve(problem, "pushdown")
    assert plan.arena_bytes == plan.lower_bound == 9 + 2 * padding


def test_a_million_overwrites_in_one_chain_lie_one_inside_the_other() -> None:
    count = 1_000_000
    ids, ones = np.arange(count), np.ones(count - 1)
    problem = Problem(ids, ids + 2, count - ids, np.ones(count), np.full(count, FREE), ids[1:], ids[:-1], ones)
    assert np.array_equal(PUSHDOWN.solve(problem, SolverOptions()).offset, ids)


def test_a_million_blocks_lie_on_each_other() -> None:
    count = 1_000_000
    ids = np.arange(count)
    problem = Problem(ids, np.full(count, count), np.ones(count), np.ones(count), np.full(count, FREE))
    assert np.array_equal(PUSHDOWN.solve(problem, SolverOptions()).offset, ids)


def test_a_hundred_thousand_holes_of_all_sizes_are_refilled() -> None:
    """Every second of 200,000 blocks ends in one tick; then come chunks of the same sizes, the largest first."""
    count = 100_000
    size = np.random.default_rng(0).permutation(count) + 1
    walls, holes, fills = 2 * np.arange(count), 2 * np.arange(count) + 1, np.full(count, 2 * count)
    begin, end = np.concatenate((walls, holes, fills)), np.repeat((3 * count, 2 * count, 3 * count), count)
    sizes = np.concatenate((np.ones(count), size, size))
    problem = Problem(begin, end, sizes, np.ones(3 * count), np.full(3 * count, FREE))
    offset = PUSHDOWN.solve(problem, SolverOptions()).offset
    assert np.array_equal(offset[count : 2 * count], offset[2 * count :])


def test_small_problems_load_no_machine_code() -> None:
    script = (
        "from allocator.machine_code.arrays import compiled\n"
        "from allocator.problem import Problem\n"
        "from allocator.solvers import solve\n"
        "for name in ('pushdown', 'best_fit', 'interval_move', 'strip_packing_bestfit'):\n"
        "    solve(Problem([0, 1], [2, 3], [4, 5], [1, 1], [-1, -1]), name)\n"
        "assert compiled.cache_info().currsize == 0\n"
        "solve(Problem(range(500), range(1, 501), [9] * 500, [1] * 500, [-1] * 500), 'interval_move')\n"
        "assert compiled.cache_info().currsize == 2\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
