"""Plans for several memories: right by the judge, no worse than simple ways, and true in what they claim."""

import math

import numpy as np
import pytest
from attrs import evolve

from allocator.errors import ProblemError, UnsupportedProblemError
from allocator.memories.assign import assign
from allocator.memories.judge import check_plan
from allocator.memories.memory import Memory
from allocator.memories.plan import MemoryPlan
from allocator.memories.problem import MemoryProblem
from allocator.problem import FREE, Problem, Status
from allocator.solvers import solve
from tests.helpers.allocator.random_memories import random_memory_problem
from tests.helpers.allocator.random_problems import Kind
from tests.helpers.allocator.strategies import random_problem

FAST = Memory("fast", 64, 8.0, 8.0, alignment=1)
SLOW = Memory("slow", 256, 1.0, 1.0, 2.0, alignment=1)


def plain(sizes: list[int], alignment: int = 1) -> Problem:
    """Returns chunks that are all alive at once."""
    count = len(sizes)
    return Problem([0] * count, [1] * count, sizes, [alignment] * count, [FREE] * count)


def copied(chunks: Problem, memories: tuple[Memory, ...]) -> MemoryProblem:
    """Returns the problem in which each chunk is written once and read once."""
    return MemoryProblem(chunks, memories, chunks.size, chunks.size, [2] * len(chunks))


@pytest.mark.parametrize("seed", range(0, 20, 2))
def test_plans_of_random_problems_are_right_and_no_worse_than_baselines(seed: int) -> None:
    problem = random_memory_problem(seed, 5 + seed, 2 + seed % 2)
    plan = assign(problem)
    assert check_plan(problem, plan) is None
    assert all(plan.cost <= baseline.cost for baseline in plan.baselines)


@pytest.mark.parametrize("seed", range(4))
def test_one_memory_has_the_plan_of_one_arena(seed: int) -> None:
    chunks = random_problem(np.random.default_rng(seed), 16, Kind(40, 12, (1, 8), 20, 10, is_timeless=seed % 2 > 0))
    plain_plan = solve(chunks, nodes=2_000)
    only = evolve(SLOW, capacity=max(1, plain_plan.arena_bytes))
    plan = assign(copied(chunks, (only,)), nodes=2_000)
    assert plan.status is Status.OPTIMAL
    assert plan.offset.tobytes() == plain_plan.offset.tobytes()
    assert plan.uses[0].plan.arena_bytes == plain_plan.arena_bytes
    assert plan.uses[0].plan.strategy == plain_plan.strategy
    assert {baseline.cost for baseline in plan.baselines} == {plan.cost}


def test_the_strategy_places_the_chunks_of_one_memory() -> None:
    chunks = random_problem(np.random.default_rng(3), 30, Kind(40, 12, (1,)))
    plan = assign(copied(chunks, (evolve(SLOW, capacity=10_000),)), "greedy_by_size")
    assert plan.offset.tolist() == solve(chunks, "greedy_by_size").offset.tolist()


def test_what_is_read_most_for_each_byte_lies_in_the_fast_memory() -> None:
    problem = MemoryProblem(plain([48, 32, 32]), (FAST, SLOW), [48, 320, 320], [0, 0, 0], [1, 1, 1])
    plan = assign(problem)
    assert plan.memory.tolist() == [1, 0, 0]


def test_memories_may_stand_in_any_order_and_ties_take_the_first() -> None:
    assert assign(copied(plain([8]), (SLOW, FAST))).memory.tolist() == [1]
    assert assign(copied(plain([8]), (evolve(FAST, name="a"), evolve(FAST, name="b")))).memory.tolist() == [0]


def test_chunks_of_no_bytes_and_problems_without_chunks_have_plans() -> None:
    assert assign(copied(plain([]), (FAST, SLOW))).status is Status.OPTIMAL
    assert assign(copied(plain([0, 8]), (FAST, SLOW))).status is Status.OPTIMAL


def test_a_memory_aligns_chunks_to_its_own_multiple() -> None:
    memories = (evolve(FAST, alignment=32), SLOW)
    plan = assign(copied(plain([8, 8, 8], alignment=12), memories))
    assert [int(o) % math.lcm(12, 32) for o, m in zip(plan.offset, plan.memory, strict=True) if m == 0] == [0]


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (copied(plain([300]), (FAST, SLOW)), "chunk 0 of 300 bytes, which is written, can lie in no memory"),
        (copied(plain([200, 60, 64]), (FAST, SLOW)), "3 chunks that can lie only in 'fast', 'slow' need 324 bytes"),
        (
            evolve(copied(plain([40, 40]), (FAST, SLOW)), allowed=[[True, False]] * 2),
            "2 chunks that can lie only in 'fast' need 80 bytes in tick 0, and 64 are there",
        ),
        (copied(plain([8]), (evolve(SLOW, writable=False),)), "'slow' has 256 and is read-only"),
        (
            evolve(copied(plain([8]), (FAST,)), allowed=[[False]]),
            "with its chain: none is allowed",
        ),
        (
            copied(plain([24, 24], alignment=48), (FAST,)),
            "chunks that can lie only in 'fast' need 72 bytes",
        ),
    ],
)
def test_what_cannot_fit_is_proved_with_the_reason(problem: MemoryProblem, reason: str) -> None:
    plan = assign(problem)
    assert plan.status is Status.INFEASIBLE
    assert reason in plan.reason
    assert not plan.has_plan
    assert plan.cost == plan.bound == math.inf
    assert check_plan(problem, plan) is None


def test_conflicts_in_place_of_lifetimes_and_pins_that_overlap_are_refused() -> None:
    parallel = random_problem(np.random.default_rng(0), 6, Kind(40, 4, (1,), is_timeless=True))
    with pytest.raises(UnsupportedProblemError, match="one order"):
        assign(copied(parallel, (FAST, SLOW)))
    pinned = Problem([0, 0], [1, 1], [8, 8], [1, 1], [0, 4])
    with pytest.raises(ProblemError, match="need the same bytes"):
        assign(evolve_allowed(pinned))


def evolve_allowed(chunks: Problem) -> MemoryProblem:
    allowed = [[True, False]] * len(chunks)
    return MemoryProblem(chunks, (FAST, SLOW), chunks.size, chunks.size, [2] * len(chunks), allowed)


def test_same_seed_and_nodes_same_plan() -> None:
    problem = random_memory_problem(7, 40, 3, Kind(40, 12, (1, 8), 20))

    def places(plan: MemoryPlan) -> tuple[bytes, bytes, float, float]:
        return plan.memory.tobytes(), plan.offset.tobytes(), plan.cost, plan.bound

    assert places(assign(problem, seed=3, nodes=5_000)) == places(assign(problem, seed=3, nodes=5_000))


def test_a_plan_is_made_whatever_the_limit_of_time_is() -> None:
    problem = random_memory_problem(2, 30, 3, Kind(40, 12, (1,)))
    assert assign(problem, seconds=0.0).has_plan == assign(problem).has_plan
