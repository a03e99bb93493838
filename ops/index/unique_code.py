"""Distinct slices: a stable merge sort of their positions, and numbers given in order.

Imports numba: a door loads it.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, fill, jitable, longs
from ops.index.args import NUMBERS, SLICES
from ops.native.memory import record_at
from ops.tensor.spec import Array

_RUN = 16
"""Slices that are sorted by insertion before runs are merged."""


@jitable
def _before(x: Array, a: int, b: int) -> bool:
    """Returns whether slice a stands before slice b."""
    for o in range(x.shape[0]):
        for i in range(x.shape[2]):
            p, q = x[o, a, i], x[o, b, i]
            if p < q or (q != q and p == p):  # noqa: PLR0124 - NaN alone is not itself
                return True
            if q < p or (p != p and q == q):  # noqa: PLR0124
                return False
    return False


@jitable
def _sorted_run(x: Array, order: Array, begin: int, end: int) -> None:
    """Fills order[begin:end] with these very positions, sorted by insertion."""
    for i in range(begin, end):
        at = i
        while at > begin and _before(x, i, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@jitable
def _merged(x: Array, source: Array, target: Array, begin: int, width: int) -> None:
    """Merges two sorted runs of `source`, each of `width` or what is left; of equals the first run's come first."""
    middle = min(begin + width, len(source))
    end = min(middle + width, len(source))
    left, right = begin, middle
    for at in range(begin, end):
        if left < middle and (right >= end or not _before(x, source[right], source[left])):
            target[at] = source[left]
            left += 1
        else:
            target[at] = source[right]
            right += 1


@jitable
def _numbered(x: Array, order: Array, inverse: Array) -> int:
    """Gives sorted slices their numbers; returns how many there are."""
    number = -1
    for i in range(len(order)):
        if i == 0 or _before(x, order[i - 1], order[i]):
            number += 1
        inverse[order[i]] = number
    return number + 1


@jitable
def _counted(names: Array, inverse: Array, first: Array, counts: Array, in_order: bool) -> None:
    """Counts the numbers, and where `in_order` is not set renames each by its first occurrence."""
    fill(first, 0)
    fill(counts, 0)
    fill(names, -1)
    new = 0
    for i in range(len(inverse)):
        number = inverse[i]
        if names[number] < 0:
            names[number] = number if in_order else new
            first[names[number]] = i
            new += 1
        inverse[i] = names[number]
        counts[names[number]] += 1


@jitable
def _unique(  # noqa: PLR0917 - arrays of two types cannot share a tuple
    x: Array, in_order: bool, order: Array, spare: Array, inverse: Array, first: Array, counts: Array
) -> int:
    n, width = len(order), _RUN
    for begin in range(0, n, width):
        _sorted_run(x, order, begin, min(begin + width, n))
    while width < n:
        for begin in range(0, n, 2 * width):
            _merged(x, order, spare, begin, width)
        order, spare = spare, order
        width *= 2
    number: int = _numbered(x, order, inverse)
    _counted(spare, inverse, first, counts, in_order)
    return number


def _declare(dtype: Any) -> None:
    """Declares unique_DTYPE, which returns the number of distinct slices; the arguments are a SLICES record."""

    @entry(CALL, fastmath=EXACT, name=f"unique_{np.dtype(dtype).name}")
    def unique(address: int) -> int:
        args = record_at(address, SLICES)
        x, n = array_at(args.x, (args.outer, args.slices, args.inner), dtype), args.slices
        order, spare, inverse = longs(args.order, n), longs(args.spare, n), longs(args.inverse, n)
        total: int = _unique(x, args.in_order != 0, order, spare, inverse, longs(args.first, n), longs(args.counts, n))
        return total


for _dtype in NUMBERS:
    _declare(_dtype)
