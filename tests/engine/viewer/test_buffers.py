"""Buffers on a page: what they need and when is what the problem says."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator import solvers
from allocator.io.instance import Instance
from allocator.problem import Problem
from engine.trace.trace import NOTHING
from engine.viewer.buffers import buffer_rectangles
from tests.helpers.allocator.strategies import problems


def _alive(problem: Problem, tick: int) -> int:
    """Returns the bytes alive in a tick; of an overwriter and what it overwrites, the overwriter's."""
    until = problem.end.copy()
    until[problem.dest] = problem.begin[problem.src]
    return int(problem.size[(problem.begin <= tick) & (tick < until)].sum())


@settings(max_examples=30, deadline=None)
@given(problems(), st.sampled_from(("greedy_by_size", "naive")))
def test_buffer_rectangles_are_the_lifetimes_of_the_problem(problem: Problem, strategy: str) -> None:
    plan = solvers.solve(problem, strategy)
    names = [f"buffer {i}" for i in range(len(problem))]
    data = buffer_rectangles("some.csv", Instance(problem, names), plan)
    assert data.name == tuple(names)
    assert data.facts.arena_bytes == plan.arena_bytes and data.facts.lower_bound == plan.lower_bound
    assert np.array_equal(data.begin, problem.begin) and np.array_equal(data.end, problem.end)
    assert np.array_equal(data.offset[problem.size > 0], plan.offset[problem.size > 0])
    assert dict(enumerate(data.overwrites.tolist())) == dict.fromkeys(range(len(problem)), NOTHING) | dict(
        zip(problem.src.tolist(), problem.dest.tolist(), strict=True)
    )
    for tick, live in zip(data.tick.tolist(), data.live.tolist(), strict=True):
        assert live == _alive(problem, tick)
    ticks = range(int(problem.end.max(initial=0)) + 1)
    assert data.facts.peak_bytes == max((_alive(problem, tick) for tick in ticks), default=0)
    assert _alive(problem, data.facts.peak_tick) == data.facts.peak_bytes
