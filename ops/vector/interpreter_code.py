"""The interpreter of elementwise programs. Imports numba: `ops.native.door` loads it, on first use.

A block of rows goes through all instructions while it lies in the cache nearest to the processor. What the words are,
`ops.vector.geometry` says.
"""

from typing import Any

import numpy as np

from ops.native.intrinsics import stack
from ops.native.memory import floats, jitable, longs, octets, real, share, word
from ops.vector.geometry import HEAD, INSTRUCTION, RECORD, ROOM_BYTES, VALUES
from ops.vector.opcode_code import fill, give, give_truths, obey, take, take_truths

_room, _tables = stack(ROOM_BYTES), stack(4 * 8 * VALUES)
_PLACE, _SOURCE, _ROWS, _WIDTH = range(4)
"""Tables: where a value is in this block; of which address, rows and width the copy is that lies in the room."""


@jitable
def _truth_at(address: int) -> Any:
    return np.float32(1) if octets(address, 1)[0] != 0 else np.float32(0)


@jitable
def _take_truths(source: int, room: int, count: int, step: int) -> None:
    if step == 1:
        take_truths(source, room, count)
    elif step == 0:
        fill(_truth_at(source), room, count)
    else:
        target = floats(room, count)
        for i in range(count):
            target[i] = _truth_at(source + i * step)


@jitable
def _take_floats(source: int, room: int, count: int, step: int) -> None:
    if step == 4:
        take(source, room, count)
    elif step == 0:
        fill(floats(source, 1)[0], room, count)
    else:
        target = floats(room, count)
        for i in range(count):
            target[i] = floats(source + i * step, 1)[0]


@jitable
def _give(room: int, target: int, count: int, step: int, is_bool: int) -> None:
    """Writes a row of the output."""
    if is_bool != 0 and step == 1:
        give_truths(room, target, count)
    elif is_bool == 0 and step == 4:
        give(room, target, count)
    else:
        source = floats(room, count)
        for i in range(count):
            if is_bool != 0:
                octets(target + i * step, 1)[0] = 0 if source[i] == 0 else 1
            else:
                floats(target + i * step, 1)[0] = source[i]


@jitable
def _address(words: int, record: int, depth: int, outer: int) -> Any:
    """Where an operand's part of an outer index begins."""
    address = word(words, record)
    for d in range(depth - 1, 0, -1):
        length = word(words, HEAD + d)
        address += outer % length * word(words, record + RECORD + d)
        outer = outer // length
    return address + outer * word(words, record + RECORD) if depth > 0 else address


@jitable
def _fetch(words: int, record: int, source: int, target: int, extent: Any) -> None:
    """Copies rows of an input into the room, one behind the other."""
    down, step = word(words, record + 4), word(words, record + 5)
    height, length = extent
    for row in range(height):
        if word(words, record + 1) != 0:
            _take_truths(source + row * down, target + 4 * row * length, length, step)
        else:
            _take_floats(source + row * down, target + 4 * row * length, length, step)


@jitable
def _obey_all(words: int, code: int, places: Any, count: int) -> None:
    for i in range(word(words, 8)):
        at = code + i * INSTRUCTION
        y, a = places[word(words, at + 1)], places[word(words, at + 2)]
        b, c = places[word(words, at + 3)], places[word(words, at + 4)]
        obey(word(words, at), y, a, b, c, count, real(words, at + 5), real(words, at + 6))


@jitable
def _open(words: int, record: int, outer: int, top: int, left: int) -> Any:
    """The address of an operand's first element of a block."""
    source = _address(words, record, word(words, 1), outer)
    return source + top * word(words, record + 4) + left * word(words, record + 5)


@jitable
def _block(words: int, room: int, tables: Any, where: Any, extent: Any) -> None:
    """Inputs, instructions, output of one block. An input that is there from the block before is not copied again."""
    operands, depth = word(words, 0), word(words, 1)
    height, length = extent
    for v in range(operands):
        record = HEAD + depth + v * (RECORD + depth)
        source = _open(words, record, where[0], where[1], where[2])
        if word(words, record + 2) != 0:
            tables[_PLACE, v] = source
            continue
        target = room + word(words, record + 3)
        tables[_PLACE, v] = target
        there = tables[_SOURCE, v] == source and tables[_WIDTH, v] == length and tables[_ROWS, v] >= height
        if v < operands - 1 and not there:
            _fetch(words, record, source, target, extent)
            tables[_ROWS, v], tables[_WIDTH, v] = height, length
        tables[_SOURCE, v] = source
    code = HEAD + depth + operands * (RECORD + depth) + word(words, 7)
    _obey_all(words, code, tables[_PLACE], height * length)
    if word(words, record + 2) == 0:
        down, step, is_bool = word(words, record + 4), word(words, record + 5), word(words, record + 1)
        for row in range(height):
            _give(target + 4 * row * length, source + row * down, length, step, is_bool)


def elementwise(words: int, part: int, parts: int) -> None:
    """Runs the blocks that are this part's."""
    room = _room()
    tables = longs(_tables(), 4 * VALUES).reshape(4, VALUES)
    operands, depth = word(words, 0), word(words, 1)
    for v in range(operands):
        tables[_SOURCE, v] = -1
    for v in range(word(words, 7)):
        tables[_PLACE, operands + v] = room + word(words, HEAD + depth + operands * (RECORD + depth) + v)
    rows, width, tall, wide = word(words, 2), word(words, 3), word(words, 4), word(words, 5)
    down, across = (rows + tall - 1) // tall, (width + wide - 1) // wide
    first, last = share(word(words, 6) * down * across, part, parts)
    for block in range(first, last):
        top, left = block // across % down * tall, block % across * wide
        extent = (min(tall, rows - top), min(wide, width - left))
        _block(words, room, tables, (block // (down * across), top, left), extent)
