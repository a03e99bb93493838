"""How the elements of a rectangle are copied: see ops.movement.copies."""

RUNS, TURNED, SINGLE = range(3)
"""Whole runs of bytes; rows that become columns; element by element."""
BLOCK = 16
"""Rows and columns that are turned at a time, as 16 vectors of 16 elements."""
HEAD = 13
"""Words of a move before those of its outer dimensions, three each."""
