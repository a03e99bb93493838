"""The exact strategy and both of its searches, probe by probe, against brute force and a constraint solver."""

import math

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.check.offsets import check
from allocator.kernels import pairs, skyline
from allocator.machine_code.arrays import compiled
from allocator.problem import FREE, Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.exact import EXACT
from allocator.solvers.naive import NAIVE
from allocator.solvers.search.bodies import Bodies, bodies, grain, parts
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.descent import Descent
from allocator.solvers.search.pairwise import Pairwise
from allocator.solvers.search.profiles import PairGaps, Pieces, arranged, pair_gaps, pieces
from allocator.solvers.search.steps import finish
from tests.helpers.allocator.brute_force import is_right, minimal_peak
from tests.helpers.allocator.constraint_solver import optimum
from tests.helpers.allocator.random_problems import Kind
from tests.helpers.allocator.strategies import problems, random_problem

MIXED = (1, 2, 3, 4, 6)
HARD = Kind(30, 12, (1, 2, 4), overwrites=70, pins=10, highest=64, longest=8)
NO_LIMIT = 1_000_000
"""Nodes that no search of these problems needs."""
tiny = problems(max_chunks=7, max_size=6, horizon=6, alignments=MIXED, pins=True, conflicts=True)
quickly = settings(max_examples=30)


def notched() -> Problem:
    """Returns a problem: chunk 1 keeps bytes [4, 6) of the 12 of chunk 0; chunks 2 and 3 come after chunk 0."""
    return Problem([0, 1, 2, 2], [2, 4, 4, 4], [12, 2, 4, 6], [1] * 4, [FREE] * 4, [1], [0], [4])


def all_parts(problem: Problem) -> list[Bodies]:
    whole = bodies(problem)
    return [arranged(part) for part in parts(whole, np.arange(len(whole)))]


def searches(problem: Problem) -> list[Descent | Pairwise]:
    """Returns all searches that support each part of a problem, from the worst plan."""
    searches_of_parts: list[Descent | Pairwise] = []
    start = NAIVE.solve(problem, SolverOptions()).offset
    for part in all_parts(problem):
        searches_of_parts.append(Pairwise.of(problem, part, start[part.root], 0))
        if part.is_solid.all():
            searches_of_parts.append(Descent(part, start[part.root]))
    return searches_of_parts


def lowest(search: Descent | Pairwise, effort: int) -> int:
    """Returns the smallest arena: tries capacities from one below the best plan downwards, until there is none."""
    budget = Budget.of(SolverOptions(), NO_LIMIT)
    while finish(search.probe(search.arena - 1, effort, budget)):
        pass
    assert not budget.is_over
    return search.arena


@given(tiny, st.sampled_from((3, 9)))
@quickly
def test_every_probe_ends_with_a_plan_or_a_proof(problem: Problem, effort: int) -> None:
    result = [(s, lowest(s, effort)) for s in searches(problem)]
    highest_pin = int((problem.pinned + problem.size)[(problem.pinned != FREE) & (problem.size > 0)].max(initial=0))
    assert max([highest_pin, *(arena for _, arena in result)]) == minimal_peak(problem)
    assert all(s.proved <= arena for s, arena in result)
    by_part: dict[bytes, set[int]] = {}
    for search, arena in result:
        by_part.setdefault(search.part.root.tobytes(), set()).add(arena)
    assert all(len(arenas) == 1 for arenas in by_part.values())


@given(tiny)
@quickly
def test_exact_is_what_brute_force_finds_and_proves_it(problem: Problem) -> None:
    plan = solve(problem, "exact")
    assert is_right(problem, plan.offset.tolist(), plan.arena_bytes)
    assert plan.arena_bytes == plan.lower_bound == minimal_peak(problem)
    assert plan.status == Status.OPTIMAL


@given(tiny)
@quickly
def test_a_capacity_is_kept_or_proved_to_be_too_small(problem: Problem) -> None:
    least = minimal_peak(problem)
    enough = solve(problem, "exact", capacity=least)
    assert enough.arena_bytes <= least
    assert enough.status in {Status.OPTIMAL, Status.FEASIBLE}
    if least:
        assert solve(problem, "exact", capacity=least - 1).status == Status.INFEASIBLE


@pytest.mark.parametrize("alignments", [(1,), (1, 2, 4), (1, 6, 4)])
def test_exact_meets_the_constraint_solver_where_bodies_have_notches(alignments: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    for count in (8, 12, 16, 20, 24):
        problem = random_problem(rng, count, Kind(30, 12, alignments, overwrites=70, pins=10, highest=64, longest=6))
        plan, model = solve(problem, "exact", nodes=200_000), optimum(problem)
        assert check(problem, plan.offset, plan.arena_bytes) is None
        assert plan.lower_bound == plan.arena_bytes == model.arena_bytes == model.lower_bound


@pytest.mark.slow
def test_the_pair_search_gives_the_same_plain_and_compiled() -> None:
    """Both begin with all bodies end to end, and aim halfway down to the bound."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        problem = random_problem(rng, 12, HARD)
        for plain, twin in zip(searches(problem), searches(problem), strict=True):
            if not isinstance(plain, Pairwise) or not isinstance(twin, Pairwise):
                continue
            one, other = plain._search, twin._search
            capacity = (plain.proved + plain.arena) // 2
            pairs.prepare(one, capacity)
            compiled(pairs.prepare)(other, capacity)
            for _ in range(3):
                assert pairs.explore(one, pairs.BY_STRAIN, 20) == compiled(pairs.explore)(other, pairs.BY_STRAIN, 20)
                for a, b in zip(one, other, strict=True):
                    assert np.array_equal(a, b)


def test_the_rectangle_search_gives_the_same_plain_and_compiled() -> None:
    rng = np.random.default_rng(6)
    for _ in range(6):
        problem = random_problem(rng, 12, Kind(30, 8, (1, 2, 4), pins=10, highest=64))
        for part in all_parts(problem):
            start = NAIVE.solve(problem, SolverOptions()).offset[part.root]
            one, other = Descent(part, start)._search, Descent(part, start)._search
            for s in (one, other):
                s.bodies[skyline.LATEST, :-1] = int(start.max()) - part.size
                s.bodies[skyline.RANK, :-1] = np.arange(len(part))
                s.cliques[skyline.ROOM, :-1] = int(start.max())
            skyline.prepare(one)
            compiled(skyline.prepare)(other)
            for _ in range(3):
                assert skyline.explore(one, skyline.BY_BOTH, 20) == compiled(skyline.explore)(
                    other, skyline.BY_BOTH, 20
                )
                for a, b in zip(one, other, strict=True):
                    assert np.array_equal(a, b)


def test_a_search_cut_into_slices_is_the_same_search() -> None:
    problem = random_problem(np.random.default_rng(8), 20, HARD)
    for whole, sliced in zip(searches(problem), searches(problem), strict=True):
        if isinstance(whole, Pairwise) and isinstance(sliced, Pairwise):
            results = []
            for search, nodes in ((whole, 300), (sliced, 7)):
                pairs.prepare(search._search, search.proved)
                outcome = pairs.OUT_OF_NODES
                while outcome == pairs.OUT_OF_NODES and search._search.cursor[pairs.NODES] < 300:
                    outcome = pairs.explore(search._search, pairs.BY_REGRET, nodes)
                results.append((outcome, search._search.bodies[pairs.LOWEST].tolist()))
            assert results[0] == results[1] or results[0][0] == pairs.OUT_OF_NODES


@given(problems(max_chunks=20, max_size=30, pins=True, conflicts=True), st.integers(0, 60), st.integers(0, 3))
@quickly
def test_exact_search_is_deterministic_for_a_seed_and_nodes(problem: Problem, nodes: int, seed: int) -> None:
    task = SolverOptions(seed=seed, nodes=nodes)
    first, second = EXACT.solve(problem, task), EXACT.solve(problem, task)
    assert np.array_equal(first.offset, second.offset)
    assert first.lower_bound == second.lower_bound <= arena_bytes(problem, first.offset)


@pytest.mark.parametrize("task", [SolverOptions(nodes=0), SolverOptions(until=0), SolverOptions(nodes=1)])
def test_exact_search_without_time_or_nodes_still_gives_a_plan(task: SolverOptions) -> None:
    problem = random_problem(np.random.default_rng(9), 40, HARD)
    answer = EXACT.solve(problem, task)
    assert check(problem, answer.offset, arena_bytes(problem, answer.offset)) is None


def test_late_chunks_lie_in_notches_of_profiles() -> None:
    """Chunks 2 and 3 fit below and above chunk 1 into what chunk 0 has left; as rectangles they do not."""
    plan = solve(notched(), "exact")
    assert plan.offset.tolist() == [0, 4, 0, 6]
    assert (plan.arena_bytes, plan.status) == (12, Status.OPTIMAL)


def test_gaps_of_a_body_in_a_notch() -> None:
    """The narrow piece has bytes [4, 6): 6 bytes lie at -2 or lower, or at 6 or higher, 4 bytes at 0, or at 6."""
    (part,) = all_parts(notched())
    made_of = pieces(notched(), part)
    gaps = pair_gaps(part, made_of)
    chain = part.root.tolist().index(0)
    limits = {
        int(part.size[gaps.other[k] if gaps.one[k] == chain else gaps.one[k]]): limits_of(gaps, k)
        for k in range(len(gaps.one))
        if chain in {int(gaps.one[k]), int(gaps.other[k])}
    }
    assert limits == {6: [(-pairs.FAR, -2), (6, pairs.FAR)], 4: [(-pairs.FAR, 0), (6, pairs.FAR)]}


def limits_of(gaps: PairGaps, pair: int) -> list[tuple[int, int]]:
    first, last = gaps.start[pair], gaps.start[pair + 1]
    return list(zip(gaps.low[first:last].tolist(), gaps.high[first:last].tolist(), strict=True))


@given(tiny)
@quickly
def test_gaps_are_the_distances_at_which_no_two_pieces_overlap(problem: Problem) -> None:
    for part in all_parts(problem):
        made_of = pieces(problem, part)
        gaps = pair_gaps(part, made_of)
        for pair, (one, other) in enumerate(zip(gaps.one.tolist(), gaps.other.tolist(), strict=True)):
            step = math.gcd(int(part.alignment[one]), int(part.alignment[other]))
            wanted = {d for d in range(-60, 61, step) if not conflict(made_of, one, other, d)}
            allowed = {d for low, high in limits_of(gaps, pair) for d in range(max(low, -60), min(high, 60) + 1)}
            assert {d for d in allowed if d % step == 0} == wanted


def conflict(made_of: Pieces, one: int, other: int, distance: int) -> bool:
    """Returns whether, with two bodies at that distance, two of their pieces share a byte that must not."""
    offset = made_of.shift + distance * (made_of.owner == other)
    return any(
        offset[p] < offset[q] + made_of.size[q] and offset[q] < offset[p] + made_of.size[p]
        for p in np.flatnonzero(made_of.owner == one)
        for q in made_of.near.row(int(p))
        if made_of.owner[q] == other
    )


@pytest.mark.parametrize(
    ("unit", "alignments", "wanted"), [(12, [1], 12), (12, [4, 2], 12), (12, [8], 4), (12, [24], 12), (6, [4, 3], 1)]
)
def test_offsets_are_multiples_of_the_grain(unit: int, alignments: list[int], wanted: int) -> None:
    assert grain(unit, np.array(alignments)) == wanted


@given(problems(max_chunks=9, max_size=9, horizon=6, alignments=(64,)), st.integers(1, 4))
@quickly
def test_nothing_false_is_proved_of_the_largest_arenas(problem: Problem, part: int) -> None:
    """Sizes and alignments are multiplied until all have nearly 2**62 bytes: so is the smallest arena."""
    cells = evolve(problem, size=64 * problem.size, overwrite_offset=64 * problem.overwrite_offset)
    times = 2**61 // part // (int(cells.size.sum()) + 1)
    large = evolve(cells, size=times * cells.size, overwrite_offset=times * cells.overwrite_offset)
    for strategy in "exact", "best":
        plan = solve(large, strategy, nodes=NO_LIMIT)
        assert plan.status is Status.OPTIMAL
        assert plan.arena_bytes == times * solve(cells, strategy, nodes=NO_LIMIT).arena_bytes


def test_chunks_may_be_further_apart_than_2_to_the_60() -> None:
    size = [375548629418130955, 348483288689746244, 141347575334159406, 417975344457789306, 174730553441390314]
    problem = Problem([3, 1, 1, 3, 3], [4, 4, 4, 6, 6], size, [2, 64, 1, 2, 2], [FREE] * 5)
    assert solve(problem, "exact").arena_bytes == sum(size)
