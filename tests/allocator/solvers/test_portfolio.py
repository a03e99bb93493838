"""The portfolio: searches that take turns, each from the best plan of all."""

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.interrupts import Stop, stopped_by
from allocator.problem import FREE, Problem, Status
from allocator.progress import Activity, NullWatcher, watched_by
from allocator.solvers import solve
from allocator.solvers.base import Solver, SolverOptions, arena_bytes
from allocator.solvers.ejection import EJECTION
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.portfolio import PORTFOLIO
from allocator.solvers.search.budget import SLICE, Budget
from allocator.solvers.search.steps import advance, answer_of
from allocator.solvers.strip_packing import STRIP_PACKING_BESTFIT
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.strategies import problems
from tools.solver_instances import draw

EVERYTHING = problems(max_chunks=20, pins=True, conflicts=True)


def crowded(count: int, longest: int = 50) -> Problem:
    """Returns chunks of 1 to 4096 bytes, of which half of `longest` are alive at once: their gap is not closed soon."""
    draw = np.random.default_rng(0)
    begin, size = np.arange(count), draw.integers(1, 4097, count)
    return Problem(begin, begin + draw.integers(1, longest, count), size, [1] * count, [FREE] * count)


@settings(max_examples=30)
@given(EVERYTHING, st.integers(1, 5_000), st.integers(1, 40_000), st.integers(0, 5))
def test_more_nodes_are_never_worse_and_the_same_ones_give_the_same_plan(
    problem: Problem, few: int, more: int, seed: int
) -> None:
    one, same, longer = (solve(problem, seed=seed, nodes=nodes) for nodes in (few, few, few + more))
    assert one.offset.tolist() == same.offset.tolist()
    assert longer.arena_bytes <= one.arena_bytes
    assert longer.lower_bound >= one.lower_bound


def test_more_nodes_are_never_worse_where_a_gap_stays() -> None:
    plans = [solve(crowded(300), nodes=nodes) for nodes in (1, 3_000, 10_000, 50_000)]
    arenas = [plan.arena_bytes for plan in plans]
    assert arenas == sorted(arenas, reverse=True) and arenas[-1] < arenas[0]
    assert plans[0].status is Status.FEASIBLE


class Seen(NullWatcher):
    """The activity that every search of a block reports to."""

    def __init__(self) -> None:
        self.activity = Activity("placing")

    def current(self) -> Activity:
        return self.activity


def spent(solver: Solver, problem: Problem, options: SolverOptions) -> tuple[int, int]:
    """Returns the nodes that all parts of a strategy spend together, and those that they have."""
    seen = Seen()
    with watched_by(seen):
        solver.solve(problem, options)
    return seen.activity.done, seen.activity.total


@pytest.mark.parametrize("count", [400, 3_000])
def test_all_parts_together_keep_to_the_nodes_of_the_portfolio(count: int) -> None:
    few = 20_000
    for nodes, options in ((few, SolverOptions()), (few, SolverOptions(nodes=few)), (1, SolverOptions(nodes=1))):
        done, total = spent(evolve(PORTFOLIO, nodes=nodes), crowded(count), options)
        assert total == nodes and 0 < done < nodes + 2 * SLICE


@pytest.mark.slow
def test_many_chunks_are_packed_by_best_fit_before_the_search() -> None:
    problem = draw("training_mirror", 50_000, seed=3)
    packed = arena_bytes(problem, STRIP_PACKING_BESTFIT.solve(problem, SolverOptions()).offset)
    assert arena_bytes(problem, PORTFOLIO.solve(problem, SolverOptions(nodes=1)).offset) <= packed


def test_few_chunks_have_few_nodes() -> None:
    for count in (40, 60):
        done, total = spent(evolve(EJECTION, by_chunk=50), crowded(count), SolverOptions())
        assert total == 50 * count <= done < total + SLICE


def test_a_seed_changes_what_is_tried() -> None:
    problem = crowded(400, 100)
    assert len({solve(problem, seed=seed, nodes=100_000).offset.tobytes() for seed in range(3)}) == 3


def test_a_search_that_is_cut_into_turns_finds_what_one_finds_at_once() -> None:
    problem = crowded(300)
    start, options = FIRST_FIT.solve(problem, SolverOptions()).offset, SolverOptions(nodes=20_000)
    whole = answer_of(EJECTION.search(problem, start, options, Budget.of(options, 0)))
    budget = Budget.of(options, 0)
    search = EJECTION.search(problem, start, options, budget)
    steps = search.steps()
    while advance(steps, budget, 100):
        pass
    assert search.offsets().tolist() == whole.offset.tolist()


def test_searches_take_a_plan_of_another_one() -> None:
    problem, options = crowded(200), SolverOptions(nodes=2_000)
    better = solve(problem, nodes=100_000)
    search = EJECTION.search(problem, solve(problem, "naive").offset, options, Budget.of(options, 0))
    search.take(better.offset)
    assert arena_bytes(problem, answer_of(search).offset) <= better.arena_bytes


def test_a_stop_ends_the_search_with_a_plan() -> None:
    problem = crowded(300)
    with stopped_by(Stop(is_asked=True)):
        plan = solve(problem)
    assert plan.arena_bytes == solve(problem, "pushdown_sorted").arena_bytes


def test_no_search_begins_where_no_time_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allocator.solvers.race.search_in_turns", None)
    plan = solve(crowded(300), seconds=0)
    assert plan.strategy == "pushdown_sorted" and plan.status is Status.FEASIBLE


@settings(max_examples=20)
@given(EVERYTHING)
def test_a_plan_exists_when_there_is_no_time(problem: Problem) -> None:
    plan = solve(problem, seconds=0)
    assert is_right(problem, plan.offset.tolist(), plan.arena_bytes)


@settings(max_examples=30)
@given(problems(max_chunks=60, pins=True, conflicts=True))
def test_first_fit_without_time_lays_the_rest_above(problem: Problem) -> None:
    for until in (0, np.inf):
        offset = FIRST_FIT.solve(problem, SolverOptions(until=until)).offset
        assert is_right(problem, offset.tolist(), arena_bytes(problem, offset))


def test_many_pinned_and_free_chunks_are_planned_by_first_fit_and_ejection() -> None:
    problem = crowded(50_000)
    pinned = np.where(np.arange(50_000) % 1_000 == 0, 8_192, FREE)
    plan = solve(evolve(problem, pinned=pinned), nodes=20_000)
    assert plan.strategy in {"first_fit_by_size", "ejection"}
    assert plan.arena_bytes < 1.2 * plan.lower_bound
