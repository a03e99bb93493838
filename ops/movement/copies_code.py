"""Copies between arrays of any strides, compiled. Imports numba: a door loads it, on first use."""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable
from ops.movement.args import BLOCK, COPY, LOOP, RUNS, TRANSPOSED
from ops.movement.copies_emit import (
    copy_bytes,
    interleave_2,
    interleave_3,
    interleave_4,
    load_1,
    load_2,
    load_4,
    load_8,
    store_1,
    store_2,
    store_4,
    store_8,
    transpose_16,
)
from ops.native.memory import record_at, records_at, share, word

_HEAD = COPY.itemsize


@jitable
def _copy_row(item: int, source: int, source_step: int, target: int, target_step: int, count: int) -> None:  # noqa: PLR0917
    if item == 4:
        for i in range(count):
            store_4((target + i * target_step, load_4((source + i * source_step,))))
    elif item == 8:
        for i in range(count):
            store_8((target + i * target_step, load_8((source + i * source_step,))))
    elif item == 2:
        for i in range(count):
            store_2((target + i * target_step, load_2((source + i * source_step,))))
    else:
        for i in range(count):
            store_1((target + i * target_step, load_1((source + i * source_step,))))


@jitable
def _fill_row(item: int, source: int, target: int, count: int) -> None:
    """Writes one element again and again, side by side."""
    if item == 4:
        value = load_4((source,))
        for i in range(count):
            store_4((target + 4 * i, value))
    elif item == 8:
        value = load_8((source,))
        for i in range(count):
            store_8((target + 8 * i, value))
    elif item == 2:
        value = load_2((source,))
        for i in range(count):
            store_2((target + 2 * i, value))
    else:
        value = load_1((source,))
        for i in range(count):
            store_1((target + i, value))


@jitable
def _interleave(length: int, source: int, source_step: int, target: int) -> bool:
    """Interleaves 16 columns of so few rows that lie without gaps in the target; returns whether there are so few."""
    if length == 2:
        interleave_2((source, source_step, target))
    elif length == 3:
        interleave_3((source, source_step, target))
    elif length == 4:
        interleave_4((source, source_step, target))
    return 2 <= length <= 4


@jitable
def _transpose(args: Any, source: int, target: int, rows: int) -> None:
    """Copies a block of rows, which lie side by side in the source, by all of the inner dimension.

                    inner dimension (length)
    source, rows    a e i ...           target    a b c d
    side by side    b f j ...                     e f g h
                    c g k ...                     i j k l
                    d h l ...                     ...
    """
    item, length, source_step, target_row = args.item, args.length, args.source_step, args.target_row
    first = 0
    if item == 4 and rows == BLOCK and target_row == 4 * length and _interleave(length, source, source_step, target):
        return
    if item == 4 and rows == BLOCK:
        first = length - length % BLOCK
        for i in range(0, first, BLOCK):
            transpose_16((source + i * source_step, source_step, target + 4 * i, target_row))
    if length - first >= rows:
        for j in range(rows):
            start, end = source + j * item + first * source_step, target + j * target_row + first * item
            _copy_row(item, start, source_step, end, item, length - first)
    else:
        for i in range(first, length):
            _copy_row(item, source + i * source_step, item, target + i * item, target_row, rows)


@jitable
def _copy_rows(args: Any, source: int, target: int, rows: int) -> None:
    """Copies rows of a rectangle."""
    kind, item, length = args.kind, args.item, args.length
    source_step, target_step = args.source_step, args.target_step
    for j in range(rows):
        start, end = source + j * args.source_row, target + j * args.target_row
        if kind == RUNS:
            copy_bytes((end, start, length))
        elif source_step == 0 and target_step == item:
            _fill_row(item, start, end, length)
        else:
            _copy_row(item, start, source_step, end, target_step, length)


@jitable
def _copy(address: int, part: int, parts: int) -> None:
    """Copies this part's share of the blocks of rows of all rectangles; `address`: a COPY record and its loops."""
    args = record_at(address, COPY)
    loops = records_at(address + _HEAD, args.loops, LOOP)
    rows, block = args.rows, args.block
    blocks = (rows + block - 1) // block
    total = blocks
    for d in range(args.loops):
        total *= loops[d].length
    first, last = share(total, part, parts)
    for job in range(first, last):
        start, rest = job % blocks * block, job // blocks
        source, target = args.source + start * args.source_row, args.target + start * args.target_row
        for d in range(args.loops - 1, -1, -1):
            length = loops[d].length
            source += rest % length * loops[d].source_step
            target += rest % length * loops[d].target_step
            rest //= length
        if args.kind == TRANSPOSED:
            _transpose(args, source, target, min(block, rows - start))
        else:
            _copy_rows(args, source, target, min(block, rows - start))


@entry()
def move(address: int, part: int, parts: int) -> None:
    """Copies this part of everything; the arguments are how many copies there are, and each with its own size."""
    place = address + 8
    for _ in range(word(address, 0)):
        _copy(place, part, parts)
        place += 8 * record_at(place, COPY).size
