"""Pieces of bytes, cut to ranges: against bytes counted one by one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.check.pieces import Piece, cut, cut_all


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """Draws sorted pieces, with and without holes between them."""
    ends = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
    result = [(a, b, name) for name, (a, b) in enumerate(pairwise(ends))]
    return [piece for piece in result if draw(st.booleans())]


def _bytes(pieces: list[Piece]) -> dict[int, int]:
    return {byte: name for low, high, name in pieces for byte in range(low, high)}


@given(pieces(), st.integers(-2, 32), st.integers(1, 34))
def test_a_cut_piece_has_the_bytes_of_its_range_and_no_others(whole: list[Piece], low: int, length: int) -> None:
    before, result = list(whole), cut(whole, low, low + length)
    assert whole == before
    assert _bytes(result) == {b: n for b, n in _bytes(whole).items() if low <= b < low + length}
    assert result == sorted(result) and all(a < b for a, b, _ in result)


@given(pieces(), st.sets(st.integers(-2, 34)), st.integers(0, 1))
def test_cut_all_cuts_runs_one_after_the_other(whole: list[Piece], ends: set[int], every: int) -> None:
    runs = list(pairwise(sorted(ends)))[:: 1 + every]
    selected = cut_all(whole, runs)
    assert selected == [piece for low, high in runs for piece in cut(whole, low, high)]
    assert _bytes(selected) == {b: n for b, n in _bytes(whole).items() if any(low <= b < high for low, high in runs)}
