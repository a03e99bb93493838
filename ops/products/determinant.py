"""Determinants of square matrices (ONNX Det-22), by elimination with the largest pivot of each column."""

import numpy as np

from ops.common.apply import V, apply1
from ops.common.indices import INT64
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import BOOL, TensorSpec

_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def _infer(inputs: Specs, _: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype not in _DTYPES:
        raise DtypeError(f"takes float32 or float64, not {x.dtype}")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"takes square matrices, not {x}")
    return (x.with_shape(x.shape[:-2]),)


def _temporaries(signature: Signature) -> Specs:
    """Returns the specs of all matrices, of products, of a row each, of multiples of it, of pivots and of truths."""
    n, count = signature.x.shape[-1], signature.y.size
    whole, row = signature.x.with_shape((count, n, n)), signature.x.with_shape((count, n))
    flat = row.with_shape((count * n,))
    return (
        whole,
        whole.with_shape((count * n * n,)),
        row,
        flat,
        TensorSpec((2, count), INT64),
        TensorSpec((count,), BOOL),
    )


class _Elimination:
    """The elimination of all matrices at once, column after column."""

    def __init__(self, call: Binding) -> None:
        count, n = call.y.size, call.x.shape[-1]
        self.x, self.y = call.x, call.y.reshape(count)
        self.left, self.products, self.row, self.multiples, (self.pivot, self.place), self.truth = call.temporaries
        self.rows = self.left.reshape(count * n, n)
        self.first = np.arange(count) * n

    def run(self) -> None:
        np.copyto(self.left.reshape(self.x.shape), self.x)
        self.y.fill(1)
        for k in range(self.left.shape[-1]):
            self._swap(k)
            np.multiply(self.y, self.left[:, k, k], out=self.y)
            self._eliminate(k)

    def _swap(self, k: int) -> None:
        """Brings the row with the largest element of column k to place k; each swap turns the sign."""
        sizes = prefix(self.multiples, (len(self.left), self.left.shape[-1] - k))
        np.abs(self.left[:, k:, k], out=sizes)
        np.argmax(sizes, axis=1, out=self.pivot)
        np.add(self.pivot, k, out=self.pivot)
        np.not_equal(self.pivot, k, out=self.truth)
        np.negative(self.y, out=self.y, where=self.truth)
        np.add(self.pivot, self.first, out=self.place)
        np.take(self.rows, self.place, axis=0, out=self.row, mode="clip")
        above = prefix(self.products, self.row.shape)
        np.copyto(above, self.left[:, k])
        self.rows[self.place] = above
        np.copyto(self.left[:, k], self.row)

    def _eliminate(self, k: int) -> None:
        """Subtracts multiples of row k from those below; where the pivot is 0, so is the determinant, and they stay."""
        pivots, below = self.left[:, k, k, None], self.left[:, k + 1 :, k + 1 :]
        multiples, products = prefix(self.multiples, below.shape[:2]), prefix(self.products, below.shape)
        multiples.fill(0)
        np.not_equal(pivots[:, 0], 0, out=self.truth)
        np.divide(self.left[:, k + 1 :, k], pivots, out=multiples, where=self.truth[:, None])
        np.multiply(multiples[:, :, None], self.left[:, k, None, k + 1 :], out=products)
        np.subtract(below, products, out=below)


def _bind(call: Binding) -> Thunk:
    return _Elimination(call).run


def _cost(signature: Signature) -> Cost:
    return Cost(signature.x.size * max(signature.x.shape[-1], 1), signature.nbytes)


DET = OpSchema(
    name="det",
    summary="The determinant of each matrix in the last two dimensions.",
    infer=_infer,
    kernels=(Kernel("numpy", _bind, _temporaries),),
    cost=_cost,
)
OPS = (DET,)


def det(x: V) -> V:
    """Returns the determinants of the square matrices in the last two dimensions of x."""
    return apply1(DET, x)
