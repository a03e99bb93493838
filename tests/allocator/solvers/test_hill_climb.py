import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.kernels.climb import MODULUS, NO_PLACE, advance
from allocator.kernels.mode import KernelMode
from allocator.problem import FREE, Column, Conflicts, Problem
from allocator.solvers import solve
from allocator.solvers.base import Answer, SolverOptions, arena_bytes
from allocator.solvers.greedy import GREEDY_BY_BREADTH, GREEDY_BY_SIZE
from allocator.solvers.hill_climb import HILL_CLIMB
from tests.helpers.allocator.brute_force import is_right
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems

EVERYTHING = problems(max_chunks=20, pins=True, conflicts=True)


def random_problem(seed: int, count: int) -> Problem:
    """Returns chunks of 1 to 99 bytes that live up to 15 ticks in 30."""
    draw = np.random.default_rng(seed)
    begin, size = draw.integers(0, 30, count), draw.integers(1, 100, count)
    return Problem(begin, begin + draw.integers(1, 15, count), size, np.ones(count), np.full(count, FREE))


def arena(problem: Problem, answer: Answer) -> int:
    assert check(problem, answer.offset, arena_bytes(problem, answer.offset)) is None
    return arena_bytes(problem, answer.offset)


@pytest.mark.slow
@given(EVERYTHING, st.integers(2, 60), st.integers(0, 5))
@settings(max_examples=40)
def test_hill_climb_is_right_and_never_worse_than_its_start(problem: Problem, nodes: int, seed: int) -> None:
    result = HILL_CLIMB.solve(problem, SolverOptions(seed, nodes=nodes)).offset
    assert is_right(problem, result.tolist(), arena_bytes(problem, result))
    greedy = [
        arena_bytes(problem, g.solve(problem, SolverOptions()).offset) for g in (GREEDY_BY_SIZE, GREEDY_BY_BREADTH)
    ]
    assert arena_bytes(problem, result) <= min(greedy)


@given(EVERYTHING, st.integers(0, 5))
@settings(max_examples=20)
def test_hill_climb_is_deterministic_and_no_worse_with_more_nodes(problem: Problem, seed: int) -> None:
    task, longer = SolverOptions(seed, nodes=20), SolverOptions(seed, nodes=60)
    first, second = HILL_CLIMB.solve(problem, task), HILL_CLIMB.solve(problem, task)
    assert np.array_equal(first.offset, second.offset)
    assert arena(problem, HILL_CLIMB.solve(problem, longer)) <= arena(problem, first)


@given(EVERYTHING, st.data())
@settings(max_examples=30)
def test_hill_climb_does_not_depend_on_chunk_numbers(problem: Problem, data: st.DataObject) -> None:
    other = relabelled(problem, data.draw(st.permutations(range(len(problem)))))
    task = SolverOptions(nodes=40)
    assert arena(other, HILL_CLIMB.solve(other, task)) == arena(problem, HILL_CLIMB.solve(problem, task))


@given(EVERYTHING, st.sampled_from((0, 1)))
@settings(max_examples=20)
def test_hill_climb_without_time_is_greedy_by_size(problem: Problem, nodes: int) -> None:
    greedy = GREEDY_BY_SIZE.solve(problem, SolverOptions()).offset
    assert np.array_equal(HILL_CLIMB.solve(problem, SolverOptions(until=0)).offset, greedy)
    assert np.array_equal(HILL_CLIMB.solve(problem, SolverOptions(nodes=nodes)).offset, greedy)


def test_hill_climb_stops_at_its_goal_and_reaches_it_where_greedy_errs() -> None:
    problem = random_problem(4, 25)
    greedy = min(solve(problem, name).arena_bytes for name in ("greedy_by_size", "greedy_by_breadth"))
    best = arena(problem, HILL_CLIMB.solve(problem, SolverOptions()))
    assert best < greedy - 1
    assert best <= arena(problem, HILL_CLIMB.solve(problem, SolverOptions(goal=greedy - 1))) < greedy


def test_hill_climb_moves_the_topmost_chunk_before_those_below_it() -> None:
    """By size, chunk 1 comes last: chunk 0 has bytes [0, 3) in tick 2, chunk 3 has [2, 4) in tick 1, so it lies at 4.

    Placed first, at 0, it leaves [2, 5) to chunk 0 and [2, 4) to chunk 3. No greedy order has it before both.
    """
    problem = Problem([2, 1, 0, 0], [3, 3, 1, 2], [3, 2, 2, 2], [1] * 4, [FREE] * 4)
    assert GREEDY_BY_SIZE.solve(problem, SolverOptions()).offset.tolist() == [0, 4, 0, 2]
    assert HILL_CLIMB.solve(problem, SolverOptions(goal=5)).offset.tolist() == [2, 0, 0, 2]


def test_hill_climb_ends_where_only_pinned_chunks_are_in_the_way() -> None:
    """Chunk 1 fits nowhere below chunk 0: a billion orders would change nothing, so the climb ends."""
    problem = Problem([0, 0], [1, 1], [4, 4], [1, 1], [2, FREE])
    assert HILL_CLIMB.solve(problem, SolverOptions(nodes=10**9)).offset.tolist() == [2, 6]


def test_two_hundred_chunks_are_climbed_compiled_with_conflicts_and_without() -> None:
    problem = random_problem(1, 200)
    greedy = solve(problem, "greedy_by_size").arena_bytes
    assert arena(problem, HILL_CLIMB.solve(problem, SolverOptions(nodes=500))) < greedy
    conflicting = (problem.begin[:, None] < problem.end) & (problem.begin < problem.end[:, None])
    one, other = np.nonzero(np.triu(conflicting, 1))
    columns = (problem.begin, problem.end, problem.size, problem.alignment, problem.pinned)
    paired = Problem(*columns, conflicts=Conflicts(one, other))
    assert arena(paired, HILL_CLIMB.solve(paired, SolverOptions(nodes=500))) < greedy


@frozen(eq=False)
class Move:
    """Lives, an order, offsets of its first bodies, draws and chance."""

    begin: Column
    end: Column
    order: Column
    offset: Column
    draws: int
    chance: int


@st.composite
def moves(draw: st.DrawFn) -> Move:
    count = draw(st.integers(1, 12))
    begin = np.array(draw(st.lists(st.integers(0, 8), min_size=count, max_size=count)))
    end = begin + np.array(draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)))
    order = np.array(draw(st.permutations(range(count))))
    offset = np.full(count, NO_PLACE)
    offset[order[: draw(st.integers(0, count))]] = 7
    return Move(begin, end, order, offset, draw(st.integers(1, 6)), draw(st.integers(1, MODULUS - 1)))


def moved(m: Move, is_plain: bool = True, by_life: bool = True) -> tuple[int, list[int], int]:
    """Returns the new place, order and chance."""
    conflicting = (m.begin[:, None] < m.end) & (m.begin < m.end[:, None]) & ~np.eye(len(m.begin), dtype=bool)
    start, near = np.append(0, np.cumsum(conflicting.sum(axis=1))), np.nonzero(conflicting)[1]
    nothing, run = np.zeros(0, np.int64), KernelMode(is_plain)
    arguments = (m.begin, m.end, nothing, nothing) if by_life else (nothing, nothing, start, near)
    (order, offset, *how, chance) = run.numbers(m.order.copy(), m.offset, *arguments, np.array([m.chance]))
    begin, end, starts, nears = how
    seen, blocked = run.zeros(len(m.begin), len(m.begin))
    place = run.kernel(advance)(order, offset, begin, end, starts, nears, seen, blocked, m.draws, chance)
    return int(place), [order[i] for i in range(len(order))], int(chance[0])


@given(moves(), st.booleans())
def test_a_move_takes_the_last_chunk_placed_before_one_that_it_conflicts_with(move: Move, by_life: bool) -> None:
    begin, end, order = move.begin, move.end, move.order
    to, new, _ = moved(move, by_life=by_life)
    at = int((move.offset != NO_PLACE).sum()) - 1
    last = order[at]
    in_the_way = [k for k in range(at) if begin[order[k]] < end[last] and begin[last] < end[order[k]]]
    if in_the_way:
        assert to in in_the_way
        assert new == [*order[:to], last, *order[to:at], *order[at + 1 :]]
    else:
        assert (to, new) == (NO_PLACE, order.tolist())


@given(moves())
@settings(max_examples=25)
def test_lives_and_lists_compiled_and_plain_are_one(move: Move) -> None:
    result = [moved(move, is_plain, by_life) for is_plain in (True, False) for by_life in (True, False)]
    assert all(f == result[0] for f in result)


def test_hill_climb_makes_short_moves_mostly() -> None:
    order, zeros = np.arange(100), np.zeros(100, np.int64)

    def mean(draws: int) -> float:
        of_each = (moved(Move(zeros, zeros + 1, order, zeros, draws, c))[0] for c in range(1, 2000))
        return float(np.mean(list(of_each)))

    assert mean(1) < 60 < mean(3) < 80 < mean(9)
