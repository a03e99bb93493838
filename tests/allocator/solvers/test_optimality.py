"""Proved bounds and optimal plans, against brute force and a constraint solver that shares no code with ours."""

from functools import cache

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.problem import Plan, Problem
from allocator.solvers import STRATEGIES, solve
from tests.helpers.allocator.brute_force import is_right, minimal_peak
from tests.helpers.allocator.constraint_solver import Optimum, optimum
from tests.helpers.allocator.random_problems import Kind
from tests.helpers.allocator.strategies import problems, random_problem
from tests.helpers.allocator.supported_problems import can_take
from tools.solver_instances import KINDS as DRAWN
from tools.solver_instances import draw

PROVING = tuple(name for name in ("exact",) if name in STRATEGIES)
"""Strategies that prove their optimum on problems as small as these."""
SIZES = ((8, 8), (12, 6), (15, 4), (20, 4), (25, 3), (30, 3))
"""Chunks, and how long the longest of them lives in ticks: what the constraint solver can do within a second."""
KINDS = {
    "plain": Kind(40, 1, (1,)),
    "aligned": Kind(40, 1, (1, 2, 8)),
    "overwrites": Kind(40, 1, (1, 2, 8), overwrites=25),
    "pins": Kind(40, 1, (1, 2, 8), pins=15, highest=80),
    "overwrites and pins": Kind(40, 1, (1, 2, 8), overwrites=25, pins=15, highest=80),
    "conflicts": Kind(40, 1, (1, 2, 8), is_timeless=True),
    "all at once": Kind(40, 1, (1, 4, 6), overwrites=25, pins=15, highest=80, is_timeless=True),
}
tiny = problems(max_chunks=7, max_size=4, horizon=5, alignments=(1, 2, 4), pins=True, conflicts=True)
quickly = settings(max_examples=30)


@cache
def instances(kind: str, repeats: int, seed: int) -> tuple[tuple[Problem, Optimum], ...]:
    rng = np.random.default_rng(seed)
    shapes = [(count, evolve(KINDS[kind], horizon=count // 2, longest=longest)) for count, longest in SIZES]
    drawn = [random_problem(rng, count, shape) for count, shape in shapes for _ in range(repeats)]
    return tuple((problem, optimum(problem, effort=0.3)) for problem in drawn)


@given(tiny)
@quickly
def test_the_constraint_solver_finds_what_brute_force_finds(problem: Problem) -> None:
    best = optimum(problem)
    assert best.lower_bound == best.arena_bytes == minimal_peak(problem)
    assert is_right(problem, best.offset, best.arena_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_lower_bound_is_not_above_the_constraint_solvers_optimum(kind: str) -> None:
    for problem, result in instances(kind, 3, 1):
        assert check(problem, np.array(result.offset), result.arena_bytes) is None
        assert lower_bound(problem) <= result.arena_bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_no_strategy_is_below_the_constraint_solvers_bound(kind: str, name: str) -> None:
    for problem, result in instances(kind, 3, 1):
        if can_take(STRATEGIES[name], problem):
            plan = solve(problem, name, nodes=10_000)
            assert plan.arena_bytes >= result.lower_bound
            assert plan.lower_bound <= result.arena_bytes


@pytest.mark.parametrize("name", PROVING)
@given(problem=tiny)
@quickly
def test_an_exact_strategy_finds_and_proves_what_brute_force_finds(name: str, problem: Problem) -> None:
    plan = solve(problem, name)
    assert plan.arena_bytes == plan.lower_bound == minimal_peak(problem)


@pytest.mark.parametrize("name", PROVING)
@given(problem=tiny)
@quickly
def test_an_exact_strategy_decides_for_every_capacity(name: str, problem: Problem) -> None:
    least = minimal_peak(problem)
    assert solve(problem, name, capacity=least).arena_bytes == least
    assert solve(problem, name, capacity=least + 1).arena_bytes <= least + 1
    if least:
        assert solve(problem, name, capacity=least - 1).status == "infeasible"


def _compare(name: str, kind: str, repeats: int, seed: int) -> None:
    for problem, result in instances(kind, repeats, seed):
        is_proved = result.lower_bound == result.arena_bytes
        plan = solve(problem, name, nodes=1_000_000 if is_proved else 10_000)
        assert result.lower_bound <= plan.arena_bytes
        assert plan.lower_bound <= result.arena_bytes
        assert (plan.arena_bytes, plan.status) == (result.arena_bytes, "optimal") or not is_proved


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROVING)
def test_an_exact_strategy_finds_the_constraint_solvers_optimum(name: str, kind: str) -> None:
    _compare(name, kind, 3, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROVING)
def test_an_exact_strategy_finds_the_constraint_solvers_optimum_often(name: str, kind: str, seed: int) -> None:
    _compare(name, kind, 6, seed)


def _not_contradicted(kind: str, buffers: int, seed: int) -> tuple[Optimum, Plan]:
    """Returns both results, of which none has a plan below the other's bound."""
    problem = draw(kind, buffers, seed)
    result, plan = optimum(problem, effort=0.3), solve(problem, nodes=100_000)
    assert result.lower_bound <= plan.arena_bytes
    assert plan.lower_bound <= result.arena_bytes
    return result, plan


def _agree(kind: str, buffers: int, seed: int) -> None:
    result, plan = _not_contradicted(kind, buffers, seed)
    if result.lower_bound == result.arena_bytes:
        assert (plan.arena_bytes, plan.status) == (result.arena_bytes, "optimal")


@pytest.mark.parametrize("kind", DRAWN)
def test_the_constraint_solver_agrees_on_small_instances_of_every_kind(kind: str) -> None:
    for seed in range(3):
        _agree(kind, 20, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWN)
def test_the_constraint_solver_agrees_on_small_instances_of_every_kind_often(kind: str) -> None:
    for seed in range(3, 5):
        for buffers in (20, 24, 30):
            _agree(kind, buffers, seed)


@pytest.mark.slow
@pytest.mark.parametrize("buffers", (40, 80))
@pytest.mark.parametrize("kind", DRAWN)
def test_no_proof_contradicts_the_constraint_solver_on_larger_instances(kind: str, buffers: int) -> None:
    for seed in [8]:
        _not_contradicted(kind, buffers, seed)
