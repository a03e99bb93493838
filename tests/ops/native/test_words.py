"""Words of a call that point into spans of bytes count from their origins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ops.native.runners import locate

NUMBERS = st.integers(-5, 60)
SPANS = st.tuples(NUMBERS, NUMBERS, NUMBERS)


@given(st.lists(NUMBERS, max_size=12), st.lists(SPANS, max_size=4))
def test_a_word_counts_from_the_origin_of_the_first_span_that_has_it(
    words: list[int], spans: list[tuple[int, ...]]
) -> None:
    moved, pointee = np.array(words, np.int64), np.zeros(len(words), np.int64)
    locate(moved, np.array(spans, np.int64).reshape(len(spans), 3), pointee)
    for word, relative, row in zip(words, moved.tolist(), pointee.tolist(), strict=True):
        has = [i for i, (low, high, _) in enumerate(spans) if low <= word < high]
        assert row == (has[0] if has else -1)
        assert relative == word - (spans[row][2] if has else 0)
