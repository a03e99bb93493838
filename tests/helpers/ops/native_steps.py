"""Compiled functions for tests of programs, wrong wherever two parts overlap or a step begins too early."""

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import longs
from ops.native.memory import floats, real, share, word


@entry()
def scale(words: int, part: int, parts: int) -> None:
    """Computes y = factor * x. Words: x, y, elements, factor."""
    count, factor = word(words, 2), real(words, 3)
    first, last = share(count, part, parts)
    x, y = floats(word(words, 0), count), floats(word(words, 1), count)
    for i in range(first, last):
        y[i] = x[i] * factor


@entry()
def prefix(words: int, part: int, parts: int) -> None:
    """Computes y[i] = x[n - 1 - i] + 1, so each part reads what another one wrote before. Words: x, y, elements."""
    count = word(words, 2)
    first, last = share(count, part, parts)
    x, y = longs(word(words, 0), count), longs(word(words, 1), count)
    for i in range(first, last):
        y[i] = x[count - 1 - i] + 1


@entry()
def tell(words: int, part: int, parts: int) -> None:
    """Writes the number of parts where each part has its element. Words: places."""
    places = longs(word(words, 0), 64)
    places[part] = parts
