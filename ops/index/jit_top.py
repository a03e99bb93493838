"""The door to numba for choosing the best k of many: a heap whose root is the worst of those chosen so far."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[[Array, Array, Array, bool], None]


@cache
def top_k(dtype: np.dtype[Any]) -> Compiled:
    """Returns f(data, values, places, largest), which finds the best k elements of each row, and their places.

    `data` (rows, n) and `values` (rows, k) are dense arrays of `dtype`, `places` (rows, k) is of int64. The best comes
    first; of equal elements the first is the better one.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only this kernel wants it

    table, places = (numba.types.Array(numba.from_dtype(d), 2, "C") for d in (dtype, np.dtype("int64")))
    numba.extending.register_jitable(_sink)
    signature = numba.void(table, table, places, numba.boolean)
    compiled: Compiled = compiled_once(_top_k, signature)
    return compiled


def _sink(values: Array, places: Array, parent: int, count: int, largest: bool) -> None:
    """Lets element `parent` of a heap of `count` elements sink below all that are worse."""
    while 2 * parent + 1 < count:
        worst = parent
        for child in range(2 * parent + 1, min(2 * parent + 3, count)):
            a, b = values[child], values[worst]
            if (a == b and places[child] > places[worst]) or (a < b if largest else a > b):
                worst = child
        if worst == parent:
            return
        values[parent], values[worst] = values[worst], values[parent]
        places[parent], places[worst] = places[worst], places[parent]
        parent = worst


def _top_k(data: Array, values: Array, places: Array, largest: bool) -> None:
    k = values.shape[1]
    for r in range(len(data)):
        row, heap, at = data[r], values[r], places[r]
        for i in range(k):
            heap[i], at[i] = row[i], i
        for parent in range(k // 2 - 1, -1, -1):
            _sink(heap, at, parent, k, largest)
        for i in range(k, len(row)):
            if row[i] > heap[0] if largest else row[i] < heap[0]:
                heap[0], at[0] = row[i], i
                _sink(heap, at, 0, k, largest)
        for count in range(k - 1, 0, -1):
            heap[0], heap[count] = heap[count], heap[0]
            at[0], at[count] = at[count], at[0]
            _sink(heap, at, 0, count, largest)
