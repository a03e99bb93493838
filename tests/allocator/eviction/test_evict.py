"""Runs with eviction against a plain replay, which believes nothing but what each step reads and writes."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from allocator.errors import (
    OutOfMemoryError,
    TooMuchWorkError,
    UnknownHeapError,
    UnknownHeuristicError,
    UnsupportedProblemError,
)
from allocator.eviction.evict import MOST_WORK, Act, Eviction, evict
from allocator.eviction.heuristics import HEURISTICS, cheapest_window
from allocator.eviction.smallest import PRECISION, smallest_budget
from allocator.heaps import HEAPS
from allocator.heaps.growing import BEST_FIT
from allocator.problem import NO_CAPACITY
from allocator.recompute.sequence import alive, least_bytes
from allocator.recompute.work import RecomputeProblem, work_of
from allocator.steps import OverwriteForward, Program, Step, only_required
from engine.planning.options import EVICTIONS
from tests.helpers.allocator.recompute_works import chain, works

Content = tuple[object, ...]


def in_place(drawn: tuple[RecomputeProblem, Program]) -> tuple[RecomputeProblem, Program]:
    """Returns the same work, in which nothing is overwritten that need not be."""
    work, program = drawn
    program = only_required(program)
    once = [i for i, until in enumerate(work.until) if until < 0]
    return work_of(program, work.cost, once), program


def contents(program: Program) -> dict[int, Content]:
    """Returns what each value holds: the step that writes it, and what that reads. It is that in each run of a step."""
    content: dict[int, Content] = {}
    for i, step in enumerate(program.steps):
        read = tuple(content[v] for v in step.reads)
        content |= {v: (i, v, hash(read)) for v in step.writes}
    return content


def check(work: RecomputeProblem, program: Program, eviction: Eviction, budget: int, *, places: bool) -> None:
    """Replays a schedule: each step finds what it reads, blocks lie apart within the budget, and the numbers add up."""
    expected, memory, blocks = contents(program), dict[int, Content](), dict[int, tuple[int, int]]()
    ran, evicted = list[int](), 0
    for act, one, address in eviction.acts:
        if act is Act.BEGIN:
            assert one not in blocks
            blocks[one] = (address, address + work.size[one])
        elif act in (Act.END, Act.EVICT):
            del blocks[one], memory[one]
            evicted += act is Act.EVICT
        else:
            step = program.steps[one]
            assert {v: memory[v] for v in step.reads} == {v: expected[v] for v in step.reads}
            for forward in step.overwrites:
                del memory[forward.src]
                blocks[forward.out] = blocks.pop(forward.src)
            assert blocks.keys() >= set(step.writes)
            memory |= {v: (one, v, hash(tuple(expected[r] for r in step.reads))) for v in step.writes}
            ran.append(one)
        assert sum(end - begin for begin, end in blocks.values()) <= eviction.peak_in_use <= eviction.peak_reserved
        if places:
            inside = sorted(block for block in blocks.values() if block[0] < block[1])
            assert all(one[1] <= other[0] for one, other in pairwise(inside))
    assert eviction.peak_reserved <= budget
    assert sorted(set(ran)) == list(range(len(work)))
    assert eviction.work + eviction.extra == sum(work.cost[i] for i in ran)
    assert eviction.reruns == len(ran) - len(work)
    assert eviction.evictions == evicted


@given(
    drawn=works().map(in_place),
    name=st.sampled_from(list(HEURISTICS)),
    share=st.floats(0, 1),
    heap=st.sampled_from(list(HEAPS)[1:]),
)
def test_every_step_finds_what_it_reads_within_the_budget(
    drawn: tuple[RecomputeProblem, Program], name: str, share: float, heap: str
) -> None:
    work, program = drawn
    most, least = evict(work, NO_CAPACITY, name, heap).peak_reserved, least_bytes(work)
    budget = int(least + share * (most - least))
    try:
        eviction = evict(work, budget, name, heap)
    except (OutOfMemoryError, TooMuchWorkError) as error:
        event(type(error).__name__)
        return
    event(f"evictions {min(eviction.evictions, 5)}")
    check(work, program, eviction, budget, places=True)


@given(drawn=works().map(in_place), name=st.sampled_from(list(HEURISTICS)[:-1]))
def test_nothing_runs_again_where_all_fits(drawn: tuple[RecomputeProblem, Program], name: str) -> None:
    work, program = drawn
    needed = int(alive(work, range(len(work))).max())
    eviction = evict(work, needed, name, "refcount")
    assert (eviction.extra, eviction.reruns, eviction.evictions) == (0, 0, 0)
    check(work, program, eviction, needed, places=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dtr", "dtr_eq", "coop"])
def test_a_chain_of_n_layers_within_the_root_of_n_is_computed_about_once_more(name: str) -> None:
    """Theorem 1 of Kirisame et al. 2021: O(n) operations for n layers and 2 sqrt(n) activations."""
    shares = []
    for layers in (64, 256, 625):
        work = chain(layers)
        eviction = evict(work, 64 * (2 * math.isqrt(layers) + 4), name, "best_fit")
        assert eviction.evictions > layers // 2
        shares.append(eviction.extra / eviction.work)
    assert max(shares) < 0.6
    assert shares[-1] < 1.5 * shares[0]


def test_the_smallest_budget_suffices_and_one_below_it_does_not() -> None:
    work = chain(40)
    smallest = smallest_budget(work, "dtr_local", "first_fit")
    assert smallest.eviction.peak_reserved <= smallest.budget
    assert evict(work, smallest.budget, "dtr_local", "first_fit").extra == smallest.eviction.extra > 0
    with pytest.raises((OutOfMemoryError, TooMuchWorkError)):
        evict(work, int(smallest.budget * (1 - PRECISION)) - 64, "dtr_local", "first_fit")
    assert smallest.eviction.slowdown <= MOST_WORK


def test_what_is_read_again_after_an_update_is_saved_before_it() -> None:
    """Value 2 is computed from parameter 0, evicted for 3, and read behind the update of the parameter by step 4."""
    steps = (
        Step(writes=(0, 1)),
        Step((0,), (2,)),
        Step((1,), (3,)),
        Step((3,), (4,)),
        Step((0, 4), (5,), overwrites=(OverwriteForward(5, 0, required=True),)),
        Step((2, 4), (6,)),
        Step(reads=(5, 6)),
    )
    program = Program(steps, (64, 64, 640, 640, 64, 64, 64))
    work = work_of(program, [0, 5, 5, 5, 5, 5, 0], ())
    eviction = evict(work, 64 * 14, "lru", "best_fit")
    check(work, program, eviction, 64 * 14, places=True)
    runs = [one for act, one, _ in eviction.acts if act is Act.RUN]
    assert runs == [0, 1, 2, 3, 1, 4, 5, 6]


def test_the_cheapest_window_of_addresses_goes_together() -> None:
    heap = BEST_FIT.serve(np.array([64, 64, 64, 64, 64, 128]), 64 * 5)
    for one in range(5):
        assert heap.alloc(one)
    heap.free(1)
    assert not heap.alloc(5)
    assert cheapest_window(heap, 5, {0: 3.0, 2: 2.0, 3: 0.5, 4: 0.6}) == [3, 4]
    assert cheapest_window(heap, 5, {0: 3.0, 2: 1.0, 4: 0.6}) == [2]
    assert cheapest_window(heap, 5, {3: 1.0}) == []


def test_unknown_names_are_told() -> None:
    assert tuple(HEURISTICS) == EVICTIONS
    with pytest.raises(UnknownHeuristicError, match="no heuristic 'best'; there are dtr, "):
        evict(chain(2), 640, "best", "refcount")
    with pytest.raises(UnknownHeapError):
        evict(chain(2), 640, "dtr", "none")
    with pytest.raises(UnsupportedProblemError, match="coop chooses by address, and the heap refcount has none"):
        evict(chain(2), 640, "coop", "refcount")
