"""Products of matrices in one form, for the kernels of `matmul`, `gemm` and `fused_matmul`."""

import math
from collections.abc import Iterator

import numpy as np
from attrs import frozen

from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape

_LEAST_FACTOR = 2.0**-20


def is_mild(factor: float) -> bool:
    """Returns whether b may be multiplied by the factor instead of the sums, in float32.

    No further element overflows, and only elements of b below 2**-106 may become 0.
    """
    return _LEAST_FACTOR <= abs(factor) <= 1


@frozen(eq=False)
class Product:
    """Matrices y = a @ b, and the tensor to add: none, y itself, or a view, maybe with strides of 0.

    One matrix, or a batch of them; then all tensors have the same leading axes.
    """

    a: Array
    b: Array
    y: Array
    added: tuple[Array, ...] = ()

    @property
    def lead(self) -> Shape:
        """Returns the lengths of the batch; () for one matrix."""
        return self.y.shape[:-2]

    def __getitem__(self, place: tuple[int, ...]) -> "Product":
        """Returns one matrix of the batch."""
        return Product(self.a[place], self.b[place], self.y[place], tuple(v[place] for v in self.added))


def batched(a: Array, b: Array, y: Array, added: tuple[Array, ...] = ()) -> Product:
    """Returns the matrices of batches; those of one b are a single matrix if strides can express it.

    At most one tensor is added; it broadcasts to y.
    """
    wide = tuple(v if v.shape == y.shape else np.broadcast_to(v, y.shape) for v in added)
    if b.ndim == 2 and all(map(_flattens, (a, y, *wide))):
        return Product(_flat(a), b, _flat(y), tuple(map(_flat, wide)))
    left, right = (_spread(v, y.shape[:-2]) for v in (a, b))
    return Product(left, right, y, wide)


def _spread(array: Array, lead: Shape) -> Array:
    """Returns the matrices of a batch of that shape."""
    return array if array.shape[:-2] == lead else np.broadcast_to(array, (*lead, *array.shape[-2:]))


def products(a: Array, b: Array, y: Array, added: tuple[Array, ...] = ()) -> Iterator[Product]:
    """Yields the matrices of `batched`, one after the other."""
    batch = batched(a, b, y, added)
    return (batch[place] for place in np.ndindex(batch.lead))


def _flattens(array: Array) -> bool:
    """Returns whether a batch of matrices is one matrix without a copy."""
    return array.flags.c_contiguous or Layout.of(array).reshape(_flat_shape(array)) is not None


def _flat(array: Array) -> Array:
    return array.reshape(_flat_shape(array))


def _flat_shape(array: Array) -> Shape:
    return math.prod(array.shape[:-1]), array.shape[-1]
