"""The bound of a tree of relaxations."""

import numpy as np

from allocator.memories.assign import assign
from allocator.memories.exact import MOST_UNITS
from allocator.memories.judge import check_plan
from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem
from allocator.memories.relaxation import Relaxation
from allocator.memories.units import Units
from allocator.problem import FREE, Problem, Status

DIVIDED, EASY = 3, 70


def large_chunks() -> MemoryProblem:
    """Returns ticks with two large chunks, of which one fits the fast memory, and ticks in which all fits it."""
    begin = np.concatenate((np.repeat(np.arange(DIVIDED), 3), np.arange(DIVIDED, DIVIDED + EASY)))
    size = np.array([70, 60, 25] * DIVIDED + [100] * EASY)
    fast = Memory("fast", 100, 4.0, 4.0, alignment=1)
    slow = Memory("slow", 1_000, 1.0, 1.0, alignment=1)
    count = len(begin)
    chunks = Problem(begin, begin + 1, size, [1] * count, [FREE] * count)
    read = size * np.array([3, 4, 5] * DIVIDED + [1] * EASY)
    return MemoryProblem(chunks, (fast, slow), read, size, [2] * count)


def test_more_chunks_than_branch_and_bound_tries_are_proved_where_one_relaxation_is_not_enough() -> None:
    problem = large_chunks()
    assert len(problem) > MOST_UNITS
    plan = assign(problem)
    assert check_plan(problem, plan) is None
    assert plan.status is Status.OPTIMAL
    relaxation = Relaxation.of(Units.of(problem))
    for _ in relaxation.steps(plan.cost):
        pass
    assert relaxation.bound < plan.cost * 0.985
