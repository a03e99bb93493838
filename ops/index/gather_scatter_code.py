"""Elements that are read or written where indices say. Imports numba: `ops.native.door` loads it, on first use.

Words of `pick`: as `ops.index.gather_scatter` lays them: HEAD words, four for each outer loop, three for each index of
a tuple.
Words of `check`: room for the index that is refused and its dimension; then as `ops.index.gather_scatter` lays them.
"""

from typing import Any

from ops.index.gather_scatter_args import ADD_DOUBLES, ADD_FLOATS, ADD_INTS, CHECK_HEAD, GATHER, HEAD, LINE
from ops.movement.copies_emit import copy_bytes, load_1, load_2, load_4, load_8, store_1, store_2, store_4, store_8
from ops.native.memory import doubles, floats, ints, jitable, longs, octets, share, shorts, word


@jitable
def _index(address: int, size: int) -> int:
    found: int = longs(address, 1)[0] if size == 8 else ints(address, 1)[0]
    return found


@jitable
def _offset(words: int, picks: int, at: int) -> int:
    """Bytes from where a row begins to what its tuple of indices names."""
    total = 0
    for k in range(word(words, 7)):
        dim, step = word(picks, 3 * k), word(picks, 3 * k + 1)
        index = _index(at + word(picks, 3 * k + 2), word(words, 6))
        total += (index + dim if index < 0 else index) * step
    return total


@jitable
def _copy(target: int, source: int, count: int) -> None:
    if count == 4:
        store_4((target, load_4((source,))))
    elif count == 8:
        store_8((target, load_8((source,))))
    elif count == 1:
        store_1((target, load_1((source,))))
    elif count == 2:
        store_2((target, load_2((source,))))
    else:
        copy_bytes((target, source, count))


@jitable
def _add_ints(target: int, source: int, count: int, item: int) -> None:
    """Sums that do not fit go round, in any sign."""
    if item == 8:
        a, b = longs(target, count // 8), longs(source, count // 8)
        for i in range(count // 8):
            a[i] += b[i]
    elif item == 4:
        c, d = ints(target, count // 4), ints(source, count // 4)
        for i in range(count // 4):
            c[i] += d[i]
    elif item == 2:
        e, f = shorts(target, count // 2), shorts(source, count // 2)
        for i in range(count // 2):
            e[i] += f[i]
    else:
        g, h = octets(target, count), octets(source, count)
        for i in range(count):
            g[i] += h[i]


@jitable
def _combine(kind: int, target: int, source: int, count: int, item: int) -> None:
    if kind == ADD_FLOATS:
        a, b = floats(target, count // 4), floats(source, count // 4)
        for i in range(count // 4):
            a[i] += b[i]
    elif kind == ADD_DOUBLES:
        c, d = doubles(target, count // 8), doubles(source, count // 8)
        for i in range(count // 8):
            c[i] += d[i]
    elif kind == ADD_INTS:
        _add_ints(target, source, count, item)
    else:
        _copy(target, source, count)


@jitable
def _line(words: int, places: Any, first: int, last: int, some: Any) -> None:
    """Turns [first, last) of the innermost loop; of each run the bytes [from, to)."""
    kind, item = word(words, 0), word(words, 2)
    data_hop, index_hop, flat_hop = word(words, 10), word(words, 11), word(words, 12)
    picks = words + 8 * (HEAD + 4 * word(words, 8))
    data, at, flat = places
    start, count = some[0], some[1] - some[0]
    for j in range(first, last):
        named = data + j * data_hop + _offset(words, picks, at + j * index_hop) + start
        plain = flat + j * flat_hop + start
        if kind == GATHER:
            _copy(plain, named, count)
        else:
            _combine(kind, named, plain, count, item)


@jitable
def _line_of_singles(words: int, places: Any, first: int, last: int) -> None:
    """The same where elements of four bytes are gathered, with one index each."""
    data_hop, index_hop, flat_hop = word(words, 10), word(words, 11), word(words, 12)
    picks = words + 8 * (HEAD + 4 * word(words, 8))
    dim, step, size = word(picks, 0), word(picks, 1), word(words, 6)
    data, at, flat = places
    at += word(picks, 2)
    for j in range(first, last):
        index = _index(at + j * index_hop, size)
        named = data + j * data_hop + (index + dim if index < 0 else index) * step
        store_4((flat + j * flat_hop, load_4((named,))))


@jitable
def _lines(words: int, first: int, last: int, some: Any) -> None:
    """Rows [first, last) in the order in which indices lie."""
    inner = word(words, 9)
    number = first
    single = word(words, 0) == GATHER and word(words, 1) == 4 and word(words, 7) == 1
    while number < last:
        begin, rest = number % inner, number // inner
        end = min(inner, begin + last - number)
        data, at, flat = word(words, 3), word(words, 4), word(words, 5)
        for d in range(word(words, 8) - 1, -1, -1):
            length = word(words, HEAD + 4 * d)
            turn = rest % length
            data += turn * word(words, HEAD + 4 * d + 1)
            at += turn * word(words, HEAD + 4 * d + 2)
            flat += turn * word(words, HEAD + 4 * d + 3)
            rest //= length
        if single:
            _line_of_singles(words, (data, at, flat), begin, end)
        else:
            _line(words, (data, at, flat), begin, end, some)
        number += end - begin


def pick(words: int, part: int, parts: int) -> None:
    """Gathers rows, or scatters columns of rows: two indices may name one place, and the last one wins."""
    run, rows = word(words, 1), word(words, 9)
    for d in range(word(words, 8)):
        rows *= word(words, HEAD + 4 * d)
    if word(words, 0) == GATHER:
        first, last = share(rows, part, parts)
        _lines(words, first, last, (0, run))
    else:
        first, last = share((run + LINE - 1) // LINE, part, parts)
        if first < last:
            _lines(words, 0, rows, (first * LINE, min(run, last * LINE)))


@jitable
def _ends(words: int, offset: int) -> Any:
    """The least and the greatest of one index of all tuples."""
    total, inner = word(words, 5), word(words, 5)
    for d in range(word(words, 4)):
        total *= word(words, CHECK_HEAD + 2 * d)
    size, hop = word(words, 2), word(words, 6)
    least = greatest = _index(word(words, 1) + offset, size)
    for line in range(total // inner):
        at, rest = word(words, 1) + offset, line
        for d in range(word(words, 4) - 1, -1, -1):
            length = word(words, CHECK_HEAD + 2 * d)
            at += rest % length * word(words, CHECK_HEAD + 2 * d + 1)
            rest //= length
        for j in range(inner):
            index = _index(at + j * hop, size)
            least = min(least, index)
            greatest = max(greatest, index)
    return least, greatest


def check(words: int, _a: int, _b: int, _c: int) -> int:
    """0 where all indices are inside their dimensions; else tells one that is not."""
    picks = words + 8 * (CHECK_HEAD + 2 * word(words, 4))
    found = longs(word(words, 0), 2)
    for k in range(word(words, 3)):
        dim = word(picks, 2 * k)
        least, greatest = _ends(words, word(picks, 2 * k + 1))
        if least < -dim or greatest >= dim:
            found[0], found[1] = least if least < -dim else greatest, dim
            return 1
    return 0
