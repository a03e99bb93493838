"""Elementwise programs as the words that the compiled interpreter reads."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from ops.native.call import Word
from ops.tensor.spec import BOOL, Array
from ops.vector.collapse import Loops, collapse
from ops.vector.geometry import HEAD, ROOM_BYTES
from ops.vector.opcodes import NUMBERS

SINGLE = np.dtype("float32")
_FLAT = 1024
"""A dimension of so many elements is cut; of a shorter one, several rows make a block."""
_MOST = 4096
"""Most elements of a block."""
_SPARE = 16
"""Elements behind each block in the room that copies may change."""


@frozen
class Instruction:
    """One opcode: it reads the values `operands`, and writes a new one. `numbers` are what it knows besides."""

    opcode: str
    operands: tuple[int, ...]
    numbers: tuple[float, ...] = ()


@frozen(eq=False)
class Script:
    """Instructions as they are found; values are numbered: inputs, then the result of each instruction."""

    inputs: int
    instructions: list[Instruction] = field(factory=list)

    def say(self, opcode: str, *operands: int, numbers: tuple[float, ...] = ()) -> int:
        """One instruction more; the number of its result."""
        self.instructions.append(Instruction(opcode, operands, numbers))
        return self.inputs + len(self.instructions) - 1


@frozen(eq=False)
class _Rooms:
    """Which operands are copied into the room, and which place each result has there: (bytes of a place) * number.

    Copies keep their places; a result takes that of one that dies.
    """

    copies: dict[int, int]
    results: tuple[int, ...]
    count: int


def _is_direct(array: Array, loops: Loops, operand: int) -> bool:
    """Whether a block of it is a run of floats in memory."""
    down, step = loops.strides[operand][-2:]
    rows, width = loops.shape[-2:]
    return array.dtype == SINGLE and step == 4 and (rows == 1 or width >= _FLAT or down == 4 * width)


def _rooms(script: Script, direct: Sequence[bool]) -> _Rooms:
    """`direct` tells of the inputs and, last, of the output whether they are used where they lie."""
    copies = {v: n for n, v in enumerate(v for v, d in enumerate(direct) if not d)}
    last = {v: n for n, i in enumerate(script.instructions) for v in i.operands}
    free, made, results = list[int](), len(copies), dict[int, int]()
    for number, instruction in enumerate(script.instructions[:-1]):
        dying = {v for v in instruction.operands if v in results and last[v] == number}
        free += [results[v] for v in sorted(dying)]
        if not free:
            free.append(made)
            made += 1
        results[script.inputs + number] = free.pop()
    return _Rooms(copies, tuple(results.values()), made)


def encode(script: Script, inputs: Sequence[Array], y: Array) -> tuple[Word, ...]:
    """The words of the program that ends with y; inputs broadcast to it, and all lie however they like."""
    arrays = (*(np.broadcast_to(a, y.shape) for a in inputs), y)
    loops = collapse(y.shape, [a.strides for a in arrays])
    direct = [_is_direct(a, loops, i) for i, a in enumerate(arrays)]
    rooms = _rooms(script, direct)
    place = ROOM_BYTES // 4 // max(rooms.count, 1) // 16 * 16
    *outer, rows, width = loops.shape
    most = min(_MOST, place - _SPARE)
    wide = min(width, most // 16 * 16)
    tall = min(rows, most // wide) if wide == width < _FLAT else 1
    words: list[Word] = [len(arrays), len(outer), rows, width, tall, wide, math.prod(outer), len(rooms.results)]
    words += [len(script.instructions), *outer]
    assert len(words) == HEAD + len(outer)
    for number, array in enumerate(arrays):
        *further, down, step = loops.strides[number]
        at = rooms.copies.get(number, 0) * place * 4
        words += [array.ctypes.data, array.dtype == BOOL, direct[number], at, down, step, *further]
    words += [4 * place * n for n in rooms.results]
    return (*words, *_code(script))


def _code(script: Script) -> list[Word]:
    """Values as the interpreter numbers them: inputs, output, the results of all instructions but the last."""
    words: list[Word] = []
    for number, instruction in enumerate(script.instructions):
        y = script.inputs if number == len(script.instructions) - 1 else script.inputs + 1 + number
        read = [v + (v >= script.inputs) for v in instruction.operands]
        p, q = (*instruction.numbers, 0.0, 0.0)[:2]
        words += [NUMBERS[instruction.opcode], y, *(*read, 0, 0, 0)[:3], float(p), float(q)]
    return words


def fits(script: Script) -> bool:
    """Whether there is room for it, and for blocks that are worth it."""
    return 2 * len(script.instructions) + script.inputs <= 64
