"""Softmax of rows, and of columns side by side. Imports numba: `ops.native.door` loads it, on first use.

Words: what `ops.vector.rows.Rows` says of arrays x and y; whether the logarithm is wanted; length of the axis; and for
columns the bytes along it, of x and of y, and how many columns are neighbours.
"""

from typing import Any

import numpy as np

from ops.native.intrinsics import stack
from ops.native.memory import floats, jitable, longs, share, word
from ops.vector.row_code import (
    CHUNK,
    largest_16,
    row_exp,
    row_fill,
    row_largest,
    row_minus_both,
    row_sum_exp,
    row_times,
    rows_add,
    rows_add_exp,
    rows_div,
    rows_exp,
    rows_largest,
    rows_log,
    rows_log_shift,
    sum_16,
)
from ops.vector.rows_code import header_words, place

_WIDE = 256
"""Columns that are worked on at a time."""
_FEW, _CACHED = 16, 2048
"""Most rows that go through a pass together, and most elements of them, so that they stay in the nearest cache."""
_LANES = 4 * _FEW
"""Bytes of 16 sums."""
_columns = stack(2 * 4 * _WIDE)


@jitable
def _tops(addresses: int, few: int, count: int, tops: int) -> None:
    """The largest of each row."""
    if count <= _CACHED // _FEW:
        largest_16(addresses, count, tops)
    else:
        for i in range(few):
            floats(tops, few)[i] = row_largest(longs(addresses, few)[i], count, np.float32(0))


@jitable
def _power(x: int, y: int, count: int, is_log: int, top: Any, lanes: int) -> None:  # noqa: PLR0917 - compiled
    """The sums of a row's powers, in 16 lanes; powers are written unless the logarithm is wanted."""
    sums, total = floats(lanes, _FEW), 0.0
    for first in range(0, count, CHUNK):
        few, at = min(CHUNK, count - first), 4 * first
        if is_log != 0:
            row_sum_exp(x + at, x, few, top, lanes)
        else:
            row_exp(x + at, y + at, few, top, lanes)
        if count > CHUNK:  # in float64
            for i in range(_FEW):
                total += sums[i]
    if count > CHUNK:
        row_fill(lanes, _FEW, np.float32(0))
        sums[0] = total


@jitable
def _rows(words: int, more: int, first: int, few: int, room: int) -> None:
    """Some rows: each pass over all of them, so that none waits for what a row folds to."""
    is_log, count = word(more, 0), word(more, 1)
    tops, ends, addresses, lanes = room, room + 4 * _FEW, room + 8 * _FEW, room + 16 * _FEW
    places = longs(addresses, _FEW)
    for i in range(_FEW):
        places[i] = place(words, 0, first + min(i, few - 1))
    _tops(addresses, few, count, tops)
    for i in range(few):
        x, y = places[i], place(words, 1, first + i)
        _power(x, y, count, is_log, floats(tops, few)[i], lanes + i * _LANES)
    for i in range(_FEW):
        places[i] = lanes + min(i, few - 1) * _LANES
    sum_16(addresses, _FEW, ends)
    if is_log != 0:
        rows_log(ends, few, ends)
    for i in range(few):
        y, end = place(words, 1, first + i), floats(ends, few)[i]
        if is_log != 0:
            row_minus_both(y, count, place(words, 0, first + i), floats(tops, few)[i], end)
        else:
            row_times(y, count, y, np.float32(1) / end)


def softmax_rows(words: int, part: int, parts: int) -> None:
    """Rows that are neighbours in memory."""
    more, room = words + 8 * header_words(words), _columns()
    few = max(1, min(_FEW, _CACHED // word(more, 1)))
    first, last = share(word(words, 1), part, parts)
    for row in range(first, last, few):
        _rows(words, more, row, min(few, last - row), room)


@jitable
def _block(x: int, y: int, more: int, few: int, room: int) -> None:
    is_log, count, down_x, down_y = word(more, 0), word(more, 1), word(more, 2), word(more, 3)
    top, total = room, room + 4 * _WIDE
    row_fill(top, few, np.float32(-np.inf))
    row_fill(total, few, np.float32(0))
    for i in range(count):
        rows_largest(top, few, top, x + i * down_x)
    for i in range(count):
        if is_log != 0:
            rows_add_exp(total, few, total, x + i * down_x, top)
        else:
            rows_exp(y + i * down_y, few, x + i * down_x, top)
            rows_add(total, few, total, y + i * down_y)
    for i in range(count):
        if is_log != 0:
            rows_log_shift(y + i * down_y, few, x + i * down_x, top, total)
        else:
            rows_div(y + i * down_y, few, y + i * down_y, total)


def softmax_columns(words: int, part: int, parts: int) -> None:
    """Columns that are neighbours, some at a time."""
    more, room = words + 8 * header_words(words), _columns()
    width = word(more, 4)
    across = (width + _WIDE - 1) // _WIDE
    first, last = share(word(words, 1) * across, part, parts)
    for block in range(first, last):
        left = block % across * _WIDE
        x, y = place(words, 0, block // across) + 4 * left, place(words, 1, block // across) + 4 * left
        _block(x, y, more, min(_WIDE, width - left), room)
