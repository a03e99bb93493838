"""Softmax of rows, and of columns side by side. Imports numba: `ops.native.door` loads it, on first use.

Words: what `ops.vector.rows.Rows` says of arrays x and y; whether the logarithm is wanted; length of the axis; and for
columns the bytes along it, of x and of y, and how many columns are neighbours.
"""

import math
from typing import Any

import numpy as np

from ops.native.words import floats, jitable, longs, share, word
from ops.vector.opcode_code import stack
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
    rows_log_shift,
)
from ops.vector.rows_code import header_words, place

_WIDE = 256
"""Columns that are worked on at a time."""
_FEW, _CACHED = 16, 2048
"""Most rows that go through a pass together, and most elements of them, so that they stay in the nearest cache."""
_columns = stack(2 * 4 * _WIDE)


@jitable
def _power(x: int, y: int, count: int, is_log: int, top: Any) -> Any:
    """The sum of a row's powers, which are written unless the logarithm is wanted."""
    total = 0.0
    for first in range(0, count, CHUNK):
        few = min(CHUNK, count - first)
        if is_log != 0:
            total += row_sum_exp(x + 4 * first, few, top)
        else:
            total += row_exp(x + 4 * first, y + 4 * first, few, top)
    return np.float32(math.log(total) if is_log != 0 else 1 / total)


@jitable
def _rows(words: int, more: int, first: int, few: int, room: int) -> None:
    """Some rows: each pass over all of them, so that none waits for what a row folds to."""
    is_log, count = word(more, 0), word(more, 1)
    tops, ends = floats(room, _FEW), floats(room + 4 * _FEW, _FEW)
    if count <= _CACHED // _FEW:
        addresses = longs(room + 8 * _FEW, _FEW)
        for i in range(_FEW):
            addresses[i] = place(words, 0, first + min(i, few - 1))
        largest_16(room + 8 * _FEW, count, room)
    else:
        for i in range(few):
            tops[i] = row_largest(place(words, 0, first + i), count, np.float32(0))
    for i in range(few):
        ends[i] = _power(place(words, 0, first + i), place(words, 1, first + i), count, is_log, tops[i])
    for i in range(few):
        y = place(words, 1, first + i)
        if is_log != 0:
            row_minus_both(y, count, place(words, 0, first + i), tops[i], ends[i])
        else:
            row_times(y, count, y, ends[i])


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
