"""Sums and extremes along axes. Imports numba: a door loads it, on first use."""

import math
from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable, longs
from ops.native.intrinsics import stack
from ops.native.memory import floats, record_at, share
from ops.reduce.args import ABS, AS_IS, DIVIDED, MAX, MIN, REDUCE, ROOT, SQUARE
from ops.vector.args import ROWS
from ops.vector.row_code import (
    CHUNK,
    max_16,
    min_16,
    row_address,
    row_fill,
    row_max,
    row_min,
    row_sum,
    row_sum_abs,
    row_sum_square,
    rows_add,
    rows_add_abs,
    rows_add_square,
    rows_bytes,
    rows_divided,
    rows_max,
    rows_min,
    rows_root,
    sum_16,
    sum_abs_16,
    sum_square_16,
)

_WIDE, _DEEP = 256, 32
"""Columns that are folded at a time, and rows of which sums are added before they are added to the others."""
_ROWS, _SHORT = 16, 512
"""Rows that are folded side by side, and the most elements of such."""
_HEAD = REDUCE.itemsize
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
    """Joins two folds; NaN where either is NaN."""
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
def _finished(end: int, total: float, elements: int) -> Any:
    """Returns what becomes of a fold."""
    mean = total / elements if end == DIVIDED else total
    return math.sqrt(mean) if end == ROOT else mean


@jitable
def _short_rows(address: int, first: int, last: int, scratch: int) -> None:
    """Reduces sixteen rows at a time, the last one again where there are fewer: all have the same order of sums."""
    args = record_at(address, REDUCE)
    fold, end, elements, count = args.fold, args.end, args.elements, args.width
    rows = address + _HEAD
    y, addresses, totals = floats(args.y, last), longs(scratch, _ROWS), floats(scratch + 8 * _ROWS, _ROWS)
    start = row_address(rows + rows_bytes(rows), 0, 0)
    for number in range(first, last, _ROWS):
        for i in range(_ROWS):
            addresses[i] = start + row_address(rows, 0, min(number + i, last - 1))
        if end == AS_IS and number + _ROWS <= last:
            _fold_16(fold, scratch, count, args.y + 4 * number)
            continue
        _fold_16(fold, scratch, count, scratch + 8 * _ROWS)
        for i in range(min(_ROWS, last - number)):
            y[number + i] = _finished(end, float(totals[i]), elements)


@entry()
def reduce_rows(address: int, part: int, parts: int) -> None:
    """Folds each row of neighbours to a number, in float64; the arguments are a REDUCE record and its rows."""
    args = record_at(address, REDUCE)
    fold, count = args.fold, args.width
    rows = address + _HEAD
    reduced = rows + rows_bytes(rows)
    turns = record_at(reduced, ROWS).rows
    first, last = share(record_at(rows, ROWS).rows, part, parts)
    if count <= _SHORT and turns == 1:
        _short_rows(address, first, last, _columns())
        return
    for number in range(first, last):
        total = _identity(fold)
        for turn in range(turns):
            x = row_address(rows, 0, number) + row_address(reduced, 0, turn)
            for start in range(0, count, CHUNK):
                total = _join(fold, total, _fold_row(fold, x + 4 * start, min(CHUNK, count - start)))
        floats(args.y + 4 * number, 1)[0] = _finished(args.end, total, args.elements)


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
def _fold_block(kind: int, x: int, reduced: int, count: int, scratch: int) -> None:
    """Folds some columns into the scratch buffer; behind them lies the fold of some rows."""
    partial, turns = scratch + 4 * _WIDE, record_at(reduced, ROWS).rows
    row_fill(scratch, count, np.float32(_identity(kind)))
    for top in range(0, turns, _DEEP):
        row_fill(partial, count, np.float32(_identity(kind)))
        for turn in range(top, min(top + _DEEP, turns)):
            _fold_columns(kind, partial, x + row_address(reduced, 0, turn), count)
        _fold_columns(kind if kind >= MAX else 0, scratch, partial, count)


@entry()
def reduce_columns(address: int, part: int, parts: int) -> None:
    """Folds columns side by side to as many numbers; the arguments are a REDUCE record and its rows."""
    args = record_at(address, REDUCE)
    fold, end, elements, width = args.fold, args.end, args.elements, args.width
    rows, scratch = address + _HEAD, _columns()
    reduced = rows + rows_bytes(rows)
    across = (width + _WIDE - 1) // _WIDE
    first, last = share(record_at(rows, ROWS).rows * across, part, parts)
    for block in range(first, last):
        row, left = block // across, block % across * _WIDE
        count = min(_WIDE, width - left)
        _fold_block(fold, row_address(rows, 0, row) + 4 * left, reduced, count, scratch)
        y = args.y + 4 * (row * width + left)
        if end == ROOT:
            rows_root(y, count, scratch)
        else:
            rows_divided(y, count, scratch, np.float32(elements if end == DIVIDED else 1))
