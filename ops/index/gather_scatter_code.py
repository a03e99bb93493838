"""Elements that are read or written where indices say. Imports numba: a door loads it, on first use."""

from typing import Any

from allocator.machine_code.entry import FOREIGN, entry
from allocator.machine_code.memory import jitable, longs
from ops.index.args import ADD_DOUBLES, ADD_FLOATS, ADD_INTS, GATHER, INDICES, LINE, LOOP, PICK, ROWS
from ops.movement.copies_emit import copy_bytes, load_1, load_2, load_4, load_8, store_1, store_2, store_4, store_8
from ops.native.memory import doubles, floats, ints, octets, record_at, records_at, share, shorts

_ROWS_BYTES, _INDICES_BYTES, _LOOP_BYTES, _PICK_BYTES = (r.itemsize for r in (ROWS, INDICES, LOOP, PICK))


@jitable
def _index(address: int, size: int) -> int:
    index: int = longs(address, 1)[0] if size == 8 else ints(address, 1)[0]
    return index


@jitable
def _offset(picks: int, count: int, size: int, place: int) -> int:
    """Returns the bytes from where a row begins to what its tuple of indices names."""
    total = 0
    for k in range(count):
        pick = record_at(picks + k * _PICK_BYTES, PICK)
        index = _index(place + pick.offset, size)
        total += (index + pick.dim if index < 0 else index) * pick.step
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
    """Adds integers with or without a sign; sums that do not fit wrap around."""
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
def _line(args: Any, picks: int, places: Any, turns: Any, part_of_row: Any) -> None:
    """Runs turns [first, last) of the innermost loop; of each row, the bytes [start, end)."""
    kind, item, size, depth = args.kind, args.item_bytes, args.index_bytes, args.picks
    data_step, index_step, flat_step = args.data_step, args.index_step, args.flat_step
    data, index, flat = places
    start, count = part_of_row[0], part_of_row[1] - part_of_row[0]
    for j in range(turns[0], turns[1]):
        indexed = data + j * data_step + _offset(picks, depth, size, index + j * index_step) + start
        plain = flat + j * flat_step + start
        if kind == GATHER:
            _copy(plain, indexed, count)
        else:
            _combine(kind, indexed, plain, count, item)


@jitable
def _line_of_singles(args: Any, picks: int, places: Any, turns: Any) -> None:
    """Runs turns [first, last) of the innermost loop, where elements of four bytes are gathered with one index each."""
    data_step, index_step, flat_step = args.data_step, args.index_step, args.flat_step
    pick, size = record_at(picks, PICK), args.index_bytes
    dim, step = pick.dim, pick.step
    data, indices, flat = places
    indices += pick.offset
    for j in range(turns[0], turns[1]):
        index = _index(indices + j * index_step, size)
        indexed = data + j * data_step + (index + dim if index < 0 else index) * step
        store_4((flat + j * flat_step, load_4((indexed,))))


@jitable
def _lines(address: int, first: int, last: int, part_of_row: Any) -> None:
    """Copies rows [first, last), counted in the order of the indices."""
    args = record_at(address, ROWS)
    loops = records_at(address + _ROWS_BYTES, args.loops, LOOP)
    picks = address + _ROWS_BYTES + args.loops * _LOOP_BYTES
    inner, number = args.length, first
    single = args.kind == GATHER and args.run_bytes == 4 and args.picks == 1
    while number < last:
        begin, rest = number % inner, number // inner
        end = min(inner, begin + last - number)
        data, index, flat = args.data, args.indices, args.flat
        for d in range(args.loops - 1, -1, -1):
            turn = rest % loops[d].length
            data += turn * loops[d].data_step
            index += turn * loops[d].index_step
            flat += turn * loops[d].flat_step
            rest //= loops[d].length
        if single:
            _line_of_singles(args, picks, (data, index, flat), (begin, end))
        else:
            _line(args, picks, (data, index, flat), (begin, end), part_of_row)
        number += end - begin


@entry()
def copy_rows(address: int, part: int, parts: int) -> None:
    """Gathers rows, or scatters columns of rows; `address`: a ROWS record, its loops and picks.

    Two indices may name one place, and the last one wins; so parts share the bytes of a row that is scattered.
    """
    args = record_at(address, ROWS)
    loops = records_at(address + _ROWS_BYTES, args.loops, LOOP)
    rows, run = args.length, args.run_bytes
    for d in range(args.loops):
        rows *= loops[d].length
    if args.kind == GATHER:
        first, last = share(rows, part, parts)
        _lines(address, first, last, (0, run))
    else:
        first, last = share((run + LINE - 1) // LINE, part, parts)
        if first < last:
            _lines(address, 0, rows, (first * LINE, min(run, last * LINE)))


@jitable
def _extremes(address: int, offset: int) -> Any:
    """Returns the least and the greatest of one index of all tuples."""
    args = record_at(address, INDICES)
    loops = records_at(address + _INDICES_BYTES, args.loops, LOOP)
    lines, size, inner, index_step = 1, args.index_bytes, args.length, args.index_step
    for d in range(args.loops):
        lines *= loops[d].length
    least = greatest = _index(args.indices + offset, size)
    for line in range(lines):
        place, rest = args.indices + offset, line
        for d in range(args.loops - 1, -1, -1):
            place += rest % loops[d].length * loops[d].index_step
            rest //= loops[d].length
        for j in range(inner):
            index = _index(place + j * index_step, size)
            least = min(least, index)
            greatest = max(greatest, index)
    return least, greatest


@entry(FOREIGN)
def check(address: int, _a: int, _b: int, _c: int) -> int:
    """Returns 0 where all indices are inside their dimensions; otherwise writes one that is not, and returns 1."""
    args = record_at(address, INDICES)
    picks = records_at(address + _INDICES_BYTES + args.loops * _LOOP_BYTES, args.picks, PICK)
    refused = longs(args.refused, 2)
    for k in range(args.picks):
        dim = picks[k].dim
        least, greatest = _extremes(address, picks[k].offset)
        if least < -dim or greatest >= dim:
            refused[0], refused[1] = least if least < -dim else greatest, dim
            return 1
    return 0
