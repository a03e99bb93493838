"""The door to numba for the places of marked elements."""

from collections.abc import Callable
from functools import cache

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[[Array, int, Array, Array, Array], None]


@cache
def places() -> Compiled:
    """Returns f(marks, first, shape, y, count), which appends to y the coordinates of all marks that are not 0.

    `marks` is dense uint8, its first element stands at flat position `first` of a tensor of that shape. `y` (ndim,
    count) takes a column a mark, and nothing beyond its last column; `count` (1,) has the marks so far, and counts on.
    `marks` and `shape` may be read-only.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only this kernel wants it

    array, int64 = numba.types.Array, numba.int64
    read = (array(numba.uint8, 1, "C", readonly=True), int64, array(int64, 1, "C", readonly=True))
    signature = numba.void(*read, array(int64, 2, "C"), array(int64, 1, "C"))
    compiled: Compiled = compiled_once(_places, signature, error_model="numpy")
    return compiled


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
