"""Temporary arrays of a kernel, which lie one behind the other in its workspace."""

import math

import numpy as np

from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array, Shape, TensorSpec

STEP = CACHE_LINE
"""Each temporary starts at a multiple of this; so must the workspace."""


def _rounded(nbytes: int) -> int:
    return -(-nbytes // STEP) * STEP


def dense_bytes(*specs: TensorSpec) -> int:
    """Returns the bytes that `carve` needs for dense temporaries of these specs.

    Each temporary starts at a multiple of `STEP`.
    """
    return sum(_rounded(s.nbytes) for s in specs)


def bytes_spec(nbytes: int) -> TensorSpec:
    """Returns the spec of so many bytes, for what has no shape of its own."""
    return TensorSpec((nbytes,), np.dtype(np.uint8))


def carve(workspace: Array, *specs: TensorSpec) -> tuple[Array, ...]:
    """Returns dense arrays of these specs, in this order, inside the workspace."""
    arrays, start = [], 0
    for spec in specs:
        arrays.append(workspace[start : start + spec.nbytes].view(spec.dtype).reshape(spec.shape))
        start += _rounded(spec.nbytes)
    return tuple(arrays)


def prefix(scratch: Array, shape: Shape) -> Array:
    """Returns the first elements of a flat array, in that shape."""
    return scratch[: math.prod(shape)].reshape(shape)
