"""Plans for several memories against a constraint solver: costs, bounds and proofs that nothing fits."""

import pytest

from allocator.memories.assign import assign
from allocator.memories.judge import check_plan
from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem
from allocator.problem import FREE, Problem, Status
from tests.helpers.allocator.memories_model import cheapest
from tests.helpers.allocator.random_memories import random_memory_problem


def compare(seed: int) -> Status:
    problem = random_memory_problem(seed, 2 + seed % 11, 2 + seed % 2)
    plan, best = assign(problem), cheapest(problem)
    assert check_plan(problem, plan) is None
    if not best.fits:
        assert plan.status is Status.INFEASIBLE, (seed, plan.status)
        return plan.status
    assert plan.status is Status.OPTIMAL, (seed, plan.status, plan.reason)
    assert plan.cost == pytest.approx(float(best.cost), rel=1e-9)
    assert plan.bound == pytest.approx(float(best.cost), rel=1e-9)
    return plan.status


def test_plans_of_some_problems_cost_what_the_constraint_solver_proves() -> None:
    assert {compare(seed) for seed in range(12)} == {Status.OPTIMAL, Status.INFEASIBLE}


@pytest.mark.slow
def test_plans_of_many_problems_cost_what_the_constraint_solver_proves() -> None:
    assert {compare(seed) for seed in range(12, 200)} == {Status.OPTIMAL, Status.INFEASIBLE}


def test_chunks_that_fit_by_load_but_have_no_addresses_do_not_all_lie_in_the_fast_memory() -> None:
    chunks = Problem([0, 0, 1], [2, 1, 2], [24, 24, 20], [32, 32, 8], [FREE] * 3)
    fast = Memory("fast", 48, 8.0, 8.0, alignment=1)
    slow = Memory("slow", 1_000, 1.0, 1.0, alignment=1)
    problem = MemoryProblem(chunks, (fast, slow), chunks.size, chunks.size, [2] * 3)
    plan = assign(problem)
    assert plan.status is Status.OPTIMAL
    assert plan.cost == float(cheapest(problem).cost)
    assert plan.memory.tolist() == [0, 1, 0]


@pytest.mark.parametrize("nodes", [1, 50])
def test_what_a_search_that_ended_early_claims_is_true(nodes: int) -> None:
    for seed in range(5):
        problem = random_memory_problem(seed, 2 + seed % 11, 2 + seed % 2)
        plan, best = assign(problem, nodes=nodes), assign(problem)
        assert check_plan(problem, plan) is None
        assert plan.bound <= best.cost * (1 + 1e-9)
        assert plan.cost >= best.bound * (1 - 1e-9)
        assert plan.status is not Status.INFEASIBLE or best.status is Status.INFEASIBLE
