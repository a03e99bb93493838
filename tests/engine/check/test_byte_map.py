"""Runs of bytes against a list of bytes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.check.byte_map import ByteMap

_SIZE = 12
_spans = st.tuples(st.integers(0, _SIZE), st.integers(0, _SIZE), st.integers(0, 3))


@given(st.lists(_spans, max_size=12))
def test_byte_map_equals_a_list_of_bytes(spans: list[tuple[int, int, int]]) -> None:
    held, wanted = ByteMap(-1), [-1] * _SIZE
    for low, high, value in spans:
        pieces = held.pieces(low, high)
        assert [v for a, b, v in pieces for _ in range(a, b)] == wanted[low:high]
        assert [a for a, _, _ in pieces[1:]] == [b for _, b, _ in pieces[:-1]] and all(a < b for a, b, _ in pieces)
        assert [held.at(byte) for byte in range(_SIZE)] == wanted
        others = [(i, wanted[i]) for i in range(low, high) if wanted[i] != value]
        assert held.stranger(low, high, value) == (others[0] if others else ())
        held.write(low, high, value)
        wanted[low:high] = [value] * max(high - low, 0) or wanted[low:high]
    assert [v for a, b, v in held.pieces(0, _SIZE) for _ in range(a, b)] == wanted


@given(st.lists(_spans, max_size=12), st.sets(st.integers(0, _SIZE)), st.integers(0, 1))
def test_byte_map_walks_runs_as_bytes_one_by_one(spans: list[tuple[int, int, int]], ends: set[int], every: int) -> None:
    held = ByteMap(-1)
    for low, high, value in spans:
        held.write(low, high, value)
    runs = list(pairwise(sorted(ends)))[:: 1 + every]
    assert held.pieces_in(runs) == [piece for low, high in runs for piece in held.pieces(low, high)]
