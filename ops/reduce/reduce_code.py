"""Sums and extremes along axes. Imports numba: `ops.native.door` loads it, on first use.

Words: kind of the fold, kind of its end, elements that go into one, neighbours, the address of y; then what
`ops.vector.rows.Rows` says of x along the axes that stay, and of an array at 0 along those that go.
"""

import math
from typing import Any

import numpy as np

from ops.native.intrinsics import stack
from ops.native.memory import floats, jitable, longs, share, word
from ops.reduce.kinds import ABS, AS_IS, DIVIDED, MAX, MIN, ROOT, SQUARE
from ops.vector.row_code import (
    CHUNK,
    max_16,
    min_16,
    row_fill,
    row_max,
    row_min,
    row_sum,
    row_sum_abs,
    row_sum_square,
    rows_add,
    rows_add_abs,
    rows_add_square,
    rows_divided,
    rows_max,
    rows_min,
    rows_root,
    sum_16,
    sum_abs_16,
    sum_square_16,
)
from ops.vector.rows_code import header_words, place

_WIDE, _DEEP = 256, 32
"""Columns that are folded at a time, and rows of which sums are added before they are added to the others."""
_ROWS, _SHORT = 16, 512
"""Rows that are folded side by side, and the most elements of such."""
_HEAD = 5
_columns = stack(2 * 4 * _WIDE)


@jitable
def _fold_row(kind: int, x: int, count: int) -> Any:
    if kind == MAX:
        return float(row_max(x, count, np.float32(0)))
    if kind == MIN:
        return float(row_min(x, count, np.float32(0)))
    if kind == ABS:
        return float(row_sum_abs(x, count, np.float32(0)))
    if kind == SQUARE:
        return float(row_sum_square(x, count, np.float32(0)))
    return float(row_sum(x, count, np.float32(0)))


@jitable
def _join(kind: int, a: float, b: float) -> Any:
    """NaN wins."""
    if kind < MAX:
        return a + b
    if math.isnan(a) or math.isnan(b):
        return a + b
    return max(a, b) if kind == MAX else min(a, b)


@jitable
def _identity(kind: int) -> Any:
    if kind == MAX:
        return -np.inf
    return np.inf if kind == MIN else 0.0


@jitable
def _fold_16(kind: int, addresses: int, count: int, target: int) -> None:
    if kind == MAX:
        max_16(addresses, count, target)
    elif kind == MIN:
        min_16(addresses, count, target)
    elif kind == ABS:
        sum_abs_16(addresses, count, target)
    elif kind == SQUARE:
        sum_square_16(addresses, count, target)
    else:
        sum_16(addresses, count, target)


@jitable
def _short_rows(words: int, first: int, last: int, room: int) -> None:
    """Sixteen rows at a time, the last one again and again where there are fewer: all have the same order of sums."""
    kind, end, each, count = word(words, 0), word(words, 1), word(words, 2), word(words, 3)
    kept = words + 8 * _HEAD
    y, addresses, found = floats(word(words, 4), last), longs(room, _ROWS), floats(room + 8 * _ROWS, _ROWS)
    start = place(kept + 8 * header_words(kept), 0, 0)
    for number in range(first, last, _ROWS):
        for i in range(_ROWS):
            addresses[i] = start + place(kept, 0, min(number + i, last - 1))
        if end == AS_IS and number + _ROWS <= last:
            _fold_16(kind, room, count, word(words, 4) + 4 * number)
            continue
        _fold_16(kind, room, count, room + 8 * _ROWS)
        for i in range(min(_ROWS, last - number)):
            total = found[i] / each if end == DIVIDED else float(found[i])
            y[number + i] = math.sqrt(total) if end == ROOT else total


def reduce_rows(words: int, part: int, parts: int) -> None:
    """The neighbours go: each row folds to a number, in float64."""
    kind, end, each, count = word(words, 0), word(words, 1), word(words, 2), word(words, 3)
    kept = words + 8 * _HEAD
    gone = kept + 8 * header_words(kept)
    first, last = share(word(kept, 1), part, parts)
    if count <= _SHORT and word(gone, 1) == 1:
        _short_rows(words, first, last, _columns())
        return
    for number in range(first, last):
        total = _identity(kind)
        for turn in range(word(gone, 1)):
            x = place(kept, 0, number) + place(gone, 0, turn)
            for start in range(0, count, CHUNK):
                total = _join(kind, total, _fold_row(kind, x + 4 * start, min(CHUNK, count - start)))
        if end == DIVIDED:
            total /= each
        floats(word(words, 4) + 4 * number, 1)[0] = math.sqrt(total) if end == ROOT else total


@jitable
def _fold_columns(kind: int, total: int, x: int, count: int) -> None:
    if kind == MAX:
        rows_max(total, count, total, x)
    elif kind == MIN:
        rows_min(total, count, total, x)
    elif kind == ABS:
        rows_add_abs(total, count, total, x)
    elif kind == SQUARE:
        rows_add_square(total, count, total, x)
    else:
        rows_add(total, count, total, x)


@jitable
def _fold_block(kind: int, x: int, gone: int, few: int, room: int) -> None:
    """The fold of some columns into the room; behind it, room for the sum of some rows."""
    some, turns = room + 4 * _WIDE, word(gone, 1)
    row_fill(room, few, np.float32(_identity(kind)))
    for top in range(0, turns, _DEEP):
        row_fill(some, few, np.float32(_identity(kind)))
        for turn in range(top, min(top + _DEEP, turns)):
            _fold_columns(kind, some, x + place(gone, 0, turn), few)
        _fold_columns(kind if kind >= MAX else 0, room, some, few)


def reduce_columns(words: int, part: int, parts: int) -> None:
    """The neighbours stay: columns side by side fold to as many numbers."""
    kind, end, each, width = word(words, 0), word(words, 1), word(words, 2), word(words, 3)
    kept, room = words + 8 * _HEAD, _columns()
    gone = kept + 8 * header_words(kept)
    across = (width + _WIDE - 1) // _WIDE
    first, last = share(word(kept, 1) * across, part, parts)
    for block in range(first, last):
        row, left = block // across, block % across * _WIDE
        few = min(_WIDE, width - left)
        _fold_block(kind, place(kept, 0, row) + 4 * left, gone, few, room)
        y = word(words, 4) + 4 * (row * width + left)
        if end == ROOT:
            rows_root(y, few, room)
        else:
            rows_divided(y, few, room, np.float32(each if end == DIVIDED else 1))
