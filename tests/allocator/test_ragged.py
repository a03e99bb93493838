"""Lists of numbers in two columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from allocator.ragged import RaggedArray


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5))))
def test_a_number_stands_in_each_row_of_its_range(ranges: list[tuple[int, int]]) -> None:
    first = np.array([begin for begin, _ in ranges], np.int64)
    last = first + np.array([count for _, count in ranges], np.int64) - 1
    rows = RaggedArray.of_ranges(first, last).lists()
    assert len(rows) == last.max(initial=-1) + 1
    for row, numbers in enumerate(rows):
        assert numbers == [k for k in range(len(ranges)) if first[k] <= row <= last[k]]
