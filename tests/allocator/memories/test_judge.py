"""The judge of plans for several memories accepts right plans, and names each fault that is planted."""

import math

import numpy as np
import pytest
from attrs import evolve

from allocator.check.offsets import FaultKind
from allocator.memories.assign import assign
from allocator.memories.judge import MemoryFault, check_plan
from allocator.memories.memory import Memory
from allocator.memories.plan import Baseline, BaselineName, MemoryPlan
from allocator.memories.problem import MemoryProblem
from allocator.problem import FREE, Problem, Status

FLASH = Memory("flash", 256, 2.0, 1.0, 1.0, alignment=8, writable=False)
FAST = Memory("fast", 64, 8.0, 8.0, alignment=16)
SLOW = Memory("slow", 256, 1.0, 1.0, 2.0, alignment=16)
CHUNKS = Problem(
    begin=[0, 1, 0, 0, 3],
    end=[2, 4, 4, 4, 4],
    size=[32, 32, 48, 40, 24],
    alignment=[16, 1, 16, 8, 16],
    pinned=[FREE] * 5,
    src=[1],
    dest=[0],
    overwrite_offset=[0],
)
"""Chunk 1 overwrites chunk 0; chunk 3 is a constant."""
ALLOWED = [[True, True, True]] * 4 + [[False, False, True]]
PROBLEM = MemoryProblem(CHUNKS, (FAST, SLOW, FLASH), [32, 32, 48, 80, 24], [32, 32, 48, 0, 0], [2, 2, 2, 1, 2], ALLOWED)
PLAN = assign(PROBLEM)


def moved(chunk: int, memory: int | None = None, offset: int | None = None) -> MemoryPlan:
    """Returns the plan with one chunk elsewhere."""
    memories, offsets = PLAN.memory.copy(), PLAN.offset.copy()
    memories[chunk] = memories[chunk] if memory is None else memory
    offsets[chunk] = offsets[chunk] if offset is None else offset
    return evolve(PLAN, memory=memories, offset=offsets)


def test_the_plan_is_right_and_what_it_should_be() -> None:
    assert check_plan(PROBLEM, PLAN) is None
    assert PLAN.memory.tolist() == [0, 0, 1, 2, 2]
    assert PLAN.cost == 8 + 8 + (96 + 4) + (40 + 1) + (12 + 2)


def test_a_chunk_in_no_memory_or_in_one_that_is_not_allowed() -> None:
    assert _kind(moved(2, memory=3)) is MemoryFault.NO_MEMORY
    assert _kind(moved(2, memory=-1)) is MemoryFault.NO_MEMORY
    assert _kind(moved(4, memory=0)) is MemoryFault.NOT_ALLOWED


def test_a_written_chunk_in_memory_that_is_read_only() -> None:
    assert _kind(moved(2, memory=2)) is MemoryFault.READ_ONLY


def test_a_chain_in_two_memories() -> None:
    assert _kind(moved(1, memory=1)) is MemoryFault.CHAIN


def test_offsets_that_are_not_aligned_or_end_above_the_capacity() -> None:
    assert _kind(moved(2, offset=8)) is MemoryFault.ALIGNMENT
    assert _kind(moved(2, offset=224)) is MemoryFault.CAPACITY
    assert _kind(moved(2, offset=-16)) is MemoryFault.CAPACITY


def test_two_chunks_that_share_a_byte_and_a_misplaced_overwrite() -> None:
    assert _kind(moved(3, offset=int(PLAN.offset[4]) + 8)) is FaultKind.OVERLAP
    assert _kind(moved(1, offset=16)) is FaultKind.OVERWRITE


def test_a_pinned_offset_that_is_not_kept() -> None:
    pinned = np.array([FREE, FREE, 64, FREE, FREE])
    allowed = np.array(ALLOWED)
    allowed[2] = [False, True, False]
    problem = evolve(PROBLEM, chunks=evolve(CHUNKS, pinned=pinned), allowed=allowed)
    plan = assign(problem)
    assert plan.offset[2] == 64
    assert _kind(PLAN, problem) is MemoryFault.PINNED


def test_a_column_that_is_too_short() -> None:
    assert _kind(evolve(PLAN, memory=PLAN.memory[:4].copy())) is MemoryFault.LENGTH


def test_uses_that_say_something_else_than_the_places() -> None:
    use, others = PLAN.uses[0], PLAN.uses[1:]
    assert _kind(evolve(PLAN, uses=others)) is MemoryFault.USES
    assert _kind(evolve(PLAN, uses=(evolve(use, chunks=[0]), *others))) is MemoryFault.USES
    larger = evolve(use.plan, arena_bytes=64)
    assert _kind(evolve(PLAN, uses=(evolve(use, plan=larger), *others))) is MemoryFault.USES
    assert _kind(evolve(PLAN, uses=(evolve(use, peak=33), *others))) is MemoryFault.PEAK
    assert _kind(evolve(PLAN, uses=(evolve(use, cost=17.0), *others))) is MemoryFault.COST


def test_costs_bounds_and_statuses_that_are_not_true() -> None:
    assert _kind(evolve(PLAN, cost=PLAN.cost * 0.99)) is MemoryFault.COST
    assert _kind(evolve(PLAN, bound=PLAN.cost * 1.01)) is MemoryFault.BOUND
    assert _kind(evolve(PLAN, bound=PLAN.cost * 0.9, status=Status.OPTIMAL)) is MemoryFault.STATUS
    assert _kind(evolve(PLAN, status=Status.INFEASIBLE)) is MemoryFault.STATUS
    for status in (Status.OPTIMAL, Status.FEASIBLE):
        assert _kind(evolve(PLAN, bound=math.nan, status=status)) is MemoryFault.BOUND
    assert _kind(evolve(PLAN, bound=-1.0, status=Status.FEASIBLE)) is MemoryFault.BOUND
    assert _kind(evolve(PLAN, cost=math.nan)) is MemoryFault.COST
    first, *others = PLAN.uses
    assert _kind(evolve(PLAN, uses=(evolve(first, cost=math.nan), *others))) is MemoryFault.COST
    for cost in (math.nan, PLAN.cost * 0.9):
        assert _kind(evolve(PLAN, baselines=(Baseline(BaselineName.DENSITY, cost),))) is MemoryFault.BASELINE


def test_proofs_that_do_not_add_up() -> None:
    tight = evolve(PROBLEM, memories=(FAST, evolve(SLOW, capacity=64), FLASH), allowed=[[False, True, False]] * 5)
    plan = assign(tight)
    assert plan.status is Status.INFEASIBLE
    (shortage,) = plan.shortages
    wrong = [
        evolve(shortage, nbytes=shortage.nbytes + 1),
        evolve(shortage, capacity=shortage.capacity - 1),
        evolve(shortage, memories=(0,)),
        evolve(shortage, memories=()),
        evolve(shortage, tick=3 - shortage.tick),
        evolve(shortage, chunks=shortage.chunks[1:]),
        evolve(shortage, chunks=(*shortage.chunks, shortage.chunks[0])),
        evolve(shortage, chunks=()),
        evolve(shortage, chunks=(99,)),
    ]
    for one in wrong:
        assert _kind(evolve(plan, shortages=(one,)), tight) is MemoryFault.SHORTAGE
    assert _kind(evolve(plan, status=Status.UNKNOWN), tight) is MemoryFault.STATUS
    assert _kind(evolve(plan, bound=1.0), tight) is MemoryFault.STATUS
    assert _kind(evolve(plan, cost=math.nan), tight) is MemoryFault.STATUS
    unknown = evolve(plan, status=Status.UNKNOWN, shortages=())
    assert _kind(evolve(unknown, bound=math.nan), tight) is MemoryFault.STATUS
    assert check_plan(tight, evolve(unknown, bound=0.0)) is None
    assert _kind(evolve(plan, memory=[0] * 5), tight) is MemoryFault.STATUS


def _kind(plan: MemoryPlan, problem: MemoryProblem = PROBLEM) -> object:
    fault = check_plan(problem, plan)
    assert fault is not None
    assert fault.message
    return fault.kind


@pytest.mark.parametrize("chunk", range(5))
def test_messages_name_the_chunk(chunk: int) -> None:
    fault = check_plan(PROBLEM, moved(chunk, memory=7))
    assert fault is not None
    assert f"chunk {chunk} of {CHUNKS.size[chunk]} bytes" in fault.message
