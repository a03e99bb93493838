"""Positions of extremes. Imports numba: a door loads it, on first use."""

import math
from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable, longs
from ops.native.intrinsics import stack
from ops.native.memory import floats, ints, record_at, records_at, share
from ops.reduce.args import LOOP, SEARCH
from ops.vector.row_code import row_max, row_min

_HEAD = SEARCH.itemsize
_WIDE = 256
"""Neighbours that are searched side by side."""
_CHUNK = 128
"""Neighbours of which the extreme is found before its place is."""
_scratch = stack(2 * 4 * _WIDE)


@jitable
def _outer(address: int, number: int) -> int:
    """Returns the address of x at an index of the outer loops, counted through."""
    args = record_at(address, SEARCH)
    loops = records_at(address + _HEAD, args.loops, LOOP)
    place: int = args.x
    for d in range(args.loops - 1, -1, -1):
        place += number % loops[d].length * loops[d].step
        number //= loops[d].length
    return place


@jitable
def _turns(address: int) -> int:
    """Returns the turns of the outer loops."""
    count = record_at(address, SEARCH).loops
    loops = records_at(address + _HEAD, count, LOOP)
    turns = 1
    for d in range(count):
        turns *= loops[d].length
    return turns


@jitable
def _is_better(x: float, best: float, is_least: int) -> bool:
    """Returns whether x is a better extreme; NaN is better than all else."""
    if math.isnan(x):
        return not math.isnan(best)
    return x < best if is_least != 0 else x > best


@jitable
def _chunk(address: int, count: int, is_least: int, is_last: int) -> Any:
    """Returns where the chunk begins that has the extreme first, and the extreme."""
    chunks = (count + _CHUNK - 1) // _CHUNK
    start, best = 0, np.float32(0)
    for turn in range(chunks):
        first = (chunks - 1 - turn if is_last != 0 else turn) * _CHUNK
        place, few = address + 4 * first, min(_CHUNK, count - first)
        most = row_min(place, few, np.float32(0)) if is_least != 0 else row_max(place, few, np.float32(0))
        if turn == 0 or _is_better(most, best, is_least):
            start, best = first, most
    return start, best


@jitable
def _position(address: int, count: int, is_least: int, is_last: int) -> int:
    """Returns the position in a row of neighbours: that of the chunk, then that in it."""
    start, best = _chunk(address, count, is_least, is_last)
    few, is_nan = min(_CHUNK, count - start), math.isnan(best)
    row = floats(address + 4 * start, few)
    for i in range(few):
        at: int = few - 1 - i if is_last != 0 else i
        if row[at] == best or (is_nan and math.isnan(row[at])):
            start += at
            break
    position: int = start
    return position


@entry()
def search_rows(address: int, part: int, parts: int) -> None:
    """Searches along the neighbours; the arguments are a SEARCH record and its loops."""
    args, rows = record_at(address, SEARCH), _turns(address)
    y = longs(args.y, rows)
    first, last = share(rows, part, parts)
    for number in range(first, last):
        y[number] = _position(_outer(address, number), args.length, args.is_least, args.is_last)


@jitable
def _at(address: int, step: int, i: int) -> Any:
    return floats(address + i * step, 1)[0]


@jitable
def _compare(best: Any, where: Any, address: int, turn: int, few: int) -> None:
    """Compares a row of neighbours with the largest so far; NaN is larger than all, and the first one stays."""
    x = floats(address, few)
    for i in range(few):
        take = (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]))
        best[i] = x[i] if take else best[i]
        where[i] = turn if take else where[i]


@jitable
def _compare_least(best: Any, where: Any, address: int, turn: int, few: int) -> None:
    x = floats(address, few)
    for i in range(few):
        take = (x[i] < best[i]) | ((x[i] != x[i]) & (best[i] == best[i]))
        best[i] = x[i] if take else best[i]
        where[i] = turn if take else where[i]


@jitable
def _compare_apart(args: Any, best: Any, where: Any, address: int, turn: int, few: int) -> None:  # noqa: PLR0917 - compiled
    """Compares a turn of elements that do not lie side by side with the best so far."""
    step, is_least = args.width_step, args.is_least
    for i in range(few):
        x = _at(address, step, i)
        better = x < best[i] if is_least != 0 else x > best[i]
        if better or (math.isnan(x) and not math.isnan(best[i])):
            best[i], where[i] = x, turn


@jitable
def _search_block(args: Any, address: int, few: int, scratch: int) -> None:
    """Searches along the axis for some neighbours at once; scratch: the best so far, and where they are."""
    best, where = floats(scratch, few), ints(scratch + 4 * _WIDE, few)
    count, step, is_last, width_step = args.length, args.length_step, args.is_last, args.width_step
    start = address + (count - 1) * step if is_last != 0 else address
    for i in range(few):
        best[i], where[i] = _at(start, width_step, i), 0
    for turn in range(1, count):
        place = start - turn * step if is_last != 0 else start + turn * step
        if width_step != 4:
            _compare_apart(args, best, where, place, turn, few)
        elif args.is_least != 0:
            _compare_least(best, where, place, turn, few)
        else:
            _compare(best, where, place, turn, few)


@entry()
def search_columns(address: int, part: int, parts: int) -> None:
    """Searches along another axis, for some neighbours at a time; the arguments are a SEARCH record and its loops."""
    args, scratch = record_at(address, SEARCH), _scratch()
    width, count, is_last = args.width, args.length, args.is_last
    across = (width + _WIDE - 1) // _WIDE
    first, last = share(_turns(address) * across, part, parts)
    for block in range(first, last):
        number, left = block // across, block % across * _WIDE
        few = min(_WIDE, width - left)
        _search_block(args, _outer(address, number) + left * args.width_step, few, scratch)
        where = ints(scratch + 4 * _WIDE, few)
        y = longs(args.y + 8 * (number * width + left), few)
        for i in range(few):
            y[i] = count - 1 - where[i] if is_last != 0 else where[i]
