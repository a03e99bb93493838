"""A search that workers share: the same plan whatever the workers, never a larger one, and proofs that hold."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from attrs import evolve, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.interrupts import Stop, stopped_by
from allocator.problem import FREE, Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import Answer, SolverOptions, arena_bytes
from engine.searches import rounds
from engine.searches.rounds import RoundSearch, Search, carry_out
from engine.workers.board import BoardClosedError, NoBoard, folder_board
from engine.workers.flow import in_order
from engine.workers.place import Borrowed, Here
from engine.workers.places import opened
from tests.helpers.allocator.brute_force import minimal_peak
from tests.helpers.workers.ends import PATIENCE
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


class KeptBoard(NoBoard):
    """A board in this process, which is closed after so many reads."""

    def __init__(self, reads: int = 1000) -> None:
        object.__setattr__(self, "left", [reads])
        object.__setattr__(self, "values", [])

    def read(self) -> Any:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise BoardClosedError("closed")
        return self.values[-1] if self.values else None

    def write(self, value: Any) -> None:
        self.values.append(value)

    left: list[int]
    values: list[Any]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes searches look at the board whenever they may."""
    monkeypatch.setattr(rounds, "PAUSE", 0.0)
    monkeypatch.setattr(rounds, "_LOOK", 100)


@pytest.mark.usefixtures("no_pauses")
def test_a_search_with_a_time_takes_over_what_others_write_at_once() -> None:
    problem = hard(2)
    start, best = solve(problem, "naive").offset, solve(problem, nodes=20_000)
    for seconds in (math.inf, 60.0):
        board = KeptBoard()
        board.write(Answer(best.offset, 1, "another"))
        answer = carry_out(Search(problem, start, "hill_climb", 1, SolverOptions(nodes=1_000), seconds, board))
        takes_over = arena_bytes(problem, answer.offset) <= best.arena_bytes
        assert takes_over == (seconds < math.inf)


@pytest.mark.usefixtures("no_pauses")
def test_a_search_ends_with_what_it_has_when_the_board_is_closed_or_shows_a_proof() -> None:
    problem = hard(1)
    start, board = solve(problem, "naive").offset, KeptBoard(2)
    search = Search(problem, start, "ejection", 1, SolverOptions(nodes=10**12), board=board)
    answer = carry_out(search)
    assert check(problem, answer.offset, arena_bytes(problem, answer.offset)) is None
    assert board.values and arena_bytes(problem, board.values[-1].offset) < arena_bytes(problem, start)
    board = KeptBoard()
    board.write(Answer(answer.offset, arena_bytes(problem, answer.offset), "another"))
    assert carry_out(evolve(search, seconds=PATIENCE, board=board)).maker == "another"


@frozen
class StubbornBoard(NoBoard):
    """A board that keeps when it was closed."""

    closings: list[float] = field(factory=list)

    def close(self) -> None:
        self.closings.append(time.monotonic())


def test_a_board_that_a_late_write_may_bring_back_is_closed_until_the_round_is_over() -> None:
    stop, board, end = Stop(), StubbornBoard(), time.monotonic() + PATIENCE
    stop.is_asked = True
    with rounds._closed_by(stop, board):
        while len(board.closings) < 2 and time.monotonic() < end:
            time.sleep(0.01)
    assert len(board.closings) >= 2


def test_a_board_in_a_folder_shows_the_last_value_until_it_is_closed() -> None:
    with folder_board() as board:
        assert board.read() is None
        for value in (1, "two"):
            board.write(value)
            assert board.read() == value
    board.write("nothing")
    with pytest.raises(BoardClosedError):
        board.read()
