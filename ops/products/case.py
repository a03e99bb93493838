"""Products of matrices in one form: what `matmul`, `gemm` and `fused_matmul` have in common for their kernels."""

import math
from collections.abc import Iterator

import numpy as np
from attrs import frozen

from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape

BIAS, RESIDUAL = 2, 3
"""Positions of what is added to a column, and to an element, in a fused product."""
_LEAST_FACTOR = 2.0**-20


def is_mild(factor: float) -> bool:
    """Whether b may be multiplied by it instead of the sums, in float32.

    Nothing overflows that would not before, and nothing of b vanishes but what is next to nothing (below 2**-106).
    """
    return _LEAST_FACTOR <= abs(factor) <= 1


@frozen(eq=False)
class Product:
    """Matrices y = a @ b, and what is added to them: nothing, y itself, or a view that may repeat itself.

    One matrix, or a batch of them; then all tensors have the same axes in front.
    """

    a: Array
    b: Array
    y: Array
    added: tuple[Array, ...] = ()

    @property
    def lead(self) -> Shape:
        """Lengths of the batch; () for one matrix."""
        return self.y.shape[:-2]

    def __getitem__(self, place: tuple[int, ...]) -> "Product":
        """One matrix of the batch."""
        return Product(self.a[place], self.b[place], self.y[place], tuple(v[place] for v in self.added))


def batched(a: Array, b: Array, y: Array, added: tuple[Array, ...] = ()) -> Product:
    """The matrices of batches, which are one matrix where there is one b, and strides can say so.

    At most one tensor is added; it broadcasts to y.
    """
    wide = tuple(np.broadcast_to(v, y.shape) for v in added)
    if b.ndim == 2 and all(map(_flattens, (a, y, *wide))):
        return Product(_flat(a), b, _flat(y), tuple(map(_flat, wide)))
    left, right = (np.broadcast_to(v, (*y.shape[:-2], *v.shape[-2:])) for v in (a, b))
    return Product(left, right, y, wide)


def products(a: Array, b: Array, y: Array, added: tuple[Array, ...] = ()) -> Iterator[Product]:
    """`batched`, one matrix after the other."""
    found = batched(a, b, y, added)
    return (found[place] for place in np.ndindex(found.lead))


def _flattens(array: Array) -> bool:
    """Whether batches of matrices are one matrix where they lie."""
    return Layout.of(array).reshape(_flat_shape(array)) is not None


def _flat(array: Array) -> Array:
    return array.reshape(_flat_shape(array))


def _flat_shape(array: Array) -> Shape:
    return math.prod(array.shape[:-1]), array.shape[-1]
