"""Softmax of rows, and of columns side by side. Imports numba: a door loads it, on first use."""

from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable, longs
from ops.native.intrinsics import stack
from ops.native.memory import floats, record_at, share
from ops.reduce.args import SOFTMAX
from ops.vector.args import ROWS
from ops.vector.row_code import (
    CHUNK,
    largest_16,
    row_address,
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

_HEAD = SOFTMAX.itemsize
_WIDE = 256
"""Columns that one pass goes over together."""
_FEW, _CACHED = 16, 2048
"""Most rows that one pass goes over together, and most elements of these rows: they stay in the first-level cache.
tools/bench_kernels.py --operators softmax times rows of several lengths."""
_LANES = 4 * _FEW
"""Bytes of 16 sums."""
_columns = stack(2 * 4 * _WIDE)


@jitable
def _tops(addresses: int, few: int, count: int, tops: int) -> None:
    """Writes the largest element of each row."""
    if count <= _CACHED // _FEW:
        largest_16(addresses, count, tops)
    else:
        for i in range(few):
            floats(tops, few)[i] = row_largest(longs(addresses, few)[i], count, np.float32(0))


@jitable
def _power(x: int, y: int, count: int, is_log: int, top: Any, lanes: int) -> None:  # noqa: PLR0917 - compiled
    """Writes e ** (x - top) of a row to y, and 16 partial sums of these powers to `lanes`.

    For a log-softmax (`is_log`) the powers themselves are not written. A row of more than CHUNK elements is added up
    in float64: its sum is then in the first lane, and the others are 0.
    """
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
def _rows(args: Any, rows: int, first: int, few: int, scratch: int) -> None:
    """Computes `few` rows, from `first` on. Each pass goes over all of these rows before the next pass begins.

    So no row waits for its own largest element or sum. The scratch buffer holds:
    16 largest elements | 16 sums, then their logarithms | 16 addresses | 16 lanes of sums for each row
    """
    is_log, count = args.is_log, args.length
    tops, ends, addresses, lanes = scratch, scratch + 4 * _FEW, scratch + 8 * _FEW, scratch + 16 * _FEW
    places = longs(addresses, _FEW)
    for i in range(_FEW):
        places[i] = row_address(rows, 0, first + min(i, few - 1))
    _tops(addresses, few, count, tops)
    for i in range(few):
        x, y = places[i], row_address(rows, 1, first + i)
        _power(x, y, count, is_log, floats(tops, few)[i], lanes + i * _LANES)
    for i in range(_FEW):
        places[i] = lanes + min(i, few - 1) * _LANES
    sum_16(addresses, _FEW, ends)
    if is_log != 0:
        rows_log(ends, few, ends)
    for i in range(few):
        y, end = row_address(rows, 1, first + i), floats(ends, few)[i]
        if is_log != 0:
            row_minus_both(y, count, row_address(rows, 0, first + i), floats(tops, few)[i], end)
        else:
            row_times(y, count, y, np.float32(1) / end)


@entry()
def softmax_rows(address: int, part: int, parts: int) -> None:
    """Computes this part's rows, neighbours in memory; the arguments are a SOFTMAX record and rows of x and y."""
    args, rows, scratch = record_at(address, SOFTMAX), address + _HEAD, _columns()
    few = max(1, min(_FEW, _CACHED // args.length))
    first, last = share(record_at(rows, ROWS).rows, part, parts)
    for row in range(first, last, few):
        _rows(args, rows, row, min(few, last - row), scratch)


@jitable
def _block(args: Any, x: int, y: int, count: int, scratch: int) -> None:
    """Computes some columns; scratch: their largest elements, then their sums."""
    is_log, length, x_step, y_step = args.is_log, args.length, args.x_step, args.y_step
    top, total = scratch, scratch + 4 * _WIDE
    row_fill(top, count, np.float32(-np.inf))
    row_fill(total, count, np.float32(0))
    for i in range(length):
        rows_largest(top, count, top, x + i * x_step)
    for i in range(length):
        if is_log != 0:
            rows_add_exp(total, count, total, x + i * x_step, top)
        else:
            rows_exp(y + i * y_step, count, x + i * x_step, top)
            rows_add(total, count, total, y + i * y_step)
    for i in range(length):
        if is_log != 0:
            rows_log_shift(y + i * y_step, count, x + i * x_step, top, total)
        else:
            rows_div(y + i * y_step, count, y + i * y_step, total)


@entry()
def softmax_columns(address: int, part: int, parts: int) -> None:
    """Computes this part's columns, neighbours in memory; the arguments are a SOFTMAX record and rows of x and y."""
    args, rows, scratch = record_at(address, SOFTMAX), address + _HEAD, _columns()
    across = (args.width + _WIDE - 1) // _WIDE
    first, last = share(record_at(rows, ROWS).rows * across, part, parts)
    for block in range(first, last):
        row, left = block // across, block % across * _WIDE
        x, y = row_address(rows, 0, row) + 4 * left, row_address(rows, 1, row) + 4 * left
        _block(args, x, y, min(_WIDE, args.width - left), scratch)
