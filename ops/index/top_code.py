"""The best k of many: a heap whose root is the worst of those chosen so far. Imports numba: a door loads it."""

from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable
from ops.index.args import BEST, NUMBERS
from ops.native.memory import record_at
from ops.tensor.spec import Array


@jitable
def _precedes(a: Any, b: Any, largest: bool) -> bool:
    """Returns whether an element is better than another; NaN is greater than all numbers."""
    if largest:
        return bool(a > b or (a != a and b == b))  # noqa: PLR0124 - NaN alone differs from itself
    return bool(a < b or (b != b and a == a))  # noqa: PLR0124


@jitable
def _sink(values: Array, places: Array, parent: int, count: int, largest: bool) -> None:
    """Lets element `parent` of a heap of `count` elements sink below all that are worse."""
    while 2 * parent + 1 < count:
        worst = parent
        for child in range(2 * parent + 1, min(2 * parent + 3, count)):
            a, b = values[child], values[worst]
            if _precedes(b, a, largest) or (places[child] > places[worst] and not _precedes(a, b, largest)):
                worst = child
        if worst == parent:
            return
        values[parent], values[worst] = values[worst], values[parent]
        places[parent], places[worst] = places[worst], places[parent]
        parent = worst


@jitable
def _top_k(data: Array, values: Array, places: Array, largest: bool) -> None:
    k = values.shape[1]
    for r in range(len(data)):
        row, heap, at = data[r], values[r], places[r]
        for i in range(k):
            heap[i], at[i] = row[i], i
        for parent in range(k // 2 - 1, -1, -1):
            _sink(heap, at, parent, k, largest)
        for i in range(k, len(row)):
            if _precedes(row[i], heap[0], largest):
                heap[0], at[0] = row[i], i
                _sink(heap, at, 0, k, largest)
        for count in range(k - 1, 0, -1):
            heap[0], heap[count] = heap[count], heap[0]
            at[0], at[count] = at[count], at[0]
            _sink(heap, at, 0, count, largest)


def _declare(dtype: Any) -> None:
    """Declares top_k_DTYPE, which finds the best elements of all rows; the arguments are a BEST record."""

    @entry(CALL, fastmath=EXACT, name=f"top_k_{np.dtype(dtype).name}")
    def top_k(address: int) -> int:
        args = record_at(address, BEST)
        data = array_at(args.data, (args.rows, args.length), dtype)
        values = array_at(args.values, (args.rows, args.k), dtype)
        _top_k(data, values, array_at(args.places, (args.rows, args.k), np.int64), args.largest != 0)
        return 0


for _dtype in NUMBERS:
    _declare(_dtype)
