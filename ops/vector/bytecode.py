"""Elementwise programs as the arguments that the compiled interpreter reads."""

import math
from collections.abc import Sequence

import numpy as np
from attrs import field, frozen

from ops.native.records import join_args, pack_args
from ops.tensor.spec import BOOL, Array
from ops.vector.args import INSTRUCTION, OPERAND, PROGRAM, SCRATCH_BYTES
from ops.vector.collapse import Loops, collapse
from ops.vector.opcodes import NUMBERS

SINGLE = np.dtype("float32")
_FLAT = 1024
"""A dimension of so many elements is cut; of a shorter one, several rows make a block."""
_MOST = 4096
"""Most elements of a block."""
_SPARE = 16
"""Elements behind each block in the scratch buffer that copies may change."""


@frozen
class Instruction:
    """One opcode: it reads the values `operands`, and writes a new one. `numbers` are its constants."""

    opcode: str
    operands: tuple[int, ...]
    numbers: tuple[float, ...] = ()


@frozen(eq=False)
class Script:
    """Instructions in their order; values are numbered: inputs, then the result of each instruction."""

    inputs: int
    instructions: list[Instruction] = field(factory=list)

    def append(self, opcode: str, *operands: int, numbers: tuple[float, ...] = ()) -> int:
        """Appends an instruction; returns the number of its result."""
        self.instructions.append(Instruction(opcode, operands, numbers))
        return self.inputs + len(self.instructions) - 1


@frozen(eq=False)
class _Scratch:
    """Which operands are copied into the scratch buffer, and the place of each result there, as numbers of places.

    Copies keep their places; a result takes that of one that is not read any more.
    """

    copies: dict[int, int]
    results: tuple[int, ...]
    count: int


def _is_direct(array: Array, loops: Loops, operand: int) -> bool:
    """Returns whether each block of an array is a run of floats in memory."""
    down, step = loops.strides[operand][-2:]
    rows, width = loops.shape[-2:]
    return array.dtype == SINGLE and step == 4 and (rows == 1 or width >= _FLAT or down == 4 * width)


def _scratch(script: Script, direct: Sequence[bool]) -> _Scratch:
    """Returns the places of values; `direct` says of the inputs and, last, of the output whether they need none."""
    copies = {v: n for n, v in enumerate(v for v, d in enumerate(direct) if not d)}
    last = {v: n for n, i in enumerate(script.instructions) for v in i.operands}
    free, count, results = list[int](), len(copies), dict[int, int]()
    for number, instruction in enumerate(script.instructions[:-1]):
        dying = {v for v in instruction.operands if v in results and last[v] == number}
        free += [results[v] for v in sorted(dying)]
        if not free:
            free.append(count)
            count += 1
        results[script.inputs + number] = free.pop()
    return _Scratch(copies, tuple(results.values()), count)


def encode(script: Script, inputs: Sequence[Array], y: Array) -> Array:
    """Returns the arguments of the program that ends with y; inputs broadcast to it, and all lie anywhere.

    An input of more dimensions than y has but one element, such as a bound of clip.
    """
    arrays = (*(np.broadcast_to(a if a.ndim <= y.ndim else a.reshape(()), y.shape) for a in inputs), y)
    loops = collapse(y.shape, [a.strides for a in arrays])
    direct = [_is_direct(a, loops, i) for i, a in enumerate(arrays)]
    scratch = _scratch(script, direct)
    floats = SCRATCH_BYTES // 4 // max(scratch.count, 1) // 16 * 16
    *outer, rows, width = loops.shape
    most = min(_MOST, floats - _SPARE)
    block_width = min(width, most // 16 * 16)
    head = pack_args(
        PROGRAM,
        operands=len(arrays),
        loops=len(outer),
        rows=rows,
        width=width,
        block_rows=min(rows, most // block_width) if block_width == width < _FLAT else 1,
        block_width=block_width,
        outer=math.prod(outer),
        results=len(scratch.results),
        instructions=len(script.instructions),
    )
    operands = list[Array | Sequence[int]]()
    for number, array in enumerate(arrays):
        *further, row_step, step = loops.strides[number]
        operand = pack_args(
            OPERAND,
            address=array.ctypes.data,
            is_bool=array.dtype == BOOL,
            is_direct=direct[number],
            scratch=scratch.copies.get(number, 0) * floats * 4,
            row_step=row_step,
            step=step,
        )
        operands += [operand, further]
    return join_args(head, outer, *operands, [4 * floats * n for n in scratch.results], *_code(script))


def _code(script: Script) -> list[Array]:
    """Returns the instructions, with the numbers of values for the interpreter: inputs, output, other results."""
    code: list[Array] = []
    for number, instruction in enumerate(script.instructions):
        y = script.inputs if number == len(script.instructions) - 1 else script.inputs + 1 + number
        operands = [v + (v >= script.inputs) for v in instruction.operands]
        a, b, c = (*operands, 0, 0, 0)[:3]
        p, q = (*instruction.numbers, 0.0, 0.0)[:2]
        code.append(pack_args(INSTRUCTION, opcode=NUMBERS[instruction.opcode], y=y, a=a, b=b, c=c, p=p, q=q))
    return code


def fits(script: Script) -> bool:
    """Returns whether its values have places, and blocks of them are worth it."""
    return 2 * len(script.instructions) + script.inputs <= 64
