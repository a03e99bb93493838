"""The door to numba for rows that are added where indices say; numpy's `add.at` takes an iteration an element."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[[Array, Array, Array], None]


@cache
def add_rows(dtype: np.dtype[Any]) -> Compiled:
    """Returns f(rows, places, sums): sums[i, places[j]] += rows[i, j] for all i and j, in this order.

    `rows` (I, J, N) and `sums` (I, K, N) are dense float32 or float64, `places` (J,) dense int64 below K. `rows` and
    `places` may be read-only.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only this kernel wants it

    element, array = numba.from_dtype(dtype), numba.types.Array
    read = (array(element, 3, "C", readonly=True), array(numba.int64, 1, "C", readonly=True))
    signature = numba.void(*read, array(element, 3, "C"))
    compiled: Compiled = compiled_once(_add_rows, signature, error_model="numpy")
    return compiled


def _add_rows(rows: Array, places: Array, sums: Array) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            place = places[j]
            for n in range(rows.shape[2]):
                sums[i, place, n] += rows[i, j, n]
