"""Where rows lie, read from words. Imports numba."""

from typing import Any

from ops.native.memory import jitable, word


@jitable
def header_words(words: int) -> Any:
    """How many words tell of rows."""
    return 3 + word(words, 2) + (word(words, 2) + 1) * word(words, 0)


@jitable
def place(words: int, array: int, row: int) -> Any:
    """The address of an array's row of that number."""
    depth = word(words, 2)
    record = 3 + depth + array * (depth + 1)
    address = word(words, record)
    for d in range(depth - 1, 0, -1):
        length = word(words, 3 + d)
        address += row % length * word(words, record + 1 + d)
        row = row // length
    return address + row * word(words, record + 1) if depth > 0 else address
