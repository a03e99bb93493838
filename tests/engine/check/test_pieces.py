"""Pieces of bytes, cut to ranges: against bytes counted one by one."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.check.pieces import Piece, cut, cut_all


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """Sorted, with and without holes between them."""
    ends = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
    found = [(a, b, name) for name, (a, b) in enumerate(pairwise(ends))]
    return [piece for piece in found if draw(st.booleans())]


def _bytes(found: list[Piece]) -> dict[int, int]:
    return {byte: name for low, high, name in found for byte in range(low, high)}


@given(pieces(), st.integers(-2, 32), st.integers(1, 34))
def test_a_cut_piece_has_the_bytes_of_its_range_and_no_others(given: list[Piece], low: int, length: int) -> None:
    before, found = list(given), cut(given, low, low + length)
    assert given == before
    assert _bytes(found) == {b: n for b, n in _bytes(given).items() if low <= b < low + length}
    assert found == sorted(found) and all(a < b for a, b, _ in found)


@given(pieces(), st.sets(st.integers(-2, 34)), st.integers(0, 1))
def test_cut_all_cuts_runs_one_after_the_other(given: list[Piece], ends: set[int], every: int) -> None:
    runs = list(pairwise(sorted(ends)))[:: 1 + every]
    found = cut_all(given, runs)
    assert found == [piece for low, high in runs for piece in cut(given, low, high)]
    assert _bytes(found) == {b: n for b, n in _bytes(given).items() if any(low <= b < high for low, high in runs)}
