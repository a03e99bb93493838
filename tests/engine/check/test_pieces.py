"""Pieces of bytes, cut to ranges: against bytes counted one by one."""

from itertools import pairwise, product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.check.pieces import Pieces, Runs, cut, meet, runs_of, united, written
from ops.tensor.layout import Layout

_ENDS = st.sets(st.integers(-2, 34), max_size=16)


@st.composite
def runs(draw: st.DrawFn) -> Runs:
    """Draws sorted runs, with and without holes between them."""
    drawn = [run for run in pairwise(sorted(draw(_ENDS))) if draw(st.booleans())]
    return np.array(drawn, np.int64).reshape(-1, 2).T


@st.composite
def pieces(draw: st.DrawFn) -> Pieces:
    """Draws runs that values were written to; some follow each other and are of one value."""
    drawn = draw(runs())
    values = draw(st.lists(st.integers(0, 2), min_size=drawn.shape[1], max_size=drawn.shape[1]))
    return np.vstack((drawn, np.array(values, np.int64)))


def _bytes(some: Pieces) -> dict[int, int]:
    return {byte: value for low, high, value in some.T.tolist() for byte in range(low, high)}


def _set(some: Runs) -> set[int]:
    return set(_bytes(written(some, 0)))


@given(pieces(), runs())
def test_cut_pieces_have_the_bytes_of_the_runs_and_no_others(whole: Pieces, some: Runs) -> None:
    before, selected = whole.copy(), cut(whole, some)
    assert (whole == before).all()
    assert _bytes(selected) == {byte: value for byte, value in _bytes(whole).items() if byte in _set(some)}
    rows = selected.T.tolist()
    assert rows == sorted(rows) and all(low < high for low, high, _ in rows)
    assert all(any(a <= low and high <= b for a, b in some.T.tolist()) for low, high, _ in rows)


@given(pieces())
def test_united_pieces_have_the_same_bytes_and_no_seam_within_a_value(whole: Pieces) -> None:
    whole_again = united(whole)
    rows = whole_again.T.tolist()
    assert _bytes(whole_again) == _bytes(whole)
    assert all(b < c or one != other for (_, b, one), (c, _, other) in pairwise(rows))


@given(runs(), runs())
def test_runs_meet_where_they_have_a_byte_in_common(some: Runs, others: Runs) -> None:
    assert meet(some, others) == meet(others, some) == bool(_set(some) & _set(others))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=3), st.integers(1, 4))
def test_runs_have_the_bytes_of_all_elements(axes: list[tuple[int, int]], itemsize: int) -> None:
    layout = Layout(50, tuple(n for n, _ in axes), tuple(step for _, step in axes), itemsize)
    moving = [(n if step else min(n, 1), step) for n, step in axes]  # what is repeated is one element
    firsts = [50 + sum(at) for at in product(*([i * step for i in range(n)] for n, step in moving))]
    elements = [set(range(first, first + itemsize)) for first in firsts]
    rows = runs_of(layout).T.tolist()
    assert rows == sorted(rows) and all(b <= c for (_, b), (c, _) in pairwise(rows))
    touched = set().union(*elements)
    if sum(map(len, elements)) == len(touched):
        assert _set(runs_of(layout)) == touched
    else:
        assert _set(runs_of(layout)) == set(range(*layout.extent))
