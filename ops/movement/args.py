"""Arguments of compiled copies: what `ops.movement.copies` writes, and what its compiled code reads."""

from ops.native.records import record

RUNS, TRANSPOSED, SINGLE = range(3)
"""How the elements of a rectangle are copied: whole runs of bytes; rows that become columns; element by element."""
BLOCK = 16
"""Rows and columns that are transposed at a time, as 16 vectors of 16 elements."""
COPY = record(
    "size kind item source target: int64",
    "length source_step target_step: int64",
    "rows source_row target_row: int64",
    "block loops: int64",
)
"""Rectangles of one shape, of rows by `length` elements of `item` bytes.

`size` is the number of words of this record and its loops; source and target are addresses; steps are bytes from
element to element, source_row and target_row from row to row; one thread copies `block` rows at a time. A LOOP for each
of `loops` outer dimensions follows.
"""
LOOP = record("length source_step target_step: int64")
"""An outer dimension of rectangles."""
