"""Bounds by prices of chunks: never above a stack, and close to the lowest one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.bounds import lower_bound
from allocator.cliques import prices
from allocator.cliques.low_stacks import quick_top
from allocator.cliques.prices import PriceSearch
from allocator.problem import FREE, Problem, Status
from allocator.solvers import solve

MANY_LOOKS = 10**9
Chunk = tuple[int, int]
CELLS = (1, 2, 8, 24)
"""Each divides the next one."""


def top_by_prices(chunks: list[Chunk], looks: int = MANY_LOOKS) -> int:
    """Returns the bytes that prices prove of chunks, each a size and an alignment."""
    chunks = sorted(chunks, key=lambda chunk: -chunk[1])
    size, alignment = np.array(chunks).T
    cells = np.unique(alignment[alignment > 1])[::-1]
    return PriceSearch(looks).top(size, alignment, cells, 0)


def top_of_quick_stack(chunks: list[Chunk]) -> int:
    """Returns the top of the stack that is found first; the widest chunks come first."""
    size, alignment = np.array(chunks).T
    top, _ = quick_top(size, alignment, MANY_LOOKS)
    assert top is not None
    return top


def lowest_top(chunks: list[Chunk]) -> int:
    """Returns the top of the lowest of all stacks (sets of chunks: Held and Karp 1962)."""
    top = {frozenset[int](): 0}
    for count in range(len(chunks)):
        for taken in [taken for taken in top if len(taken) == count]:
            for k in set(range(len(chunks))) - taken:
                size, alignment = chunks[k]
                end = -(-top[taken] // alignment) * alignment + size
                more = taken | {k}
                top[more] = min(top.get(more, end), end)
    return top[frozenset(range(len(chunks)))]


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from(CELLS)), min_size=2, max_size=6))
def test_no_stack_is_lower_than_prices_prove(chunks: list[Chunk]) -> None:
    if len({alignment for _, alignment in chunks}) > 1:
        assert sum(size for size, _ in chunks) <= top_by_prices(chunks) <= lowest_top(chunks)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_no_stack_of_more_chunks_is_lower_than_prices_prove(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = int(draw.integers(7, 11))
    size, alignment = draw.integers(1, 2_000, count), draw.choice((1, 4, 16, 64, 256), count)
    chunks = list(zip(size.tolist(), alignment.tolist(), strict=True))
    assert top_by_prices(chunks) <= lowest_top(chunks)


def test_prices_know_that_chunks_do_not_fit_together() -> None:
    """No two of the loose chunks fit into one hole of 30 bytes."""
    chunks = [(34, 64)] * 8 + [(20, 1)] * 16
    filled = sum(size for size, _ in chunks)
    assert filled < top_by_prices(chunks) <= top_of_quick_stack(chunks)


def test_prices_prove_plans_of_many_chunks() -> None:
    """The peak has 40 chunks of three alignments; no search of all their orders ends in so few nodes."""
    draw = np.random.default_rng(1)
    size, alignment = draw.integers(1, 5000, 40), draw.choice((1, 16, 64), 40)
    plan = solve(Problem([0] * 40, [1] * 40, size, alignment, [FREE] * 40))
    assert (plan.status, plan.arena_bytes) == (Status.OPTIMAL, 98725)
    assert plan.bound.reason == "all orders of 40 chunks that are alive at once"


def test_looks_limit_the_work() -> None:
    chunks = [(34, 64)] * 8 + [(20, 1)] * 16
    size, alignment = np.array(chunks).T
    for looks in (20_000, 100, 0, -7):
        none = PriceSearch(looks)
        assert (none.top(size, alignment, np.array([64]), 5), none.looks) == (5, looks)
    some = PriceSearch(10**6)
    some.top(size, alignment, np.array([64]), 0)
    assert 0 < some.looks < 10**6


def test_cells_that_are_too_wide_or_have_too_many_chunks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks = [(34, 64)] * 8 + [(20, 1)] * 16
    size = sum(size for size, _ in chunks)
    for limit in ("_MOST_CELL", "_MOST_COST"):
        with monkeypatch.context() as patch:
            patch.setattr(prices, limit, 63)
            assert top_by_prices(chunks) == 0
    assert top_by_prices(chunks) > size


@given(st.lists(st.tuples(st.integers(1, 2**50), st.sampled_from((1, 2**16, 2**20, 2**60))), min_size=1, max_size=5))
def test_quick_tops_are_not_below_the_lowest_stack(chunks: list[Chunk]) -> None:
    chunks = sorted([*chunks, (3, 2**16)], key=lambda chunk: -chunk[1])
    assert top_of_quick_stack(chunks) >= lowest_top(chunks)


@given(st.lists(st.tuples(st.integers(1, 60), st.sampled_from(CELLS)), min_size=1, max_size=3))
def test_quick_tops_of_few_chunks_are_those_of_the_lowest_stack(chunks: list[Chunk]) -> None:
    """The search keeps as many stacks as there are sets of three of four chunks, and more."""
    chunks = sorted([*chunks, (5, 24)], key=lambda chunk: -chunk[1])
    assert top_of_quick_stack(chunks) == lowest_top(chunks)


def test_chunks_of_very_wide_alignment_are_not_stacked_quickly() -> None:
    size, alignment = np.array([5, 7, 9]), np.array([2**40, 2**40, 1])
    assert quick_top(size, alignment, 10**6) == (2**41 + 22, 10**6)


@pytest.mark.parametrize("alignments", [(1, 64), tuple(2**k for k in range(12))])
def test_changes_of_prices_and_quick_stacks_are_counted_as_looks(alignments: tuple[int, ...]) -> None:
    draw = np.random.default_rng(0)
    size, alignment = draw.integers(1, 5_000, 100), np.sort(draw.choice(alignments, 100))[::-1]
    search, cells = PriceSearch(16_000_000), np.array(alignments[:0:-1])
    assert search.top(size, alignment, cells, 0) >= size.sum()
    assert 0 < search.looks < 16_000_000


def test_bounds_of_many_chunks_of_wide_alignments_end() -> None:
    """Stacks are sorted by numbers of more than 55 bits, of which many have the same highest ones."""
    draw, count = np.random.default_rng(0), 300
    size, alignment = draw.integers(1, 2**21, count), draw.choice([1, *(2**k for k in range(17, 22))], count)
    assert lower_bound(Problem([0] * count, [1] * count, size, alignment, [FREE] * count)) >= size.sum()


@pytest.mark.parametrize("widest", [2**58, 2**59, 2**60])
def test_alignments_whose_multiples_have_more_than_64_bits_are_stacked(widest: int) -> None:
    size, alignment = [10, 20] * 8, [widest] * 2 + [1] * 14
    plan = solve(Problem([0] * 16, [1] * 16, size, alignment, [FREE] * 16))
    assert (plan.status, plan.arena_bytes) == (Status.OPTIMAL, widest + 10)
