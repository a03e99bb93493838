"""Routes of units through memories: the cheapest of one unit by brute force, never worse than where they begin."""

from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from allocator.memories.assign import assign
from allocator.memories.changes import IN_TURN, STAYS
from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem
from allocator.memories.routes import Visits, find_routes
from allocator.memories.units import Units
from allocator.problem import FREE, Column, Problem
from tests.helpers.allocator.random_memories import random_memory_problem

MEMORIES = (
    Memory("fast", 12, 8.0, 8.0, alignment=1),
    Memory("middle", 24, 4.0, 2.0, 1.0, alignment=1),
    Memory("slow", 64, 1.0, 0.5, 4.0, alignment=1),
)

DROPPED = Memory("nowhere", 1, 1.0, 1.0)


def drawn_visits(units: Units, rng: np.random.Generator) -> Visits:
    """Draws the ticks of visits, with others between, and what can be copied there."""
    rows = []
    for unit, (begin, end) in enumerate(zip(units.begin.tolist(), units.end.tolist(), strict=True)):
        ticks = [tick for tick in range(begin, end, 2) if tick == begin or rng.random() < 0.5]
        for tick in ticks:
            nbytes = [STAYS if tick == ticks[-1] or rng.random() < 0.2 else int(rng.integers(1, 5)) for _ in range(2)]
            rows.append((unit, tick, *rng.integers(0, 9, 2).tolist(), 1, *nbytes))
    return Visits(*zip(*rows, strict=True))


def problem_of(visits: Visits, chunks: Problem, memories: tuple[Memory, ...]) -> MemoryProblem:
    """Returns the problem in which calls move what the visits say, of chunks without overwrites."""

    def total(weight: Column) -> Column:
        return np.bincount(visits.unit, weight, len(chunks)).astype(np.int64)

    return MemoryProblem(chunks, memories, total(visits.read), total(visits.written), total(visits.calls))


def cheapest(visits: Visits, memories: tuple[Memory, ...]) -> float:
    """Tries all memories at each visit of one unit and between each two of them, and returns the least seconds.

    Between visits, the unit may be dropped where it can be computed again.
    """
    count, best = len(visits.tick), np.inf
    between = [(*memories, DROPPED) if k in visits.again else memories for k in range(count - 1)]
    for route in product(memories, *(places for pair in between for places in (pair, memories))):
        seconds = 0.0
        for i, here in enumerate(route[::2]):
            seconds += visits.read[i] / here.read_bandwidth + visits.written[i] / here.write_bandwidth
            seconds += visits.calls[i] * here.latency
        for k, (one, other) in enumerate(pairwise(route)):
            if DROPPED in (one, other):
                seconds += visits.again[k // 2][memories.index(other)] if one is DROPPED else 0.0
                continue
            nbytes = int((visits.coming if k % 2 else visits.leaving)[k // 2])
            if one is not other:
                moved = nbytes / one.read_bandwidth + one.latency + nbytes / other.write_bandwidth + other.latency
                seconds += np.inf if nbytes == STAYS else moved
        best = min(best, seconds)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_route_of_a_unit_that_is_alone_is_the_cheapest_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunks = Problem([0], [8], [8], [1], [FREE])
    alone = Units.of(MemoryProblem(chunks, MEMORIES, [8], [8], [2]))
    visits = drawn_visits(alone, rng)
    units = Units.of(problem_of(visits, chunks, MEMORIES))
    routes = find_routes(units, np.array([2]), visits)
    assert routes.seconds == pytest.approx(cheapest(visits, MEMORIES))


@pytest.mark.parametrize("seed", range(6))
def test_a_unit_that_can_be_computed_again_is_dropped_where_that_costs_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunks = Problem([0], [8], [8], [1], [FREE])
    visits = drawn_visits(Units.of(MemoryProblem(chunks, MEMORIES, [8], [8], [2])), rng)
    rows = np.flatnonzero((visits.leaving != STAYS) & (visits.coming != STAYS)).tolist()
    visits = evolve(visits, again={row: tuple(rng.integers(0, 3, 3).astype(float).tolist()) for row in rows})
    units = Units.of(problem_of(visits, chunks, MEMORIES))
    routes = find_routes(units, np.array([2]), visits)
    assert routes.seconds == pytest.approx(cheapest(visits, MEMORIES))
    again = [change for change in routes.changes if change.is_again]
    assert all(change.visit in rows and change.after == visits.tick[change.visit + 1] - 1 for change in again)


def test_what_is_dropped_leaves_its_bytes_to_others() -> None:
    chunks = Problem([0, 2], [8, 6], [8, 8], [1, 1], [FREE] * 2)
    columns = [[0, 0, 1, 1], [0, 6, 2, 5], [0, 8, 0, 80], [8, 0, 8, 0], [1] * 4, [STAYS] * 4, [STAYS] * 4]
    stays = Visits(*columns)
    units = Units.of(problem_of(stays, chunks, MEMORIES[::2]))
    free = evolve(stays, leaving=[8, STAYS, STAYS, STAYS], coming=[8, STAYS, STAYS, STAYS], again={0: (1.0, 9.0)})
    routes = find_routes(units, np.array([1, 0]), free)
    assert [(change.visit, change.after, change.is_again) for change in routes.changes] == [(0, 5, True)]
    assert routes.seconds == pytest.approx(2 + 1 + 1 + 10)


def cheapest_of_a_constant(visits: Visits, memories: tuple[Memory, ...], size: int, nbytes: int) -> float:
    """Tries all memories at each visit of a unit of that size, which stays in one, where copies can be made before."""
    best = np.inf
    for home, route in product(memories, product(memories, repeat=len(visits.tick))):
        seconds, last = 0.0, home
        for i, here in enumerate(route):
            seconds += visits.read[i] / here.read_bandwidth + visits.calls[i] * here.latency
            if size > home.capacity or (here is not home and (not i or not here.writable)):
                seconds = np.inf
            elif here is not home and here is not last:
                seconds += nbytes / home.read_bandwidth + home.latency + nbytes / here.write_bandwidth + here.latency
            last = here
        best = min(best, seconds)
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_route_of_a_constant_that_is_alone_is_the_cheapest_of_all(seed: int) -> None:
    rng, nbytes = np.random.default_rng(seed), 8
    size, ticks = (16, 8)[seed % 2], [0, *sorted(rng.choice(range(1, 16), 5, replace=False).tolist()), 17]
    count, copies = len(ticks), [*[nbytes] * (len(ticks) - 1), STAYS]
    read = [0, *rng.integers(1, 40, count - 2).tolist(), 0]
    calls = [0, *[1] * (count - 2), 0]
    visits = Visits([0] * count, ticks, read, [0] * count, calls, copies, copies, staying=frozenset({0}))
    memories = (*MEMORIES[:2], Memory("flash", 64, 1.0, 0.5, 4.0, alignment=1, writable=False))
    units = Units.of(problem_of(visits, Problem([0], [18], [size], [1], [FREE]), memories))
    routes = find_routes(units, np.array([2]), visits)
    assert routes.seconds == pytest.approx(cheapest_of_a_constant(visits, memories, size, nbytes))


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_routes_take_no_longer_than_the_assignment_and_are_the_same_each_time(seed: int) -> None:
    rng, drawn = np.random.default_rng(seed), random_memory_problem(seed, 20, 3)
    plan = assign(drawn, nodes=100)
    if not plan.has_plan:
        return
    units = Units.of(drawn)
    visits = drawn_visits(units, rng)
    routes = [find_routes(units, plan.memory, visits, seed=seed, rounds=rounds) for rounds in (0, 50, 50)]
    assert routes[1].seconds <= routes[0].seconds + 1e-9
    assert routes[1].changes == routes[2].changes
    for change in routes[1].changes:
        early = change.after == visits.tick[change.visit]
        assert early or change.after == visits.tick[change.visit + 1] - 1
        assert max(visits.leaving[change.visit] if early else STAYS, visits.coming[change.visit]) != STAYS
        assert change.until == IN_TURN


def test_units_with_thousands_of_visits_have_fewer_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = list[int]()

    class Counted(Random):
        def sample(self, population: Any, k: int, **options: Any) -> list[Any]:
            rounds.append(k)
            return super().sample(population, k, **options)

    monkeypatch.setattr("allocator.memories.routes.Random", Counted)
    count, most = 1500, 20
    chunks = Problem([0, 0], [2 * count] * 2, [8, 8], [1, 1], [FREE] * 2)
    unit, tick, read = np.repeat([0, 1], count), np.arange(2 * count), np.full(2 * count, 8)
    size = np.where(np.arange(2 * count) % count == count - 1, STAYS, 8)
    visits = Visits(unit, 2 * (tick % count) + unit, read, 0 * read, 0 * read, size, size)
    units = Units.of(problem_of(visits, chunks, MEMORIES))
    find_routes(units, np.array([1, 2]), visits, rounds=most)
    assert 0 < len(rounds) <= most * 1000 // (2 * count) + 1
