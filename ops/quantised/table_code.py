"""Tables of codes, compiled. Imports numba: loaded by ops.native.door."""

from ops.native.memory import octets, share, word

_PIECE = 1 << 12


def look_up(words: int, part: int, parts: int) -> None:
    """Writes table[x]. The words: x, y, table, lines, bytes of one, and those from one of x, and of y, to the next."""
    lines, length, table = word(words, 3), word(words, 4), octets(word(words, 2), 256)
    pieces = (length + _PIECE - 1) // _PIECE
    first, last = share(lines * pieces, part, parts)
    for job in range(first, last):
        line, start = job // pieces, job % pieces * _PIECE
        count = min(_PIECE, length - start)
        x = octets(word(words, 0) + line * word(words, 5) + start, count)
        y = octets(word(words, 1) + line * word(words, 6) + start, count)
        for i in range(count):
            y[i] = table[x[i]]
