"""Products of matrices in one form: what `matmul`, `gemm` and `fused_matmul` have in common for their kernels."""

import math
from collections.abc import Iterator

import numpy as np
from attrs import frozen

from ops.layout import Layout
from ops.schema import Binding
from ops.spec import Array, Shape

BIAS, RESIDUAL = 2, 3
"""Positions of what is added to a column, and to an element."""
GELU_ERF, GELU_TANH, SILU = "gelu_erf", "gelu_tanh", "silu"


@frozen(eq=False)
class Product:
    """One matrix y = a @ b, and what is added to it, which may be y itself, or a view that repeats itself."""

    a: Array
    b: Array
    y: Array
    residual: Array | None = None


def products(call: Binding, transpose_b: bool = False) -> Iterator[Product]:
    """The matrices of a call. Batches are one matrix where there is one b, and strides can say so."""
    a, b, y = call.x, call.inputs[1], call.y
    b = b.swapaxes(-1, -2) if transpose_b else b
    added = np.broadcast_to(call.inputs[RESIDUAL], y.shape) if len(call.inputs) > RESIDUAL else None
    if b.ndim == 2 and all(_flattens(v) for v in (a, y, added) if v is not None):
        yield Product(_flat(a), b, _flat(y), None if added is None else _flat(added))
        return
    batch = y.shape[:-2]
    left, right = (np.broadcast_to(v, (*batch, *v.shape[-2:])) for v in (a, b))
    for i in np.ndindex(batch):
        yield Product(left[i], right[i], y[i], None if added is None else added[i])


def _flattens(array: Array) -> bool:
    """Whether batches of matrices are one matrix where they lie."""
    return Layout.of(array).reshape(_flat_shape(array)) is not None


def _flat(array: Array) -> Array:
    return array.reshape(_flat_shape(array))


def _flat_shape(array: Array) -> Shape:
    return math.prod(array.shape[:-1]), array.shape[-1]
