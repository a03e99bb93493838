"""The places of marked elements. Imports numba: a door loads it."""

import numpy as np

from allocator.machine_code.entry import CALL, entry
from allocator.machine_code.memory import array_at, jitable, longs
from ops.index.args import PLACES
from ops.native.memory import octets, record_at
from ops.tensor.spec import Array


@jitable
def _places(marks: Array, first: int, shape: Array, y: Array, count: Array) -> None:
    at, last = count[0], len(shape) - 1
    for i in range(len(marks)):
        if marks[i]:
            if at < y.shape[1]:
                rest = first + i
                for axis in range(last, 0, -1):
                    y[axis, at] = rest % shape[axis]
                    rest //= shape[axis]
                y[0, at] = rest
            at += 1
    count[0] = at


@entry(CALL)
def places(address: int) -> int:
    """Appends the coordinates of all marks that are not 0; the arguments are a PLACES record."""
    args = record_at(address, PLACES)
    marks, shape, count = octets(args.marks, args.size), longs(args.shape, args.ndim), longs(args.count, 1)
    _places(marks, args.first, shape, array_at(args.y, (args.ndim, args.columns), np.int64), count)
    return 0
