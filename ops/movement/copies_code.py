"""Copies between arrays of any strides, compiled. Imports numba: ops.native.door loads it, on first use."""

from numba.extending import register_jitable

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
from ops.movement.kinds import BLOCK, HEAD, RUNS, TURNED
from ops.native.memory import share, word


@register_jitable
def _copy_row(item: int, source: int, source_hop: int, target: int, target_hop: int, count: int) -> None:  # noqa: PLR0917
    if item == 4:
        for i in range(count):
            store_4((target + i * target_hop, load_4((source + i * source_hop,))))
    elif item == 8:
        for i in range(count):
            store_8((target + i * target_hop, load_8((source + i * source_hop,))))
    elif item == 2:
        for i in range(count):
            store_2((target + i * target_hop, load_2((source + i * source_hop,))))
    else:
        for i in range(count):
            store_1((target + i * target_hop, load_1((source + i * source_hop,))))


@register_jitable
def _fill_row(item: int, source: int, target: int, count: int) -> None:
    """One element, again and again, side by side."""
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


@register_jitable
def _interleave(length: int, source: int, source_hop: int, target: int) -> bool:
    """Whether 16 columns of so few rows, which follow each other without gaps in the target, were interleaved."""
    if length == 2:
        interleave_2((source, source_hop, target))
    elif length == 3:
        interleave_3((source, source_hop, target))
    elif length == 4:
        interleave_4((source, source_hop, target))
    return 2 <= length <= 4


@register_jitable
def _copy_turned(move: int, source: int, target: int, rows: int) -> None:
    """A block of rows, which lie side by side in the source, against all of the inner dimension, as they do here."""
    item, length, source_hop, target_hop = word(move, 2), word(move, 5), word(move, 6), word(move, 10)
    first = 0
    if item == 4 and rows == BLOCK and target_hop == 4 * length and _interleave(length, source, source_hop, target):
        return
    if item == 4 and rows == BLOCK:
        first = length - length % BLOCK
        for i in range(0, first, BLOCK):
            transpose_16((source + i * source_hop, source_hop, target + 4 * i, target_hop))
    if length - first >= rows:
        for j in range(rows):
            _copy_row(
                item, source + j * item + first * source_hop, source_hop, target + j * target_hop + first * item, item,
                length - first,
            )  # fmt: skip
    else:
        for i in range(first, length):
            _copy_row(item, source + i * source_hop, item, target + i * item, target_hop, rows)


@register_jitable
def _copy_rows(move: int, source: int, target: int, rows: int) -> None:
    kind, item, length, source_hop, target_hop = (
        word(move, 1), word(move, 2), word(move, 5), word(move, 6), word(move, 7),
    )  # fmt: skip
    for j in range(rows):
        at, to = source + j * word(move, 9), target + j * word(move, 10)
        if kind == RUNS:
            copy_bytes((to, at, length))
        elif source_hop == 0 and target_hop == item:
            _fill_row(item, at, to, length)
        else:
            _copy_row(item, at, source_hop, to, target_hop, length)


@register_jitable
def _move(move: int, part: int, parts: int) -> None:
    """This part's share of the blocks of rows of all rectangles."""
    rows, block, outer = word(move, 8), word(move, 11), word(move, 12)
    blocks = (rows + block - 1) // block
    total = blocks
    for d in range(outer):
        total *= word(move, HEAD + 3 * d)
    first, last = share(total, part, parts)
    for job in range(first, last):
        start, rest = job % blocks * block, job // blocks
        source, target = word(move, 3) + start * word(move, 9), word(move, 4) + start * word(move, 10)
        for d in range(outer - 1, -1, -1):
            length = word(move, HEAD + 3 * d)
            source += rest % length * word(move, HEAD + 3 * d + 1)
            target += rest % length * word(move, HEAD + 3 * d + 2)
            rest //= length
        if word(move, 1) == TURNED:
            _copy_turned(move, source, target, min(block, rows - start))
        else:
            _copy_rows(move, source, target, min(block, rows - start))


def move(words: int, part: int, parts: int) -> None:
    """The words: how many moves there are, then each of them, its own number of words first."""
    place = words + 8
    for _ in range(word(words, 0)):
        _move(place, part, parts)
        place += 8 * word(place, 0)
