"""The interpreter of elementwise programs. Imports numba: a door loads it, on first use.

A block of rows goes through all instructions while it lies in the cache nearest to the processor:

    inputs   -> copied into the scratch buffer, or read where they lie
    for each instruction: the whole block, 16 elements at a time
    output   <- copied from the scratch buffer, or written where it lies
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import array_at, jitable
from ops.native.intrinsics import stack
from ops.native.memory import floats, octets, record_at, records_at, share, word
from ops.vector.args import INSTRUCTION, MOST_VALUES, OPERAND, PROGRAM, SCRATCH_BYTES
from ops.vector.opcode_code import fill, give, give_truths, obey, take, take_truths

_HEAD, _OPERAND = PROGRAM.itemsize, OPERAND.itemsize
_scratch, _tables = stack(SCRATCH_BYTES), stack(4 * 8 * MOST_VALUES)
_PLACE, _SOURCE, _ROWS, _WIDTH = range(4)
"""Tables: where a value of this block is; address, rows and width of what the copy in the scratch buffer is of."""


@jitable
def _truth_at(address: int) -> Any:
    return np.float32(1) if octets(address, 1)[0] != 0 else np.float32(0)


@jitable
def _take_truths(source: int, scratch: int, count: int, step: int) -> None:
    if step == 1:
        take_truths(source, scratch, count)
    elif step == 0:
        fill(_truth_at(source), scratch, count)
    else:
        target = floats(scratch, count)
        for i in range(count):
            target[i] = _truth_at(source + i * step)


@jitable
def _take_floats(source: int, scratch: int, count: int, step: int) -> None:
    if step == 4:
        take(source, scratch, count)
    elif step == 0:
        fill(floats(source, 1)[0], scratch, count)
    else:
        target = floats(scratch, count)
        for i in range(count):
            target[i] = floats(source + i * step, 1)[0]


@jitable
def _give(scratch: int, target: int, count: int, step: int, is_bool: int) -> None:
    """Writes a row of the output."""
    if is_bool != 0 and step == 1:
        give_truths(scratch, target, count)
    elif is_bool == 0 and step == 4:
        give(scratch, target, count)
    else:
        source = floats(scratch, count)
        for i in range(count):
            if is_bool != 0:
                octets(target + i * step, 1)[0] = 0 if source[i] == 0 else 1
            else:
                floats(target + i * step, 1)[0] = source[i]


@jitable
def _operand(program: int, number: int) -> int:
    """Returns the address of an operand's record."""
    depth = record_at(program, PROGRAM).loops
    place: int = program + _HEAD + 8 * depth + number * (_OPERAND + 8 * depth)
    return place


@jitable
def _outer(program: int, operand: int, outer: int) -> Any:
    """Returns where an operand's part of an outer index begins."""
    depth, lengths, strides = record_at(program, PROGRAM).loops, program + _HEAD, operand + _OPERAND
    address = record_at(operand, OPERAND).address
    for d in range(depth - 1, 0, -1):
        length = word(lengths, d)
        address += outer % length * word(strides, d)
        outer = outer // length
    return address + outer * word(strides, 0) if depth > 0 else address


@jitable
def _fetch(operand: Any, source: int, target: int, extent: Any) -> None:
    """Copies rows of an input into the scratch buffer, one behind the other."""
    down, step = operand.row_step, operand.step
    height, length = extent
    for row in range(height):
        if operand.is_bool != 0:
            _take_truths(source + row * down, target + 4 * row * length, length, step)
        else:
            _take_floats(source + row * down, target + 4 * row * length, length, step)


@jitable
def _obey_all(code: int, instructions: int, places: Any, count: int) -> None:
    """Runs all instructions on a block."""
    all_of_them = records_at(code, instructions, INSTRUCTION)
    for i in range(instructions):
        one = all_of_them[i]
        obey(one.opcode, places[one.y], places[one.a], places[one.b], places[one.c], count, one.p, one.q)


@jitable
def _results(program: int) -> int:
    """Returns the address of the scratch offsets of results, behind which the instructions lie."""
    operands: int = record_at(program, PROGRAM).operands
    place: int = _operand(program, operands)
    return place


@jitable
def _block(program: int, scratch: int, tables: Any, where: Any, extent: Any) -> None:
    """Runs inputs, instructions, output of one block. A copy from the block before is not made again."""
    args = record_at(program, PROGRAM)
    operands = args.operands
    height, length = extent
    for v in range(operands):
        place = _operand(program, v)
        operand = record_at(place, OPERAND)
        source = _outer(program, place, where[0]) + where[1] * operand.row_step + where[2] * operand.step
        if operand.is_direct != 0:
            tables[_PLACE, v] = source
            continue
        target = scratch + operand.scratch
        tables[_PLACE, v] = target
        is_there = tables[_SOURCE, v] == source and tables[_WIDTH, v] == length and tables[_ROWS, v] >= height
        if v < operands - 1 and not is_there:
            _fetch(operand, source, target, extent)
            tables[_ROWS, v], tables[_WIDTH, v] = height, length
        tables[_SOURCE, v] = source
    _obey_all(_results(program) + 8 * args.results, args.instructions, tables[_PLACE], height * length)
    output = record_at(_operand(program, operands - 1), OPERAND)
    if output.is_direct == 0:
        down, step, is_bool = output.row_step, output.step, output.is_bool
        target, source = tables[_PLACE, operands - 1], tables[_SOURCE, operands - 1]
        for row in range(height):
            _give(target + 4 * row * length, source + row * down, length, step, is_bool)


@entry()
def elementwise(program: int, part: int, parts: int) -> None:
    """Runs this part's blocks; the arguments are a PROGRAM record and what follows it."""
    args, scratch = record_at(program, PROGRAM), _scratch()
    tables = array_at(_tables(), (4, MOST_VALUES), np.int64)
    operands, results = args.operands, _results(program)
    for v in range(operands):
        tables[_SOURCE, v] = -1
    for v in range(args.results):
        tables[_PLACE, operands + v] = scratch + word(results, v)
    rows, width, block_rows, block_width = args.rows, args.width, args.block_rows, args.block_width
    down, across = (rows + block_rows - 1) // block_rows, (width + block_width - 1) // block_width
    first, last = share(args.outer * down * across, part, parts)
    for block in range(first, last):
        top, left = block // across % down * block_rows, block % across * block_width
        extent = (min(block_rows, rows - top), min(block_width, width - left))
        _block(program, scratch, tables, (block // (down * across), top, left), extent)
