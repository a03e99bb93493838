"""Partitions are as good as the best of all, tried one by one; what is claimed of others is true."""

import itertools
import math

import numpy as np
import pytest
from attrs import evolve

from allocator.cuts.bound import heaviest_path, lower_bound
from allocator.cuts.judge import Verdict, verdict
from allocator.cuts.problem import OBJECTIVES, OUTSIDE, CutProblem, Reads
from allocator.cuts.solve import solve
from allocator.cuts.worth import objective_of
from allocator.problem import column
from tests.helpers.allocator.partitions import best_by_trying, measure_of, random_problem

SIZES = [(operators, parts) for parts in (1, 2, 3) for operators in (3, 5, 7)] + [(8, 2), (10, 2), (6, 4)]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("operators", "parts"), SIZES)
def test_partitions_are_the_best_of_all(operators: int, parts: int, objective: str) -> None:
    for seed in range(8):
        problem = random_problem(seed, operators, parts, objective)
        solution, best = solve(problem, problem.least, measure_of(problem)), best_by_trying(problem)
        assert min((cut.objective for cut in solution.cuts), default=math.inf) == pytest.approx(best)
        assert solution.bound == pytest.approx(best)
        assert not solution.cuts or solution.is_optimal


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("operators", "parts"), [(14, 2), (11, 3)])
def test_partitions_of_more_operators_are_the_best_of_all(operators: int, parts: int, objective: str) -> None:
    for seed in range(3):
        problem = random_problem(seed, operators, parts, objective)
        solution, best = solve(problem, problem.least, measure_of(problem)), best_by_trying(problem)
        assert min((cut.objective for cut in solution.cuts), default=math.inf) == pytest.approx(best)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_a_search_that_ended_early_claims_is_true(objective: str) -> None:
    for seed in range(30):
        problem = random_problem(seed, 7, 3, objective)
        best = best_by_trying(problem)
        solution = solve(problem, problem.least, measure_of(problem), nodes=20)
        assert solution.bound <= best * (1 + 1e-9)
        for cut in solution.cuts:
            assert cut.objective >= best - 1e-9
            assert cut.objective == pytest.approx(objective_of(problem, cut.part_of))
            assert verdict(problem, cut.part_of, measure_of(problem)) is Verdict.FITS


def test_plans_that_are_larger_than_proved_leave_a_gap() -> None:
    gaps = 0
    for seed in range(30):
        problem = random_problem(seed, 6, 3, "traffic")
        best = best_by_trying(problem)
        solution = solve(problem, problem.least, measure_of(problem, slack=8))
        assert solution.bound <= best
        gaps += bool(solution.cuts) and not solution.is_optimal
    assert gaps


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_bound_of_a_path_is_below_all_partitions(objective: str) -> None:
    for seed in range(30):
        problem = random_problem(seed, 7, 3, objective)
        assert lower_bound(problem) <= best_by_trying(problem) + 1e-9


def test_a_path_reads_what_it_computes() -> None:
    problem = random_problem(3, 12, 2, "traffic")
    path, rows = heaviest_path(problem), problem.values.rows(12)
    assert all(before in {maker for _, maker, _ in rows[i]} for before, i in itertools.pairwise(path))


def _chain(operators: int, weight: int, capacities: tuple[int, ...], sizes: list[int]) -> CutProblem:
    return CutProblem(
        seconds=[1.0] * operators,
        values=Reads.of([(i + 1, i) for i in range(operators - 1)], list(range(operators)), sizes),
        weights=Reads.of([(i, i) for i in range(operators)], [OUTSIDE] * operators, [weight] * operators),
        least=column([1] * operators),
        capacities=capacities,
    )


def test_a_chain_is_cut_where_little_is_sent_and_without_a_search() -> None:
    problem = _chain(6, 10, (41, 41), [5, 9, 2, 7, 9, 9])
    solution = solve(problem, problem.least, measure_of(evolve(problem, least=np.zeros(6, np.int64))), nodes=0)
    assert solution.cuts[0].part_of == (0, 0, 0, 1, 1, 1)
    assert solution.is_optimal and solution.bound == 2


def test_what_cannot_fit_has_an_infinite_bound() -> None:
    problem = _chain(6, 10, (20, 20), [1] * 6)
    solution = solve(problem, problem.least, measure_of(problem))
    assert not solution.cuts and math.isinf(solution.bound)
