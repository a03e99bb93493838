import time
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator import solvers
from allocator.bounds import lower_bound, naive_bytes
from allocator.check.offsets import check
from allocator.derive.chunks import derive, to_problem
from allocator.errors import PlanError, ProblemError, UnknownStrategyError, UnsupportedProblemError
from allocator.problem import FREE, Conflicts, Problem
from allocator.solvers import BEST, STRATEGIES, solve
from allocator.solvers.base import Answer, SolverOptions, Traits
from allocator.solvers.search import budget
from allocator.solvers.search.budget import Budget
from allocator.steps import Program
from tests.helpers.allocator.brute_force import is_right, minimal_peak
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems, programs
from tests.helpers.allocator.supported_problems import can_take
from tests.helpers.allocator.usage_records import paper_example

NAMES = tuple(STRATEGIES)
EVERY = (*NAMES, BEST)
WITHOUT = {
    "pinned offsets": Problem([0], [1], [8], [1], [16]),
    "overwrites": Problem([0, 2], [3, 5], [8, 8], [1, 1], [FREE, FREE], [1], [0], [0]),
    "conflicts": Problem([0, 0], [1, 1], [8, 8], [1, 1], [FREE, FREE], conflicts=Conflicts([0], [1])),
}
"""Problems that need a trait, by what a refusal calls it."""
BY_ID = ("pushdown", "best_fit")
"""Strategies that follow MegEngine, where ids decide what comes first in a tick."""
quickly = settings(max_examples=30)


def suitable(name: str, max_chunks: int = 12) -> st.SearchStrategy[Problem]:
    """Draws problems with all properties that a strategy declares to support."""
    traits = STRATEGIES[name].traits if name in STRATEGIES else Traits()
    return problems(max_chunks, overwrites=traits.overwrites, pins=traits.pinned, conflicts=traits.conflicts)


def aligned_sum(problem: Problem) -> int:
    """Returns the bytes of all chains end to end behind the last pinned one, with those that alignment may cost."""
    is_root = problem.size > 0
    is_root[problem.src] = False
    is_pinned = is_root & (problem.pinned != FREE)
    is_free = is_root & ~is_pinned
    top = int((problem.pinned + problem.size)[is_pinned].max(initial=0))
    if len(np.unique(problem.alignment[is_root])) == 1:
        alignment = int(problem.alignment[is_root][0])
        return int((-(-np.append(top, problem.size[is_free]) // alignment) * alignment).sum())
    return top + int((problem.size + problem.alignment - 1)[is_free].sum())


def test_strategies_are_listed_by_their_own_names() -> None:
    assert [solver.name for solver in STRATEGIES.values()] == list(STRATEGIES)
    assert "naive" in STRATEGIES and "none" not in STRATEGIES


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
@quickly
def test_every_plan_is_right_tick_by_tick_and_byte_by_byte(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name))
    plan = solve(problem, name)
    assert is_right(problem, plan.offset.tolist(), plan.arena_bytes)
    assert plan.strategy == name or (name == BEST and plan.strategy in STRATEGIES)
    assert (plan.offset[problem.size == 0] == 0).all()


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
@quickly
def test_every_arena_lies_between_the_bound_and_the_aligned_sum(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name, max_chunks=20))
    plan = solve(problem, name)
    assert lower_bound(problem) <= plan.lower_bound <= plan.arena_bytes <= aligned_sum(problem)


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
@settings(max_examples=12)
def test_strategies_are_deterministic(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name, max_chunks=30))
    first, second = solve(problem, name, seed=3), solve(problem, name, seed=3)
    assert np.array_equal(first.offset, second.offset)


@pytest.mark.parametrize("name", EVERY)
@given(data=st.data())
@settings(max_examples=20)
def test_every_strategy_ends_with_a_right_plan_when_there_is_no_time(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name, max_chunks=30))
    plan = solve(problem, name, seconds=0)
    assert is_right(problem, plan.offset.tolist(), plan.arena_bytes)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=20)
def test_how_often_a_kernel_returns_decides_nothing(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name, max_chunks=30))
    plan = solve(problem, name, nodes=500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "SLICE", 1)
        patch.setattr(budget, "_LOOKS", 1)
        assert solve(problem, name, nodes=500).offset.tolist() == plan.offset.tolist()


@pytest.mark.parametrize("name", sorted({*EVERY} - {*BY_ID}))
@given(data=st.data())
@quickly
def test_strategies_do_not_depend_on_chunk_numbers(name: str, data: st.DataObject) -> None:
    problem = data.draw(suitable(name))
    other = relabelled(problem, data.draw(st.permutations(range(len(problem)))))
    assert solve(other, name).arena_bytes == solve(problem, name).arena_bytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("obstacle", WITHOUT)
def test_a_strategy_takes_what_it_declares_and_refuses_the_rest(obstacle: str, name: str) -> None:
    problem = WITHOUT[obstacle]
    if can_take(STRATEGIES[name], problem):
        plan = solve(problem, name)
        assert check(problem, plan.offset, plan.arena_bytes) is None
    else:
        with pytest.raises(UnsupportedProblemError, match=f"{name!r} cannot take {obstacle}.*; .*naive.* can"):
            solve(problem, name)


@pytest.mark.parametrize("name", EVERY)
@given(programs(), st.sampled_from((1, 2, 24, 64, 256)), st.sampled_from((0, 1, 32)))
@settings(max_examples=12)
def test_programs_are_planned_with_any_alignment_and_padding(
    name: str, program: Program, alignment: int, padding: int
) -> None:
    problem = to_problem(derive(program), alignment=alignment, padding=padding)
    plan = solve(problem, name)
    assert check(problem, plan.offset, plan.arena_bytes) is None
    assert plan.arena_bytes <= aligned_sum(problem)


@given(problems(max_chunks=4, max_size=4, horizon=4, alignments=(1, 2), pins=True, conflicts=True))
@quickly
def test_best_lies_between_the_optimum_and_every_quick_strategy(problem: Problem) -> None:
    plan = solve(problem)
    arenas = [solve(problem, s.name).arena_bytes for s in STRATEGIES.values() if can_take(s, problem)]
    assert minimal_peak(problem) <= plan.arena_bytes == min(arenas)
    assert solve(problem, plan.strategy).arena_bytes == plan.arena_bytes


@given(programs(), st.booleans(), st.booleans(), st.integers(0, 40))
@quickly
def test_programs_of_every_kind_can_be_planned(program: Program, overwrite: bool, reuse: bool, padding: int) -> None:
    chunks = derive(program, overwrite=overwrite, reuse=reuse)
    problem = to_problem(chunks, alignment=16, padding=padding)
    plan = solve(problem)
    assert plan.lower_bound <= plan.arena_bytes <= naive_bytes(problem) + 16 * len(problem)


def test_strategies_plan_the_example_of_the_paper() -> None:
    arenas = {name: solve(paper_example(), name).arena_bytes for name in NAMES}
    assert arenas == {
        "pushdown": 128,
        "pushdown_sorted": 128,
        "best_fit": 160,
        "best_fit_sorted": 160,
        "interval_move": 124,
        "strip_packing_bestfit": 138,
        "strip_packing_cover": 124,
        "greedy_by_size": 124,
        "greedy_by_breadth": 124,
        "greedy_in_order": 160,
        "first_fit_by_size": 124,
        "first_fit_by_begin": 160,
        "shared_by_size": 128,
        "shared_by_size_improved": 128,
        "shared_by_breadth": 128,
        "shared_in_order": 130,
        "shared_equality": 234,
        "shared_min_cost_flow": 128,
        "hill_climb": 124,
        "ejection": 124,
        "exact": 124,
        "naive": 234,
    }
    best = solve(paper_example())
    assert (best.strategy, best.status) == ("greedy_by_size", "optimal")


def test_pinned_offsets_leave_push_down_out_of_best() -> None:
    assert solve(Problem([0], [1], [8], [1], [16])).strategy == "greedy_by_size"
    with pytest.raises(UnsupportedProblemError, match="'pushdown' cannot take pinned offsets; greedy_by_size"):
        solve(Problem([0], [1], [8], [1], [16]), "pushdown")


def test_solve_names_pinned_chunks_that_overlap() -> None:
    overlapping = Problem([0, 0, 0], [1, 1, 1], [4, 8, 8], [1] * 3, [FREE, 0, 4])
    with pytest.raises(ProblemError, match=r"chunk 1 and chunk 2 \(or what overwrites them\) need the same bytes"):
        solve(overlapping)


def test_a_pinned_root_takes_its_overwriters_along() -> None:
    problem = Problem([0, 2, 0], [3, 5, 5], [8, 4, 2], [1] * 3, [10, FREE, FREE], [1], [0], [3])
    assert solve(problem, "greedy_by_size").offset.tolist() == [10, 13, 0]


def test_solve_refuses_an_unknown_strategy_and_lists_the_known_ones() -> None:
    with pytest.raises(
        UnknownStrategyError, match="no strategy 'magic'; there are best, pushdown, pushdown_sorted, best_fit"
    ):
        solve(paper_example(), "magic")


@frozen
class _Careless:
    name: str = "careless"
    traits: Traits = Traits()

    def solve(self, problem: Problem, _task: SolverOptions) -> Answer:
        return Answer(np.zeros(len(problem), np.int64))


def test_solve_never_returns_a_wrong_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "STRATEGIES", {"careless": _Careless()})
    with pytest.raises(PlanError, match="careless made a wrong plan \\(overlap\\): chunk 0 has bytes"):
        solve(paper_example(), "careless")


def test_greedy_takes_the_smallest_gap_that_fits() -> None:
    """Chunks 1 and 3 end early and leave gaps of 6 and 5 bytes; chunk 5 has 5."""
    begin, end, size = [0, 0, 0, 0, 0, 2], [3, 1, 3, 1, 3, 3], [9, 6, 8, 5, 7, 5]
    pinned = [0, 9, 15, 23, 28, FREE]
    assert solve(Problem(begin, end, size, [1] * 6, pinned), "greedy_by_size").offset[5] == 23


def test_push_down_moves_the_whole_chain_above_a_chunk_below_an_overwriter() -> None:
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


@given(problems())
def test_chains_add_up_offsets_to_the_root(problem: Problem) -> None:
    result = problem.chains
    taken = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    for chunk in range(len(problem)):
        dest, at = taken.get(chunk, (chunk, 0))
        assert result.root[chunk] == result.root[dest]
        assert result.offset[chunk] == result.offset[dest] + at
        assert (chunk == result.root[chunk]) == (chunk not in taken)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("exact", "allocator.solvers.greedy.place_in_order"),
        (BEST, "allocator.solvers.quick.arena_bytes"),
        (BEST, "allocator.solvers.proved_bound"),
    ],
)
def test_the_time_before_a_search_counts(name: str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, function = first.rpartition(".")
    work, now = getattr(import_module(module), function), [0.0]

    def slow(*arguments: Any) -> Any:
        now[0] += 100
        return work(*arguments)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(first, slow)
    monkeypatch.setattr(Budget, "spend", lambda *_: pytest.fail("the search goes on when the time is over"))
    begin = np.arange(300)
    solve(Problem(begin, begin + 50, 1 + begin % 7, [1] * 300, [FREE] * 300), name, seconds=50)
