"""Positions of extremes. Imports numba: `ops.native.door` loads it, on first use.

Words: x, y, whether the least is wanted, whether the last of equals, the length of the axis and the bytes along it;
neighbours that have positions of their own, and the bytes from one to the next; the number of outer loops; of each its
length and the bytes of x.
"""

import math
from typing import Any

import numpy as np

from ops.native.intrinsics import stack
from ops.native.memory import floats, ints, jitable, longs, share, word
from ops.vector.row_code import row_max, row_min

_WIDE = 256
"""Neighbours that are searched side by side."""
_CHUNK = 128
"""Neighbours of which the extreme is found before its place is."""
_room = stack(2 * 4 * _WIDE)


@jitable
def _outer(words: int, number: int) -> int:
    """The address of what an outer index names."""
    address: int = word(words, 0)
    for d in range(word(words, 8) - 1, -1, -1):
        length = word(words, 9 + 2 * d)
        address += number % length * word(words, 10 + 2 * d)
        number //= length
    return address


@jitable
def _is_better(x: float, best: float, is_least: int) -> bool:
    """NaN is better than all else."""
    if math.isnan(x):
        return not math.isnan(best)
    return x < best if is_least != 0 else x > best


@jitable
def _chunk(address: int, count: int, is_least: int, is_last: int) -> Any:
    """Where the chunk begins in which the extreme is found first, and the extreme."""
    chunks = (count + _CHUNK - 1) // _CHUNK
    found, best = 0, np.float32(0)
    for turn in range(chunks):
        first = (chunks - 1 - turn if is_last != 0 else turn) * _CHUNK
        at, few = address + 4 * first, min(_CHUNK, count - first)
        most = row_min(at, few, np.float32(0)) if is_least != 0 else row_max(at, few, np.float32(0))
        if turn == 0 or _is_better(most, best, is_least):
            found, best = first, most
    return found, best


@jitable
def _position(address: int, count: int, is_least: int, is_last: int) -> int:
    """In a row of neighbours: in one chunk, one element after the other."""
    start, best = _chunk(address, count, is_least, is_last)
    few, is_nan = min(_CHUNK, count - start), math.isnan(best)
    row = floats(address + 4 * start, few)
    for i in range(few):
        at: int = few - 1 - i if is_last != 0 else i
        if row[at] == best or (is_nan and math.isnan(row[at])):
            start += at
            break
    found: int = start
    return found


def search_rows(words: int, part: int, parts: int) -> None:
    """The axis is that of neighbours."""
    rows = 1
    for d in range(word(words, 8)):
        rows *= word(words, 9 + 2 * d)
    y, count = longs(word(words, 1), rows), word(words, 4)
    first, last = share(rows, part, parts)
    for number in range(first, last):
        y[number] = _position(_outer(words, number), count, word(words, 2), word(words, 3))


@jitable
def _at(address: int, hop: int, i: int) -> Any:
    return floats(address + i * hop, 1)[0]


@jitable
def _meet(best: Any, where: Any, address: int, turn: int, few: int) -> None:
    """One row of neighbours against the largest so far; NaN is larger than all, and the first one stays."""
    x = floats(address, few)
    for i in range(few):
        take = (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]))
        best[i] = x[i] if take else best[i]
        where[i] = turn if take else where[i]


@jitable
def _meet_least(best: Any, where: Any, address: int, turn: int, few: int) -> None:
    x = floats(address, few)
    for i in range(few):
        take = (x[i] < best[i]) | ((x[i] != x[i]) & (best[i] == best[i]))
        best[i] = x[i] if take else best[i]
        where[i] = turn if take else where[i]


@jitable
def _meet_apart(words: int, best: Any, where: Any, address: int, turn: int, few: int) -> None:  # noqa: PLR0917 - compiled
    """The same where neighbours do not lie side by side."""
    hop, is_least = word(words, 7), word(words, 2)
    for i in range(few):
        x = _at(address, hop, i)
        better = x < best[i] if is_least != 0 else x > best[i]
        if better or (math.isnan(x) and not math.isnan(best[i])):
            best[i], where[i] = x, turn


@jitable
def _search_block(words: int, address: int, few: int, room: int) -> None:
    best, where = floats(room, few), ints(room + 4 * _WIDE, few)
    count, hop, is_last = word(words, 4), word(words, 5), word(words, 3)
    start = address + (count - 1) * hop if is_last != 0 else address
    for i in range(few):
        best[i], where[i] = _at(start, word(words, 7), i), 0
    for turn in range(1, count):
        at = start - turn * hop if is_last != 0 else start + turn * hop
        if word(words, 7) != 4:
            _meet_apart(words, best, where, at, turn, few)
        elif word(words, 2) != 0:
            _meet_least(best, where, at, turn, few)
        else:
            _meet(best, where, at, turn, few)


def search_columns(words: int, part: int, parts: int) -> None:
    """The axis is another one: some neighbours at a time."""
    room, width, count = _room(), word(words, 6), word(words, 4)
    across = (width + _WIDE - 1) // _WIDE
    blocks = across
    for d in range(word(words, 8)):
        blocks *= word(words, 9 + 2 * d)
    first, last = share(blocks, part, parts)
    for block in range(first, last):
        number, left = block // across, block % across * _WIDE
        few = min(_WIDE, width - left)
        _search_block(words, _outer(words, number) + left * word(words, 7), few, room)
        where = ints(room + 4 * _WIDE, few)
        y = longs(word(words, 1) + 8 * (number * width + left), few)
        for i in range(few):
            y[i] = count - 1 - where[i] if word(words, 3) != 0 else where[i]
