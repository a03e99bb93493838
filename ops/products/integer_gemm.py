"""Exact products of matrices of small integers, by BLAS: 258 products of differences of bytes fit into float32.

Differences of two bytes are at most 255, so 258 products sum up to less than 2^24, and every partial sum is a whole
number that float32 holds, in whatever order BLAS adds. Longer sums go piece by piece into int32, modulo 2^32.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from ops.common.boxes import pieces
from ops.schema.schema import Thunk
from ops.tensor.spec import Array

EXACT_DEPTH = 258
"""Most products of differences of bytes in one sum: 258 * 255 * 255 < 2^24."""


def accumulate(a: Array, b: Array, y: Array, product: Array, addend: Array, *, fresh: bool) -> Iterator[Thunk]:
    """Yields the steps of y += a @ b (y = a @ b if `fresh`) for whole numbers in float32.

    `product` (float32) and `addend` (int32) are scratch arrays of y's shape; `addend` is not used for a single piece.
    """
    if a.shape[-1] == 0 and fresh:
        yield partial(y.fill, 0)
    for start, stop in pieces(a.shape[-1], EXACT_DEPTH):
        yield partial(np.matmul, a[..., start:stop], b[..., start:stop, :], product)
        if fresh and start == 0:
            yield partial(np.copyto, y, product, casting="unsafe")
            continue
        yield partial(np.copyto, addend, product, casting="unsafe")
        yield partial(np.add, y, addend, y)


def centred(source: Array, zero: Array, buffer: Array) -> Iterator[Thunk]:
    """Yields the steps of buffer = source - zero in float32; `zero` is float32 and broadcasts."""
    yield partial(np.copyto, buffer, source)
    yield partial(np.subtract, buffer, zero, buffer)
