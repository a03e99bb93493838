"""Strategies for shared objects, against plain models, brute force, real networks and cases worked out by hand."""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from allocator import shared_objects
from allocator.check.shared_objects import check_objects
from allocator.errors import PlanError, ProblemError, UnknownStrategyError, UnsupportedProblemError
from allocator.interrupts import Stop, stopped_by
from allocator.kernels import mode
from allocator.kernels.linear_assignment import assign as assign_takers
from allocator.kernels.mode import KernelMode
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Column, Conflicts, Problem, column
from allocator.shared_objects import SHARING, SharedObjects, assign
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions
from allocator.solvers.placing.units import units_of
from allocator.solvers.positional_maximums import objects_bound, positional_maximums
from allocator.solvers.search.budget import Budget
from allocator.solvers.shared import NO_OBJECT, InterferenceGraph, SharedObjectsSolver, interference_graph
from allocator.solvers.shared_min_cost_flow import assignment_of
from tests.allocator.check.test_shared_objects import chunks
from tests.helpers.allocator import plain_shared_objects as model
from tests.helpers.allocator.random_problems import relabelled
from tests.helpers.allocator.strategies import problems
from tests.helpers.allocator.usage_records import NETWORKS, paper_example

NAMES = tuple(SHARING)
TIMELESS = tuple(s.name for s in SHARING.values() if s.traits.conflicts)
quickly = settings(max_examples=20)


def held(shared: SharedObjects) -> list[list[int]]:
    """Returns the chunks in each object."""
    return [np.flatnonzero(shared.object_of == k).tolist() for k in range(len(shared.size))]


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems(max_chunks=14))
@quickly
def test_objects_are_as_large_as_their_largest_chunk_and_no_more_than_chains(name: str, problem: Problem) -> None:
    shared = assign(problem, name)
    assert check_objects(problem, shared.object_of, shared.size) is None
    assert [int(problem.size[chunks].max()) for chunks in held(shared)] == shared.size.tolist()
    assert ((shared.object_of == NO_OBJECT) == (problem.size == 0)).all()
    assert shared.lower_bound <= shared.total_bytes <= sum(t.size for t in model.units_of(problem))


@pytest.mark.parametrize("name", TIMELESS)
@given(problem=problems(max_chunks=14, conflicts=True))
@quickly
def test_conflicts_may_stand_in_place_of_lifetimes(name: str, problem: Problem) -> None:
    shared = assign(problem, name)
    assert check_objects(problem, shared.object_of, shared.size) is None
    assert shared.lower_bound <= shared.total_bytes


@pytest.mark.parametrize("name", TIMELESS)
@given(problem=problems(max_chunks=14, overwrites=False))
@quickly
def test_conflicts_that_lifetimes_would_make_change_no_object(name: str, problem: Problem) -> None:
    rows = list(problem.rows())
    pairs = [(a.id, b.id) for a in rows for b in rows if a.id < b.id and a.begin < b.end and b.begin < a.end]
    conflicts = Conflicts([a for a, _ in pairs], [b for _, b in pairs])
    timeless, shared = assign(evolve(problem, conflicts=conflicts), name), assign(problem, name)
    assert timeless.total_bytes == shared.total_bytes
    assert timeless.lower_bound <= shared.lower_bound


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems(max_chunks=14), data=st.data())
@quickly
def test_shared_objects_do_not_depend_on_chunk_ids(name: str, problem: Problem, data: st.DataObject) -> None:
    other = relabelled(problem, data.draw(st.permutations(range(len(problem)))))
    assert sorted(assign(other, name).size.tolist()) == sorted(assign(problem, name).size.tolist())
    assert solve(other, name).arena_bytes == solve(problem, name).arena_bytes


@pytest.mark.parametrize("name", NAMES)
@given(problem=problems(max_chunks=30, horizon=20, alignments=(1,)))
@settings(max_examples=12)
def test_end_to_end_objects_are_a_plan(name: str, problem: Problem) -> None:
    plan, shared = solve(problem, name), assign(problem, name)
    assert plan.arena_bytes == shared.total_bytes
    starts = np.concatenate(([0], np.cumsum(shared.size)))
    roots = [t.chunks[0] for t in model.units_of(problem)]
    assert plan.offset[roots].tolist() == starts[shared.object_of[roots]].tolist()


@pytest.mark.slow
@given(problem=problems(max_chunks=40, horizon=30, conflicts=True))
@settings(max_examples=15)
def test_compiled_and_plain_give_the_same_objects(problem: Problem) -> None:
    for name in NAMES if problem.conflicts is None else TIMELESS:
        results = []
        for small in (0, 10**9):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(mode, "SMALL", small)
                results.append((solve(problem, name), assign(problem, name)))
        (one_plan, one), (other_plan, other) = results
        assert np.array_equal(one.object_of, other.object_of)
        assert one.lower_bound == other.lower_bound
        assert np.array_equal(one_plan.offset, other_plan.offset)


Reading = Callable[[Sequence[model.Unit]], list[model.Holder]]
BY_THE_BOOK: dict[str, Reading] = {
    "shared_in_order": lambda units: model.in_turn(units, model.nearest),
    "shared_equality": lambda units: model.in_turn(units, model.equal),
    "shared_by_size": lambda units: model.in_turn(model.by_size(units), model.smallest),
    "shared_by_breadth": lambda units: model.in_turn(model.by_breadth(units), model.smallest_or_grown),
    "shared_by_size_improved": model.by_size_improved,
}


@pytest.mark.parametrize("name", BY_THE_BOOK)
@given(problem=problems(max_chunks=25, horizon=20, max_size=6))
@settings(max_examples=40)
def test_shared_objects_equal_the_plain_model(name: str, problem: Problem) -> None:
    shared = assign(problem, name)
    lifetime = {t.chunks: (t.begin, t.end, t.size, t.alignment) for t in model.units_of(problem)}
    ours = [
        [life for chunks, life in lifetime.items() if shared.object_of[chunks[0]] == k] for k in range(len(shared.size))
    ]
    wanted = [[lifetime[t.chunks] for t in holder.units] for holder in BY_THE_BOOK[name](model.units_of(problem))]
    assert sorted(map(sorted, ours)) == sorted(map(sorted, wanted))


@given(problems(max_chunks=14))
@quickly
def test_positional_maximums_equal_the_plain_model(problem: Problem) -> None:
    maximums = positional_maximums(units_of(problem)).tolist()
    assert maximums == model.positional_maximums(model.units_of(problem))


@given(problems(max_chunks=6))
@quickly
def test_no_objects_are_below_the_bound_and_no_flow_is_cheaper(problem: Problem) -> None:
    ways = list(model.all_ways(model.units_of(problem)))
    fewest = min(sum(max(t.size for t in holder) for holder in way) for way in ways)
    assert objects_bound(interference_graph(problem)) <= fewest <= assign(problem).total_bytes
    shared = assign(problem, "shared_min_cost_flow")
    ours = [[t for t in model.units_of(problem) if shared.object_of[t.chunks[0]] == k] for k in range(len(shared.size))]
    assert sum(map(model.flow_cost, ours)) == min(sum(map(model.flow_cost, way)) for way in ways)


@given(problems(max_chunks=7, conflicts=True, overwrites=False))
@quickly
def test_no_objects_are_below_the_bound_of_conflicts(problem: Problem) -> None:
    """Tries any way to colour chunks, each with its own or an older colour."""
    if problem.conflicts is None:
        return
    pairs = set(zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True))
    ways: list[list[list[int]]] = [[]]
    for chunk in np.flatnonzero(problem.size).tolist():
        older = [
            [*way[:k], [*way[k], chunk], *way[k + 1 :]]
            for way in ways
            for k in range(len(way))
            if not any({(a, chunk), (chunk, a)} & pairs for a in way[k])
        ]
        ways = [[*way, [chunk]] for way in ways] + older
    fewest = min(sum(int(problem.size[group].max()) for group in way) for way in ways)
    assert objects_bound(interference_graph(problem)) <= fewest <= assign(problem).total_bytes


@pytest.mark.parametrize(
    ("network", "bound", "totals"),
    [
        ("MobileNet v1", 4.594, {"by_size": 5.359, "by_size_improved": 4.594, "by_breadth": 4.594, "flow": 5.359}),
        ("MobileNet v2", 6.604, {"by_size": 6.986, "by_size_improved": 6.699, "by_breadth": 6.891, "flow": 7.513}),
        ("DeepLab v3", 6.105, {"by_size": 7.102, "by_size_improved": 7.168, "by_breadth": 6.769, "flow": 8.727}),
    ],
)
def test_known_totals_of_networks_are_met_in_mib(network: str, bound: float, totals: dict[str, float]) -> None:
    problem = NETWORKS[network].problem()
    totals["min_cost_flow"] = totals.pop("flow")
    for name, total in totals.items():
        shared, plan = assign(problem, f"shared_{name}"), solve(problem, f"shared_{name}")
        assert round(shared.total_bytes / 2**20, 3) == round(plan.arena_bytes / 2**20, 3) == total
        assert round(shared.lower_bound / 2**20, 3) == bound
    assert assign(problem).total_bytes / 2**20 == pytest.approx(min(totals.values()), abs=0.0005)


def test_shared_objects_meet_the_bound_of_the_paper() -> None:
    """64 + 36 + 16 + 8 and 40 are alive in different ticks; the second largest is 40 in tick 7."""
    assert positional_maximums(units_of(paper_example())).tolist() == [64, 40, 16, 8]
    totals = {name: assign(paper_example(), name).total_bytes for name in NAMES}
    assert totals == {
        "shared_by_breadth": 128,
        "shared_by_size": 128,
        "shared_by_size_improved": 128,
        "shared_in_order": 130,
        "shared_equality": 234,
        "shared_min_cost_flow": 128,
    }
    best = assign(paper_example())
    assert (best.strategy, best.total_bytes, best.lower_bound) == ("shared_by_breadth", 128, 128)


@pytest.mark.parametrize("name", TIMELESS)
def test_shared_objects_break_ties_by_most_conflicting_bytes(name: str) -> None:
    """Conflicts a-b, b-c and c-d. Had a and d an object together before b and c have one, three would be needed."""
    for a, b, c, d in permutations(range(4)):
        path = chunks(*[(0, 1, 8)] * 4, conflicts=Conflicts([a, b, c], [b, c, d]))
        assert len(assign(path, name).size) == 2


def test_shared_objects_in_order_takes_the_object_nearest_in_size_even_if_it_grows() -> None:
    """Objects of 10 and 4 bytes are free. 6 bytes are nearer to 4; 7 bytes are as near to both and nothing grows."""
    assert held(assign(chunks((0, 1, 10), (0, 1, 4), (1, 2, 6)), "shared_in_order")) == [[0], [1, 2]]
    shared = assign(chunks((0, 1, 10), (0, 1, 4), (1, 2, 7)), "shared_in_order")
    assert held(shared) == [[0, 2], [1]]


def test_equality_takes_nothing_but_its_own_size() -> None:
    assert held(assign(chunks((0, 1, 4), (1, 2, 3), (2, 3, 4)), "shared_equality")) == [[0, 2], [1]]


def test_by_size_takes_the_smallest_object_that_is_free() -> None:
    """9, 8 and 7 bytes conflict in tick 0. 5 bytes live from tick 1 on: 7 is busy, so 8 serves."""
    assert held(assign(chunks((0, 1, 9), (0, 1, 8), (0, 2, 7), (1, 2, 5)), "shared_by_size")) == [[0], [1, 3], [2]]


def test_by_breadth_lets_the_largest_free_object_grow() -> None:
    """Tick 0 is the broadest with 5 + 4 + 3; then 6 comes in tick 1, where 5 is still busy: 4 grows."""
    shared = assign(chunks((0, 2, 5), (0, 1, 4), (0, 1, 3), (1, 2, 6)), "shared_by_breadth")
    assert held(shared) == [[0], [1, 3], [2]]
    assert shared.size.tolist() == [5, 6, 3]


def test_by_breadth_gives_the_longest_lived_of_equally_large_chunks_an_object_first() -> None:
    """Chunks 3 and 4 begin together, when two objects of 6 bytes are free: chunk 4 takes the older one."""
    problem = chunks((0, 1, 6), (0, 1, 6), (0, 1, 2), (1, 2, 4), (1, 3, 4))
    assert held(assign(problem, "shared_by_breadth")) == [[0, 4], [1, 3], [2]]


def test_by_size_improved_follows_the_chunk_that_has_just_ended() -> None:
    """8, 9 and 2 bytes conflict in tick 1. In the last stage, of 2 bytes, 9 is just free for chunk 3, 8 for 3 ticks."""
    problem = chunks((0, 2, 8), (1, 5, 9), (1, 2, 2), (5, 6, 2))
    assert held(assign(problem, "shared_by_size_improved")) == [[1, 3], [0], [2]]
    assert held(assign(problem, "shared_by_size")) == [[1], [0], [2, 3]]


def test_by_size_improved_takes_the_oldest_of_objects_that_would_be_idle_for_as_short() -> None:
    """Chunk 1 makes object 1, chunk 2 follows chunk 0 in object 0 until tick 5: both wait 2 ticks for chunk 4."""
    problem = chunks((1, 4, 2), (3, 5, 2), (4, 5, 1), (4, 7, 1), (7, 10, 1))
    assert held(assign(problem, "shared_by_size_improved")) == [[0, 2, 4], [1], [3]]


def test_shared_objects_flow_pays_for_growth_and_not_for_idle_bytes() -> None:
    """After 2 and 9 bytes come 10 and 1: 9 should grow to 10, and 1 go into 2."""
    shared = assign(chunks((0, 1, 2), (0, 1, 9), (1, 2, 10), (1, 2, 1)), "shared_min_cost_flow")
    assert sorted(held(shared)) == [[0, 3], [1, 2]]
    assert shared.total_bytes == shared.lower_bound == 12


def test_a_chain_of_overwrites_has_its_object_for_as_long_as_one_of_it_lives() -> None:
    """Chunk 1 overwrites chunk 0. Chunk 2 lives in tick 3, in which chunk 1 has 4 of the 8 bytes."""
    problem = chunks((0, 3, 8), (2, 4, 4), (3, 5, 4), (4, 5, 2), src=[1], dest=[0], overwrite_offset=[4])
    for name in NAMES:
        assert assign(problem, name).object_of[0] == assign(problem, name).object_of[1]
        assert assign(problem, name).object_of[2] != assign(problem, name).object_of[0]
    assert solve(problem, "shared_by_size").offset.tolist() == [0, 4, 8, 0]


def test_in_an_object_each_chunk_lies_as_low_as_its_alignment_allows() -> None:
    """Objects of 5 and 4 bytes; the second begins at 5, so chunk 1 at 8 and chunk 2 at 5."""
    problem = Problem([0, 0, 1], [2, 1, 2], [5, 4, 3], [1, 4, 1], [FREE] * 3)
    plan = solve(problem, "shared_by_size")
    assert held(assign(problem, "shared_by_size")) == [[0], [1, 2]]
    assert (plan.offset.tolist(), plan.arena_bytes) == ([0, 8, 5], 12)


def test_pinned_chunks_and_unknown_strategies_are_refused() -> None:
    with pytest.raises(UnsupportedProblemError, match="strategy 'best' cannot take pinned offsets"):
        assign(Problem([0], [1], [8], [1], [16]))
    with pytest.raises(UnsupportedProblemError, match="'shared_by_breadth' cannot take conflicts"):
        assign(chunks((0, 1, 1), conflicts=Conflicts()), "shared_by_breadth")
    with pytest.raises(UnknownStrategyError, match="no strategy 'pushdown' makes objects; there are best, shared_by"):
        assign(paper_example(), "pushdown")


def test_conflicts_within_a_chain_are_refused() -> None:
    problem = chunks((0, 3, 8), (2, 4, 4), src=[1], dest=[0], overwrite_offset=[0], conflicts=Conflicts([1], [0]))
    with pytest.raises(ProblemError, match="1 and 0 conflict, but belong to one chain"):
        assign(problem)


def hard_to_assign(count: int) -> InterferenceGraph:
    """Returns chunks of which many may follow many others, so that paths of the assignment are long."""
    draw = np.random.default_rng(count)
    begin = draw.integers(0, count // 4, count)
    sizes = draw.integers(1, 100, count)
    return interference_graph(Problem(begin, begin + draw.integers(1, 9, count), sizes, [1] * count, [FREE] * count))


@pytest.mark.parametrize("count", [30, 200])
def test_the_flow_saves_as_much_as_another_solver_of_assignments(count: int) -> None:
    units = hard_to_assign(count).units
    savings = np.where(units.end[:, None] <= units.begin, np.minimum.outer(units.size, units.size), 0)
    rows, columns = linear_sum_assignment(savings, maximize=True)
    taken = SHARING["shared_min_cost_flow"].share(hard_to_assign(count), Budget.of_time(SolverOptions()))
    order = np.argsort(taken, kind="stable")
    follows = np.diff(taken[order]) == 0
    saved = np.minimum(units.size[order[:-1]], units.size[order[1:]])[follows].sum()
    assert saved == savings[rows, columns].sum()


def test_the_flow_is_the_same_in_slices_and_compiled() -> None:
    units = hard_to_assign(60).units
    whole, sliced, plain = (assignment_of(units, KernelMode(is_plain)) for is_plain in (False, False, True))
    compiled(assign_takers)(whole, 2**62)
    while compiled(assign_takers)(sliced, 1):
        pass
    assign_takers(plain, 2**62)
    for columns in zip(whole, sliced, plain, strict=True):
        one, another, third = (column(np.array(numbers)) for numbers in columns)
        assert np.array_equal(one, another) and np.array_equal(one, third)


def test_the_flow_stops_when_the_time_is_over_or_somebody_asks() -> None:
    ticks = np.arange(20_000)
    problem = Problem(ticks, ticks + 1 + ticks % 90, 1 + ticks % 977, np.ones(20_000), np.full(20_000, FREE))
    for stop, seconds in ((Stop(is_asked=True), math.inf), (Stop(), 0.0)):
        with stopped_by(stop):
            assert solve(problem, "shared_min_cost_flow", seconds=seconds).arena_bytes == problem.size.sum()
        assert stop.has_plan


def test_shared_objects_best_has_a_strategy_for_any_number_of_chunks() -> None:
    ticks, ones = np.arange(100_001), np.ones(100_001)
    shared = assign(Problem(ticks, ticks + 1, ones, ones, np.full(100_001, FREE)))
    assert (shared.strategy, shared.total_bytes) == ("shared_by_breadth", 1)


def test_assign_never_returns_wrong_shared_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_for_all(graph: InterferenceGraph, _budget: Budget) -> Column:
        return np.zeros(len(graph), np.int64)

    monkeypatch.setattr(shared_objects, "SHARING", {"careless": SharedObjectsSolver("careless", one_for_all)})
    with pytest.raises(PlanError, match=r"careless made wrong objects \(conflict\): chunks 0 and 1 conflict"):
        assign(paper_example(), "careless")
