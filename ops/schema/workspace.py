"""Temporary arrays of a kernel, carved one behind the other out of the workspace that it declared."""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array, Shape, TensorSpec

_Signature = TypeVar("_Signature")
STEP = CACHE_LINE
"""Each temporary starts at a multiple of this; so must the workspace."""


def _rounded(nbytes: int) -> int:
    return -(-nbytes // STEP) * STEP


def dense_bytes(*specs: TensorSpec) -> int:
    """Returns the bytes that `carve` needs for dense temporaries of these specs.

    Each temporary starts at a multiple of `STEP`.
    """
    return sum(_rounded(s.nbytes) for s in specs)


def bytes_of(temporaries: Callable[[_Signature], Iterable[TensorSpec]]) -> Callable[[_Signature], int]:
    """Returns a kernel's `workspace` for the temporaries of its signature, which `carve` lays out."""

    def workspace(signature: _Signature) -> int:
        return dense_bytes(*temporaries(signature))

    return workspace


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
