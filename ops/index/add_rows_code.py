"""Rows that are added where indices say. Imports numba: a door loads it."""

from typing import Any

import numpy as np

from allocator.machine_code.entry import CALL, EXACT, entry
from allocator.machine_code.memory import array_at, jitable, longs
from ops.index.args import ADD_ROWS
from ops.native.memory import record_at
from ops.tensor.spec import Array


@jitable
def _add_rows(rows: Array, places: Array, sums: Array) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            place = places[j]
            for n in range(rows.shape[2]):
                sums[i, place, n] += rows[i, j, n]


def _declare(dtype: Any) -> None:
    """Declares add_rows_DTYPE, which adds all rows; the arguments are an ADD_ROWS record."""

    @entry(CALL, fastmath=EXACT, name=f"add_rows_{np.dtype(dtype).name}")
    def add_rows(address: int) -> int:
        args = record_at(address, ADD_ROWS)
        rows = array_at(args.rows, (args.groups, args.count, args.width), dtype)
        sums = array_at(args.sums, (args.groups, args.total, args.width), dtype)
        _add_rows(rows, longs(args.places, args.count), sums)
        return 0


for _dtype in (np.float32, np.float64):
    _declare(_dtype)
