"""Arguments of compiled vector code: what kernels write, and what compiled code reads."""

from ops.native.records import record

ROWS = record("arrays rows loops: int64")
"""Loops over the leading dimensions of some arrays. The lengths of the loops follow, the outermost first; then, for
each array, its address and its bytes from turn to turn of each loop. See `ops.vector.rows`."""
PROGRAM = record("operands loops rows width block_rows block_width outer results instructions: int64")
"""An elementwise program. Blocks of rows of some width are computed at a time, within `outer` turns of `loops` loops.

    PROGRAM | lengths of loops | OPERAND, its strides along them | ... | scratch offsets of results | INSTRUCTION ...

Operands are the inputs and, last, the output; values are numbered in this order, the results of instructions behind
them.
"""
OPERAND = record("address is_bool is_direct scratch row_step step: int64")
"""An array: whether it is read where it lies, else the byte in the scratch buffer where a block of it is copied to;
bytes from row to row, and from element to element."""
INSTRUCTION = record("opcode y a b c: int64", "p q: float64")
"""The value written, three values read, two numbers; those that an opcode does not use are 0."""
MOST_VALUES = 96
"""Values of a program at most, inputs and output included."""
SCRATCH_BYTES = 32 << 10
"""The scratch buffer for blocks of all values: most of a cache of the first level."""
