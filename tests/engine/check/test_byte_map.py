"""Runs of bytes against a list of bytes."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.check.byte_map import ByteMap
from engine.check.pieces import Runs

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


@st.composite
def _runs(draw: st.DrawFn) -> Runs:
    ends = sorted(draw(st.sets(st.integers(0, _SIZE))))
    drawn = [run for run in pairwise(ends) if draw(st.booleans())]
    return np.array(drawn, np.int64).reshape(-1, 2).T


@given(st.lists(st.tuples(_runs(), st.integers(0, 3)), max_size=6), _runs())
def test_runs_are_written_and_read_together_as_one_by_one(writes: list[tuple[Runs, int]], read: Runs) -> None:
    together, one_by_one = ByteMap(-1), ByteMap(-1)
    for runs, value in writes:
        together.write_all(runs, value)
        for low, high in runs.T.tolist():
            one_by_one.write(low, high, value)
        assert (together.starts, together.holds) == (one_by_one.starts, one_by_one.holds)
    wanted = [list(piece) for low, high in read.T.tolist() for piece in together.pieces(low, high)]
    assert together.pieces_in(read).T.tolist() == wanted
