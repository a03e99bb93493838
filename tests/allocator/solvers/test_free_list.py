"""The readable free-list simulation: each event by example, and against the strategies."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from allocator.kernels.freelist import NO_CHUNK
from allocator.problem import FREE, Problem
from allocator.solvers import solve
from allocator.solvers.free_list import Alloc, Free, FreeList, Overwrite, Source, push_down, simulate
from allocator.solvers.megengine import PUSHDOWN, PUSHDOWN_SORTED, Pushdown
from tests.helpers.allocator.strategies import problems
from tests.helpers.allocator.usage_records import paper_example


def filled(*sizes: int) -> FreeList:
    """Returns a free list in which chunks 0, 1, ... have these bytes, from low to high."""
    memory = FreeList()
    for chunk, size in enumerate(sizes):
        memory.alloc(0, chunk, size)
    return memory


def test_a_chunk_goes_to_the_end_where_nothing_is_free() -> None:
    memory = filled(8, 4)
    assert memory.alloc(1, 2, 6) == Alloc(1, 2, 6, Source.END, 0, 0, below=1, above=NO_CHUNK)
    assert memory.memory() == ((0, 8), (1, 4), (2, 6))


def test_a_chunk_takes_the_smallest_block_that_is_large_enough_and_the_rest_is_split_off() -> None:
    memory = filled(9, 1, 6, 1, 7, 1)
    for chunk in (0, 2, 4):
        memory.free(1, chunk)
    assert memory.alloc(2, 9, 5) == Alloc(2, 9, 5, Source.FIT, available=6, rest=1, below=1, above=3)
    assert memory.memory() == ((NO_CHUNK, 9), (1, 1), (9, 5), (NO_CHUNK, 1), (3, 1), (NO_CHUNK, 7), (5, 1))


def test_of_equal_blocks_the_one_that_has_been_free_for_longest_is_taken() -> None:
    memory = filled(4, 1, 4, 1)
    memory.free(1, 2)
    memory.free(1, 0)
    assert memory.alloc(2, 9, 4) == Alloc(2, 9, 4, Source.FIT, available=4, rest=0, below=1, above=3)


def test_the_largest_block_grows_where_all_are_too_small() -> None:
    memory = filled(2, 1, 6, 1)
    memory.free(1, 0)
    memory.free(1, 2)
    assert memory.alloc(2, 9, 8) == Alloc(2, 9, 8, Source.GROW, available=6, rest=0, below=1, above=3)
    assert memory.memory() == ((NO_CHUNK, 2), (1, 1), (9, 8), (3, 1))


@pytest.mark.parametrize(
    ("freed", "left", "right", "memory"),
    [
        ((), 0, 0, ((0, 2), (NO_CHUNK, 3), (2, 4))),
        ((0,), 2, 0, ((NO_CHUNK, 5), (2, 4))),
        ((2,), 0, 4, ((0, 2), (NO_CHUNK, 7))),
        ((0, 2), 2, 4, ((NO_CHUNK, 9),)),
    ],
)
def test_a_freed_block_is_merged_with_free_neighbours(
    freed: tuple[int, ...], left: int, right: int, memory: tuple[tuple[int, int], ...]
) -> None:
    blocks = filled(2, 3, 4)
    for chunk in freed:
        blocks.free(1, chunk)
    assert blocks.free(2, 1) == Free(2, 1, 3, left, right)
    assert blocks.memory() == memory


def test_an_overwrite_frees_the_bytes_before_and_behind() -> None:
    memory = filled(2, 20, 3)
    memory.free(1, 2)
    assert memory.overwrite(1, 9, 10, dest=1, at=6) == Overwrite(1, 9, 10, 1, before=6, behind=4, below=0, above=-1)
    assert memory.memory() == ((0, 2), (NO_CHUNK, 6), (9, 10), (NO_CHUNK, 7))


def test_an_overwrite_of_all_bytes_passes_the_block_on() -> None:
    memory = filled(5, 3, 2)
    assert memory.overwrite(1, 9, 3, dest=1, at=0) == Overwrite(1, 9, 3, 1, 0, 0, below=0, above=2)
    assert memory.memory() == ((0, 5), (9, 3), (2, 2))


def test_in_a_tick_chunks_end_first_then_others_begin_then_others_are_overwritten() -> None:
    """Chunk 1 overwrites chunk 0 in the tick in which chunk 2 ends and chunk 3 begins."""
    problem = Problem([0, 1, 0, 1], [2, 3, 1, 3], [8, 4, 5, 5], [1] * 4, [FREE] * 4, [1], [0], [2])
    memory = FreeList()
    assert list(simulate(PUSHDOWN.timeline(problem), memory)) == [
        Alloc(0, 0, 8, Source.END, 0, 0, NO_CHUNK, NO_CHUNK),
        Alloc(0, 2, 5, Source.END, 0, 0, 0, NO_CHUNK),
        Free(1, 2, 5, 0, 0),
        Alloc(1, 3, 5, Source.FIT, 5, 0, 0, NO_CHUNK),
        Overwrite(1, 1, 4, 0, 2, 2, NO_CHUNK, 3),
        Free(3, 1, 4, 2, 2),
        Free(3, 3, 5, 8, 0),
    ]
    assert memory.memory() == ((NO_CHUNK, 13),)


@pytest.mark.parametrize("strategy", [PUSHDOWN, PUSHDOWN_SORTED], ids=lambda strategy: strategy.name)
@given(problem=problems(max_chunks=20, horizon=12))
@settings(max_examples=60)
def test_the_simulation_leads_to_the_plan_of_the_strategy(strategy: Pushdown, problem: Problem) -> None:
    offset = push_down(problem, simulate(strategy.timeline(problem), FreeList()))
    assert offset.tolist() == solve(problem, strategy.name).offset.tolist()


@given(problems(max_chunks=20, horizon=12))
@settings(max_examples=40)
def test_all_events_keep_both_queues_right(problem: Problem) -> None:
    memory = FreeList()
    for event in simulate(PUSHDOWN.timeline(problem), memory):
        blocks = memory.memory()
        free = [size for chunk, size in blocks if chunk == NO_CHUNK]
        assert all(size > 0 for _, size in blocks)
        assert not any(one == other == NO_CHUNK for (one, _), (other, _) in pairwise(blocks))
        assert [block.size for block in memory.free_blocks] == sorted(free)
        assert {chunk: size for chunk, size in blocks if chunk != NO_CHUNK} == {
            chunk: problem.size[chunk] for chunk in memory.held
        }
        if not isinstance(event, Free):
            used = [NO_CHUNK, *(chunk for chunk, _ in blocks if chunk != NO_CHUNK), NO_CHUNK]
            at = used.index(event.chunk, 1)
            assert (event.below, event.above) == (used[at - 1], used[at + 1])
    assert not memory.held and len(memory.memory()) == (problem.size > 0).any()


def test_the_simulation_of_the_paper_s_example_leads_to_128_bytes() -> None:
    problem = paper_example()
    offset = push_down(problem, simulate(PUSHDOWN.timeline(problem), FreeList()))
    assert int(np.max(offset + problem.size)) == 128
