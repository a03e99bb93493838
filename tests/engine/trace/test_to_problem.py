"""From a trace back to the numbers that it was told of: saved, read, and judged."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from allocator.check.offsets import check
from allocator.problem import Problem
from engine import Event, Graph, Trace, read_trace
from engine.text.errors import EngineError
from engine.trace.to_problem import problem_of
from tests.helpers.graphs.random_graphs import build, graphs, seeded
from tests.helpers.traces.saved_traces import save_trace

COLUMNS = ("begin", "end", "size", "pinned")


def overwrites(problem: Problem) -> Sequence[tuple[int, int, int]]:
    columns = (problem.src.tolist(), problem.dest.tolist(), problem.overwrite_offset.tolist())
    return sorted(zip(*columns, strict=True))


@settings(max_examples=30)
@given(graphs(), st.sampled_from(["", "exact", "levels"]), st.integers(0, 2), st.sampled_from(["json", "csv"]))
def test_a_saved_trace_has_the_problem_and_the_plan(graph: Graph, policy: str, threads: int, suffix: str) -> None:
    plan = engine.make_plan(graph, padding=3, parallel=policy, optimise=0)
    trace = plan.trace(threads=threads if policy else min(threads, 1))
    with TemporaryDirectory() as folder:
        problem, reread = problem_of(read_trace(save_trace(trace, Path(folder) / f"t.{suffix}")))
    assert check(problem, reread.offset, reread.arena_bytes) is None
    for name in COLUMNS:
        assert np.array_equal(getattr(problem, name), getattr(plan.problem, name))
    assert overwrites(problem) == overwrites(plan.problem)
    assert reread.offset.tolist() == plan.plan.offset.tolist() and reread.arena_bytes == plan.arena_bytes
    if suffix == "json":
        assert problem.alignment.tolist() == plan.problem.alignment.tolist()
        assert (reread.lower_bound, reread.strategy) == (plan.plan.lower_bound, plan.plan.strategy)


def test_check_refuses_the_plan_of_a_trace_whose_chunks_overlap() -> None:
    """All that is said of each chunk is right, but two lie in the same bytes."""
    trace = engine.make_plan(build(seeded(3), 9), overwrite=False, optimise=0).trace()
    problem, plan = problem_of(Trace(trace.facts, lambda: (_at_zero(e) for e in trace)))
    assert check(problem, plan.offset, plan.arena_bytes) is not None


def _at_zero(event: Event) -> Event:
    return evolve(event, offset=0) if event.chunk >= 0 else event


@pytest.mark.parametrize("heap", ["", "first_fit"])
def test_a_dynamic_trace_has_no_plan(heap: str) -> None:
    with pytest.raises(EngineError, match="this trace is dynamic"):
        problem_of(engine.make_plan(build(seeded(3), 9), optimise=0).trace("dynamic", heap=heap))


def test_chunks_are_counted_without_gaps() -> None:
    trace = engine.make_plan(build(seeded(3), 9), optimise=0).trace()
    with pytest.raises(EngineError, match="chunk 0 is missing"):
        problem_of(Trace(trace.facts, lambda: (e for e in trace if e.chunk != 0)))
    with pytest.raises(EngineError, match="chunk 0 is allocated twice"):
        problem_of(Trace(trace.facts, (*trace, *trace).__iter__))
