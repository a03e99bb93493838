"""Corrections of integer products for their zero points, compiled. Imports numba: a door loads it."""

from allocator.machine_code.entry import EXACT, entry
from allocator.machine_code.memory import jitable
from ops.native.memory import ints, octets, record_at, share, signed_octets
from ops.quantised.args import CORRECT, START_SUMS


@jitable
def _zero(address: int, signed: int) -> int:
    if address == 0:
        return 0
    return int(signed_octets(address, 1)[0]) if signed else int(octets(address, 1)[0])


@entry(fastmath=EXACT)
def start_sums(address: int, part: int, parts: int) -> None:
    """Writes what sums begin with: minus the zero point of a, as uint8, times sums of columns. See START_SUMS."""
    args = record_at(address, START_SUMS)
    first, last = share(args.count, part, parts)
    zero = _zero(args.zero, args.signed) + (128 if args.signed else 0)
    sums, starts = ints(args.column_sums, args.count), ints(args.starts, args.count)
    for i in range(first, last):
        starts[i] = -zero * sums[i]


@entry(fastmath=EXACT)
def correct(address: int, part: int, parts: int) -> None:
    """Subtracts zero points of b times sums of rows of a - zero from the product. See CORRECT."""
    args = record_at(address, CORRECT)
    depth, columns = args.depth, args.columns
    zero, zeros = _zero(args.zero, args.signed), ints(args.b_zeros, columns)
    first, last = share(args.rows, part, parts)
    for row in range(first, last):
        total, start = -zero * depth, args.a + row * depth
        if args.signed:
            for value in signed_octets(start, depth):
                total += value
        else:
            for value in octets(start, depth):
                total += value
        y = ints(args.y + 4 * row * columns, columns)
        for i in range(columns):
            y[i] -= zeros[i] * total
