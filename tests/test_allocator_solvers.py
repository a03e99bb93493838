import numpy as np
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator import solvers
from allocator.bounds import naive_bytes
from allocator.chains import chains
from allocator.check import check
from allocator.chunks import derive, to_problem
from allocator.errors import PlanError, ProblemError, UnknownStrategyError, UnsupportedProblemError
from allocator.problem import FREE, Problem
from allocator.solvers import STRATEGIES, solve
from allocator.solvers.base import Answer, Task, Traits
from allocator.solvers.local_search import LocalSearch
from allocator.steps import Program
from tests.reference import is_right, minimal_peak
from tests.strategies import problems, programs
from tests.test_allocator_bounds import paper_example

NAMES = tuple(STRATEGIES)
PINNING = tuple(s.name for s in STRATEGIES.values() if s.traits.pinned)
quickly = settings(max_examples=60)


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems())
@quickly
def test_every_plan_is_right_tick_by_tick_and_byte_by_byte(name: str, problem: Problem) -> None:
    plan = solve(problem, name)
    assert is_right(problem, plan.offset.tolist(), plan.arena_bytes)
    assert plan.strategy == name
    assert (plan.offset[problem.size == 0] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems(max_chunks=30, horizon=20))
@settings(max_examples=10)
def test_same_problem_same_plan(name: str, problem: Problem) -> None:
    first, second = solve(problem, name, seed=3), solve(problem, name, seed=3)
    assert np.array_equal(first.offset, second.offset)


@given(problems(max_chunks=4, max_size=4, horizon=4, alignments=(1, 2)))
@quickly
def test_best_lies_between_the_optimum_and_every_quick_strategy(problem: Problem) -> None:
    plan = solve(problem)
    arenas = [solve(problem, s.name).arena_bytes for s in STRATEGIES.values()]
    assert minimal_peak(problem) <= plan.arena_bytes == min(arenas)
    assert solve(problem, plan.strategy).arena_bytes == plan.arena_bytes


@given(programs(), st.booleans(), st.booleans(), st.integers(0, 40))
@quickly
def test_programs_of_every_kind_can_be_planned(program: Program, overwrite: bool, reuse: bool, padding: int) -> None:
    chunks = derive(program, overwrite=overwrite, reuse=reuse)
    problem = to_problem(chunks, alignment=16, padding=padding)
    plan = solve(problem)
    assert plan.lower_bound <= plan.arena_bytes <= naive_bytes(problem) + 16 * len(problem)


def test_the_example_of_the_paper_is_planned() -> None:
    arenas = {name: solve(paper_example(), name).arena_bytes for name in NAMES}
    assert arenas == {
        "pushdown": 128,
        "greedy_by_size": 124,
        "greedy_by_breadth": 124,
        "local_search": 124,
        "interval_move": 124,
        "best_fit": 160,
        "strip_packing_bestfit": 138,
        "shared_by_breadth": 128,
        "shared_by_size": 128,
        "shared_by_size_improved": 128,
        "shared_in_order": 130,
        "shared_equality": 234,
        "shared_min_cost_flow": 128,
        "naive": 234,
    }
    best = solve(paper_example())
    assert (best.strategy, best.status) == ("greedy_by_size", "optimal")


@pytest.mark.parametrize("name", PINNING)
@given(problem=problems(), data=st.data())
@quickly
def test_pinned_offsets_are_kept(name: str, problem: Problem, data: st.DataObject) -> None:
    roots = sorted(set(range(len(problem))) - set(problem.src.tolist()))
    pinned = np.full(len(problem), FREE)
    for step, root in enumerate(data.draw(st.permutations(roots))[:2]):
        pinned[root] = step * 64
    fixed = evolve(problem, pinned=pinned)
    plan = solve(fixed, name)
    assert check(fixed, plan.offset, plan.arena_bytes) is None
    kept = (pinned != FREE) & (problem.size > 0)
    assert np.array_equal(plan.offset[kept], pinned[kept])


def test_pinned_offsets_leave_push_down_out_of_best() -> None:
    assert solve(Problem([0], [1], [8], [1], [16])).strategy == "greedy_by_size"
    with pytest.raises(UnsupportedProblemError, match="'pushdown' cannot take pinned offsets; greedy_by_size"):
        solve(Problem([0], [1], [8], [1], [16]), "pushdown")


def test_pinned_chunks_that_meet_are_named() -> None:
    meeting = Problem([0, 0, 0], [1, 1, 1], [4, 8, 8], [1] * 3, [FREE, 0, 4])
    with pytest.raises(ProblemError, match=r"chunk 1 and chunk 2 \(or what overwrites them\) need the same bytes"):
        solve(meeting)


def test_a_pinned_root_takes_its_overwriters_along() -> None:
    problem = Problem([0, 2, 0], [3, 5, 5], [8, 4, 2], [1] * 3, [10, FREE, FREE], [1], [0], [3])
    assert solve(problem, "greedy_by_size").offset.tolist() == [10, 13, 0]


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownStrategyError, match="no strategy 'magic'; there are best, pushdown, greedy_by_size"):
        solve(paper_example(), "magic")


@frozen
class _Careless:
    name: str = "careless"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _task: Task) -> Answer:
        return Answer(np.zeros(len(problem), np.int64))


def test_a_wrong_plan_never_leaves_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "STRATEGIES", {"careless": _Careless()})
    with pytest.raises(PlanError, match="careless made a wrong plan \\(overlap\\): chunk 0 has bytes"):
        solve(paper_example(), "careless")


def test_greedy_takes_the_smallest_gap_that_fits() -> None:
    """Chunks 1 and 3 end early and leave gaps of 6 and 5 bytes; chunk 5 has 5."""
    begin, end, size = [0, 0, 0, 0, 0, 2], [3, 1, 3, 1, 3, 3], [9, 6, 8, 5, 7, 5]
    pinned = [0, 9, 15, 23, 28, FREE]
    assert solve(Problem(begin, end, size, [1] * 6, pinned), "greedy_by_size").offset[5] == 23


def test_push_down_lets_a_newcomer_below_an_overwriter_push_the_whole_chain() -> None:
    """Chunk 1 overwrites the upper bytes of chunk 0; chunk 2 does not fit below it, so the chain moves up."""
    problem = Problem([0, 1, 2], [2, 4, 4], [10, 4, 8], [1] * 3, [FREE] * 3, [1], [0], [6])
    plan = solve(problem, "pushdown")
    assert plan.offset.tolist() == [2, 8, 0]
    assert plan.arena_bytes == plan.lower_bound == 12


def test_push_down_frees_what_an_empty_chunk_overwrites() -> None:
    problem = Problem([0, 1, 2], [2, 4, 4], [8, 0, 8], [1] * 3, [FREE] * 3, [1], [0], [0])
    assert solve(problem, "pushdown").arena_bytes == 8


def test_push_down_takes_a_chain_of_100_000_overwrites() -> None:
    count = 100_000
    ids = np.arange(count)
    problem = Problem(
        ids, ids + 2, count - ids, np.ones(count), np.full(count, FREE), ids[1:], ids[:-1], np.ones(count - 1)
    )
    plan = solve(problem, "pushdown")
    assert plan.arena_bytes == plan.lower_bound == count
    assert plan.offset[-1] == count - 1


def test_push_down_takes_100_000_blocks_that_lie_on_each_other() -> None:
    count = 100_000
    ids = np.arange(count)
    problem = Problem(ids, np.full(count, count), np.ones(count), np.ones(count), np.full(count, FREE))
    plan = solve(problem, "pushdown")
    assert plan.arena_bytes == plan.lower_bound == count


@given(problems(max_chunks=20))
@quickly
def test_local_search_is_never_worse_than_greedy_and_keeps_to_its_seed(problem: Problem) -> None:
    greedy = solve(problem, "greedy_by_size").arena_bytes
    offset = LocalSearch(rounds=5).solve(problem, Task(seed=1)).offset
    assert int((offset + problem.size).max(initial=0)) <= greedy
    assert np.array_equal(offset, LocalSearch(rounds=5).solve(problem, Task(seed=1)).offset)


def test_local_search_beats_greedy_where_greedy_errs() -> None:
    draw = np.random.default_rng(4)
    begin = draw.integers(0, 30, 25)
    size = draw.integers(1, 100, 25)
    problem = Problem(begin, begin + draw.integers(1, 15, 25), size, np.ones(25), np.full(25, FREE))
    greedy, searched = solve(problem, "greedy_by_size"), solve(problem, "local_search", seed=0)
    assert searched.arena_bytes < greedy.arena_bytes


@given(problems())
def test_chains_add_up_offsets_to_the_root(problem: Problem) -> None:
    found = chains(problem)
    taken = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    for chunk in range(len(problem)):
        dest, at = taken.get(chunk, (chunk, 0))
        assert found.root[chunk] == found.root[dest]
        assert found.offset[chunk] == found.offset[dest] + at
        assert (chunk == found.root[chunk]) == (chunk not in taken)
