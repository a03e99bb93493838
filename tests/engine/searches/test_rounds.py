"""A search that workers share: the same plan whatever the workers, never a larger one, and proofs that hold."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.interrupts import Stop, stopped_by
from allocator.problem import FREE, Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from engine.searches import rounds
from engine.searches.rounds import RoundSearch, Search, carry_out
from engine.workers.flow import in_order
from engine.workers.place import Borrowed, Here
from engine.workers.places import opened
from tests.helpers.allocator.brute_force import minimal_peak
from tools.solver_instances import draw


def hard(seed: int, buffers: int = 60) -> Problem:
    """Returns an instance that quick strategies do not solve."""
    return draw("mixed_alignment", buffers, seed)


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes rounds short, so that there are several in little time."""
    monkeypatch.setattr(rounds, "_FIRST", 2_000)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=6))
def test_small_problems_are_solved_and_proved(rows: list[tuple[int, int, int]]) -> None:
    begin, length, size = (np.array(values) for values in zip(*rows, strict=True))
    ones = np.ones(len(rows), np.int64)
    problem = Problem(begin, begin + length, size, ones, FREE * ones)
    plan = solve(problem, RoundSearch(Here()))
    assert plan.status is Status.OPTIMAL and plan.arena_bytes == minimal_peak(problem)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_plan_does_not_depend_on_the_workers(seed: int) -> None:
    problem = hard(seed)
    with ThreadPoolExecutor(3) as pool:
        plans = [
            solve(problem, RoundSearch(place), seed, nodes=40_000) for place in (Here(), Borrowed(pool, workers=3))
        ]
    one, other = plans
    assert np.array_equal(one.offset, other.offset)
    assert (one.bound, one.strategy) == (other.bound, other.strategy)
    assert check(problem, one.offset, one.arena_bytes) is None


def test_processes_give_the_same_plan() -> None:
    problem = hard(0)
    with opened("processes", 2) as place:
        shared = solve(problem, RoundSearch(place), nodes=40_000)
    assert np.array_equal(shared.offset, solve(problem, RoundSearch(Here()), nodes=40_000).offset)


def test_a_round_starts_with_the_best_plan_and_bound_of_the_round_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = list[list[Search]](), list[list[int]]()

    def watched(place: Any, function: Any, searches: list[Search]) -> Any:
        outcomes = list(really(place, function, searches))
        begun.append(searches)
        ended.append([arena_bytes(problem, end.value.offset) for end in outcomes if end.value is not None])
        return outcomes

    problem, really = hard(0, 90), in_order
    monkeypatch.setattr(rounds, "in_order", watched)
    plan = solve(problem, RoundSearch(Here()), nodes=150_000)
    assert len(begun) >= 2
    for searches, arenas, following in zip(begun, ended, [*begun[1:], []], strict=True):
        starts = {arena_bytes(problem, search.offset) for search in searches}
        assert len(starts) == 1 and max(arenas) <= starts.pop()
        assert all(arena_bytes(problem, search.offset) == min(arenas) for search in following)
    assert plan.arena_bytes == min(ended[-1])
    assert sum(search.options.nodes for searches in begun for search in searches) <= 150_000
    seeds = [(s.strategy, s.options.seed) for searches in begun for s in searches if s.strategy != "exact"]
    assert len(set(seeds)) == len(seeds)


def test_a_search_is_never_worse_than_its_start() -> None:
    problem = hard(1)
    start = solve(problem, "naive").offset
    for strategy in ("exact", "ejection", "hill_climb"):
        answer = carry_out(Search(problem, start, strategy, 1, SolverOptions(nodes=2_000)))
        assert arena_bytes(problem, answer.offset) <= arena_bytes(problem, start)
        assert answer.maker == strategy and answer.lower_bound <= arena_bytes(problem, answer.offset)


def test_time_and_capacity_end_the_search() -> None:
    problem = hard(0, 90)
    begin = time.monotonic()
    solve(problem, RoundSearch(Here()), seconds=0.3)
    assert time.monotonic() - begin < 30
    plan = solve(problem, RoundSearch(Here()), capacity=2**40)
    assert plan.status is Status.FEASIBLE or plan.arena_bytes == plan.lower_bound


def test_who_asks_to_stop_gets_the_best_plan_so_far() -> None:
    problem, stop = hard(0, 90), Stop()
    stop.is_asked = True
    with stopped_by(stop):
        plan = solve(problem, RoundSearch(Here()), nodes=10**12)
    assert stop.has_plan and check(problem, plan.offset, plan.arena_bytes) is None
    assert math.isfinite(plan.arena_bytes)
