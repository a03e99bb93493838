"""The door to numba for distinct slices: a stable merge sort of their positions, and numbers given in order."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ops.native.door import compiled_once
from ops.tensor.spec import Array

Compiled = Callable[[Array, bool, Array, Array, Array, Array, Array], int]
_RUN = 16
"""Slices that are sorted by insertion before runs are merged."""


@cache
def unique(dtype: np.dtype[Any]) -> Compiled:
    """Returns f(x, in_order, order, spare, inverse, first, counts), which counts the distinct slices x[:, i, :].

    `x` (outer, n, inner) is a dense array of `dtype`, maybe read-only; all others are int64[n]. Distinct slices are
    numbered in ascending order (lexicographically in C order) where `in_order` is set, else as they first occur:
    `inverse` takes the number of each slice, `first` where number k first occurs, `counts` how often (zeros behind the
    last number). NaN equals NaN and is greater than all numbers; -0.0 equals 0.0.
    """
    import numba  # noqa: PLC0415 - takes long to load, and only this kernel wants it

    for function in (_before, _sorted_run, _merged, _numbered, _counted):
        numba.extending.register_jitable(function)
    table = numba.types.Array(numba.from_dtype(dtype), 3, "C", readonly=True)
    places = numba.types.Array(numba.int64, 1, "C")
    signature = numba.int64(table, numba.boolean, *(places,) * 5)
    compiled: Compiled = compiled_once(_unique, signature)
    return compiled


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


def _sorted_run(x: Array, order: Array, begin: int, end: int) -> None:
    """Fills order[begin:end] with these very positions, sorted by insertion."""
    for i in range(begin, end):
        at = i
        while at > begin and _before(x, i, order[at - 1]):
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


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


def _numbered(x: Array, order: Array, inverse: Array) -> int:
    """Gives sorted slices their numbers; returns how many there are."""
    number = -1
    for i in range(len(order)):
        if i == 0 or _before(x, order[i - 1], order[i]):
            number += 1
        inverse[order[i]] = number
    return number + 1


def _counted(names: Array, inverse: Array, first: Array, counts: Array, in_order: bool) -> None:
    """Counts the numbers, and where `in_order` is not set renames each by its first occurrence."""
    first[:], counts[:], names[:] = 0, 0, -1
    new = 0
    for i in range(len(inverse)):
        number = inverse[i]
        if names[number] < 0:
            names[number] = number if in_order else new
            first[names[number]] = i
            new += 1
        inverse[i] = names[number]
        counts[names[number]] += 1


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
    number = _numbered(x, order, inverse)
    _counted(spare, inverse, first, counts, in_order)
    return number
