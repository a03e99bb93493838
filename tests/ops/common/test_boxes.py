"""Shapes cut into boxes, lengths cut into pieces."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ops.common.boxes import boxes, longest, pieces

SHAPES = st.lists(st.integers(0, 6), max_size=4).map(tuple)


@given(SHAPES, st.integers(0, 60))
def test_boxes_cover_every_element_once_in_order_and_the_first_is_the_largest(
    shape: tuple[int, ...], most: int
) -> None:
    numbers = np.arange(math.prod(shape)).reshape(shape)
    cut = boxes(shape, most)
    parts = [numbers[b.ranges] for b in cut]
    assert [n for part in parts for n in part.reshape(-1)] == list(range(numbers.size))
    for part, box in zip(parts, cut, strict=True):
        assert list(part.reshape(-1)) == list(range(box.flat.start, box.flat.stop))
    assert all(part.size <= max(most, 1) for part in parts)
    assert len(cut) == len(parts) == sum(1 for _ in cut)
    largest = [b.shape for b in cut.largest]
    assert largest == ([tuple(max(b.shape[axis] for b in cut) for axis in range(len(shape)))] if parts else [])


@given(st.integers(0, 100), st.integers(0, 40))
def test_pieces_cover_a_length_and_the_first_is_the_longest(length: int, most: int) -> None:
    cut = pieces(length, most)
    assert [i for a, b in cut for i in range(a, b)] == list(range(length))
    assert longest(length, most) == max((b - a for a, b in cut), default=0) <= max(most, 1)


def test_boxes_of_a_large_shape_are_made_as_they_are_asked_for() -> None:
    cut = boxes((2**20, 2**20, 4), 8)
    assert len(cut) == 2**39
    assert [b.shape for b in cut.largest] == [(1, 2, 4)]
