"""Plans around a low stack of what is alive at the peak."""

import numpy as np
import pytest

from allocator.check.offsets import check
from allocator.problem import Problem, Status
from allocator.solvers import solve
from allocator.solvers.base import SolverOptions, arena_bytes
from allocator.solvers.first_fit import FIRST_FIT
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import answer_of
from allocator.solvers.stacked_peak import STACKED_PEAK
from tools.solver_instances import draw


def searched(problem: Problem, nodes: int, seed: int = 0) -> np.ndarray:
    options = SolverOptions(seed, nodes=nodes)
    start = FIRST_FIT.solve(problem, SolverOptions()).offset
    return answer_of(STACKED_PEAK.search(problem, start, options, Budget.of(options, 0))).offset


@pytest.mark.parametrize("seed", range(3))
def test_plans_are_right_and_below_first_fit_and_the_same_each_time(seed: int) -> None:
    problem = draw("mixed_alignment", 60, seed)
    offset = searched(problem, 20_000, seed)
    arena = arena_bytes(problem, offset)
    assert check(problem, offset, arena) is None
    assert arena < arena_bytes(problem, FIRST_FIT.solve(problem, SolverOptions()).offset)
    assert offset.tolist() == searched(problem, 20_000, seed).tolist()


def test_where_order_does_not_matter_the_search_ends_at_once() -> None:
    problem = draw("log_uniform", 60, 0)
    assert searched(problem, 20_000).tolist() == FIRST_FIT.solve(problem, SolverOptions()).offset.tolist()


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_the_order_of_the_peak_brings_plans_of_mixed_alignment_to_their_bound(seed: int) -> None:
    assert solve(draw("mixed_alignment", 60, seed), nodes=100_000).status is Status.OPTIMAL
