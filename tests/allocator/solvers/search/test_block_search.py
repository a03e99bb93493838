"""Searches that move blocks of chunks, alone and in the portfolio."""

import pytest

from allocator.bounds import lower_bound
from allocator.check.offsets import check
from allocator.problem import FREE, Problem
from allocator.progress import Activity
from allocator.solvers import solve
from allocator.solvers.base import Answer, SolverOptions, arena_bytes
from allocator.solvers.exact import EXACT
from allocator.solvers.naive import NAIVE
from allocator.solvers.search.blocks import Blocks, BlockSearch
from allocator.solvers.search.budget import Budget
from allocator.solvers.search.steps import answer_of
from tools.solver_instances import HEIGHT, draw

OPTIONS = SolverOptions(nodes=20_000)


def searched(problem: Problem, blocks: Blocks) -> Answer:
    """Returns what branch and bound finds for blocks."""
    search, options = BlockSearch(EXACT, blocks, NAIVE.solve(blocks.problem, OPTIONS).offset), OPTIONS
    budget = Budget.of(options, 0).at(1, is_restricted=True)
    return answer_of(search.search(problem, NAIVE.solve(problem, options).offset, options, budget))


def test_what_is_proved_for_blocks_is_no_bound() -> None:
    """The block has a hole of four bytes, which no plan of blocks can do without."""
    problem = Problem([0, 0], [2, 2], [1, 1], [1, 1], [FREE, FREE])
    blocks = Blocks(problem, [0, 1], [0, 0], [0, 5], Problem([0], [2], [6], [1], [FREE]))
    with Activity("placing", bound=2) as seen:
        answer = searched(problem, blocks)
    assert answer.offset.tolist() == [0, 5]
    assert (answer.lower_bound, seen.bound) == (0, 2)


@pytest.mark.slow
def test_it_goes_on_from_plans_that_keep_the_blocks_and_from_no_others() -> None:
    problem = draw("cut_rectangles", 2_000, 2)
    blocks = Blocks.of(problem)
    assert 1 < len(blocks.problem) < 200
    good, naive = searched(problem, blocks).offset, NAIVE.solve(problem, OPTIONS).offset
    start = NAIVE.solve(blocks.problem, OPTIONS).offset
    search = BlockSearch(EXACT, blocks, start).search(problem, good, OPTIONS, Budget.of(OPTIONS, 0))
    assert search.arena == arena_bytes(problem, good) < arena_bytes(blocks.problem, start)
    search.take(naive)
    assert search.offsets().tolist() == good.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_best_moves_blocks_of_pieces_that_fit_together(seed: int) -> None:
    problem = draw("cut_rectangles", 3_000, seed)
    few, more, same = (solve(problem, nodes=nodes) for nodes in (20_000, 100_000, 100_000))
    assert more.offset.tolist() == same.offset.tolist()
    assert HEIGHT == lower_bound(problem) <= more.arena_bytes <= few.arena_bytes
    assert more.arena_bytes <= 1.05 * HEIGHT
    assert check(problem, more.offset, more.arena_bytes) is None
