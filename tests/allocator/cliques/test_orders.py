import math

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from allocator.bounds import lower_bound, proved_bound
from allocator.cliques.clique import Clique
from allocator.cliques.orders import MOST_LOOKS, StackSearch, looks_within
from allocator.problem import FREE, Problem
from allocator.solvers import solve
from allocator.solvers.base import NO_NODES
from allocator.solvers.first_fit import FIRST_FIT
from tests.helpers.allocator.constraint_solver import optimum
from tests.helpers.allocator.random_cliques import cliques, stacked

WIDTHS = (1, 2, 4, 12, 24)


@st.composite
def plain_cliques(draw: st.DrawFn) -> Clique:
    """Draws cliques in which of two alignments one is a multiple of the other, and nothing lies below or above."""
    clique = draw(cliques(most=6))
    count = len(clique)
    alignment = draw(st.lists(st.sampled_from(WIDTHS), min_size=count, max_size=count))
    size = draw(st.lists(st.integers(1, 60), min_size=count, max_size=count))
    zeros = np.zeros(count)
    return evolve(clique, size=size, alignment=alignment, shift=zeros, head=zeros, tail=zeros)


def alive_at_once(count: int, seed: int, most: int = 2**10) -> Problem:
    draw = np.random.default_rng(seed)
    size = np.exp(draw.uniform(0, np.log(most), count)).astype(np.int64)
    return Problem([0] * count, [1] * count, size, draw.choice((1, 8, 64), count), [FREE] * count)


@pytest.mark.slow
@given(cliques())
def test_the_search_of_orders_is_below_every_stack(clique: Clique) -> None:
    assert StackSearch().bytes_needed(clique, 0) <= stacked(clique)


@pytest.mark.slow
@given(plain_cliques(), st.integers(0, 400))
def test_the_search_of_orders_finds_the_lowest_stack(clique: Clique, proved: int) -> None:
    if len(set(clique.alignment.tolist())) > 1:
        assert StackSearch().bytes_needed(clique, 0) == stacked(clique)
    assert StackSearch().bytes_needed(clique, proved) == max(StackSearch().bytes_needed(clique, 0), proved)


@pytest.mark.slow
@given(plain_cliques(), st.integers(7, 40), st.integers(1, 100))
def test_a_search_of_orders_that_has_too_little_room_or_time_is_still_right(
    clique: Clique, sets: int, looks: int
) -> None:
    assert StackSearch(looks, sets).bytes_needed(clique, 0) <= stacked(clique)
    assert StackSearch(sets=sets).bytes_needed(clique, 0) <= stacked(clique)


def test_looks_follow_the_nodes_and_the_time_of_the_search_behind_them() -> None:
    assert looks_within(NO_NODES, math.inf) == looks_within(NO_NODES, 10**6) > MOST_LOOKS
    assert looks_within(1_000, math.inf) < looks_within(1_001, math.inf) < MOST_LOOKS
    assert looks_within(NO_NODES, 0.5) < looks_within(NO_NODES, 0.6) < MOST_LOOKS
    assert looks_within(10**6, 60.0) > MOST_LOOKS
    assert looks_within(NO_NODES, -1.0) == looks_within(0, math.inf) == 0


def test_a_search_of_few_nodes_proves_what_few_looks_prove() -> None:
    problem = alive_at_once(16, 3, 2**8)
    few, many = (solve(problem, FIRST_FIT.name, nodes=nodes).bound for nodes in (0, NO_NODES))
    assert few == proved_bound(problem, 0) != many == proved_bound(problem)


def test_chunks_that_fit_into_no_hole_count_for_less_among_many() -> None:
    tight, loose = 40, 30
    size, alignment = [1] * tight + [60] * loose, [64] * tight + [8] * loose
    count = tight + loose
    bound = proved_bound(Problem([0] * count, [1] * count, size, alignment, [FREE] * count))
    every_chunk_has_a_cell = 64 * count - 63
    assert 64 * tight - 63 < bound.nbytes <= every_chunk_has_a_cell
    assert bound.reason == "all orders of 70 chunks that are alive at once"


@pytest.mark.parametrize("seed", range(4))
def test_the_constraint_solver_finds_no_stack_below_that_of_all_orders(seed: int) -> None:
    problem = alive_at_once(14, seed)
    assert lower_bound(problem) <= optimum(problem, 0.5).arena_bytes


@pytest.mark.slow
def test_orders_of_many_chunks_prove_plans_that_sizes_do_not() -> None:
    problem = alive_at_once(16, 3, 2**8)
    plan = solve(problem)
    assert plan.status == "optimal"
    assert plan.bound.reason == "all orders of 16 chunks that are alive at once"
