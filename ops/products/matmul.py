"""Matrix products with broadcast batch dimensions (ONNX MatMul-13, numpy.matmul).

BLAS reads matrices in place if their elements are neighbours along one of the last two axes, so dense inputs and their
transposes are never copied.
"""

import math
from functools import partial
from typing import cast

import numpy as np

from ops.common.apply import V, apply
from ops.common.tiling import matmul_stripes
from ops.products.blas import blas_reads, is_vector_product
from ops.products.kernels import MATMUL_KERNELS
from ops.products.onednn import PACKED
from ops.products.onednn_strided import STRIDED
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at, unless
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import NUMBERS, Array, Shape, TensorSpec, broadcast_shapes

HALF, SINGLE = np.dtype("float16"), np.dtype("float32")


def check_factors(a: TensorSpec, b: TensorSpec) -> None:
    """Raises DtypeError where `a` and `b` are not numbers of one element type."""
    if a.dtype != b.dtype or a.dtype not in NUMBERS:
        raise DtypeError(f"takes numbers of one element type, not {a.dtype} and {b.dtype}")


def is_half(signature: Signature) -> bool:
    """Returns whether the first input is float16, which BLAS does not support."""
    return signature.x.dtype == HALF


_not_half = unless(is_half, "not float16")
not_vectors = unless(is_vector_product, "several rows and columns")
not_matrices = unless(lambda s: not is_vector_product(s), "one row or column")


def single_copies(signature: Signature) -> tuple[TensorSpec, ...]:
    """Returns the specs of all inputs and outputs in float32."""
    return tuple(s.with_dtype(SINGLE) for s in signature.inputs + signature.outputs)


def _infer(inputs: Specs, _: Attrs) -> Specs:
    a, b = inputs
    check_factors(a, b)
    if not a.ndim or not b.ndim:
        raise ShapeError(f"takes vectors and matrices, not {a} and {b}")
    left = a.shape if a.ndim > 1 else (1, *a.shape)
    right = b.shape if b.ndim > 1 else (*b.shape, 1)
    if left[-1] != right[-2]:
        raise ShapeError(f"{left[-1]} columns of {a.shape} against {right[-2]} rows of {b.shape}")
    outer = left[-2:-1] * (a.ndim > 1) + right[-1:] * (b.ndim > 1)
    return (a.with_shape(broadcast_shapes(left[:-2], right[:-2]) + outer),)


def _matmul(call: Binding) -> Thunk:
    return partial(np.matmul, *call.inputs, out=call.y)


def _half(call: Binding) -> Thunk:
    a, b, y = call.temporaries

    def run() -> None:
        np.copyto(a, call.inputs[0])
        np.copyto(b, call.inputs[1])
        np.matmul(a, b, out=y)
        np.copyto(call.y, y, casting="unsafe")

    return run


def matmul_cost(signature: Signature) -> Cost:
    """Returns two operations for each pair of elements that is multiplied; x has rows along its last axis."""
    return Cost(2 * signature.y.size * signature.x.shape[-1], signature.nbytes)


def _swapped(b: Backward, x: Tensor) -> Tensor:
    """Returns x with its last two axes exchanged: a view that BLAS reads in place."""
    last = len(x.shape)
    return b.transpose(x, (*range(last - 2), last - 1, last - 2))


def _rows_first(b: Backward, left: Tensor, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both batches of matrices as one matrix each, all rows in one axis."""
    rows = math.prod(left.shape[:-1])
    return b.reshape(left, (rows, left.shape[-1])), b.reshape(dy, (rows, dy.shape[-1]))


def _gradient(b: Backward) -> Terms:
    """Returns the gradients. Vectors are matrices of one row or column. A right factor that the whole batch shares has
    one product as its gradient, not a sum of many.
    """
    a, c = b.signature.inputs
    left: Shape = a.shape if a.ndim > 1 else (1, *a.shape)
    right: Shape = c.shape if c.ndim > 1 else (*c.shape, 1)
    batch = broadcast_shapes(left[:-2], right[:-2])
    dy = b.reshape(b.dy, (*batch, left[-2], right[-1]))

    def of_left() -> Tensor:
        term = b.matmul(dy, _swapped(b, b.reshape(b.inputs[1], right)))
        return term if a.ndim > 1 else b.reshape(term, (*batch, *a.shape))

    def of_right() -> Tensor:
        rows, slopes = b.reshape(b.x, left), dy
        if math.prod(right[:-2]) == 1 and left[:-2] == batch:
            rows, slopes = _rows_first(b, rows, slopes)
            return b.reshape(b.matmul(_swapped(b, rows), slopes), c.shape)
        term = b.matmul(_swapped(b, rows), slopes)
        return term if c.ndim > 1 else b.reshape(term, term.shape[:-1])

    return b.terms(of_left, of_right)


MATMUL = OpSchema(
    name="matmul",
    summary="Matrix products of the last two axes; leading axes broadcast, a vector is a single row or column.",
    infer=_infer,
    kernels=(
        Kernel("blas, through float32", _half, single_copies, unsupported=_not_half),
        Kernel("blas, a vector", _matmul, contiguous=contiguous_at(0, 1), unsupported=not_vectors),
        Kernel("blas", _matmul, reads=blas_reads, unsupported=not_matrices),
        *MATMUL_KERNELS,
        PACKED,
        STRIDED,
    ),
    arity=(2, 2),
    cost=matmul_cost,
    gradient=_gradient,
    stripes=matmul_stripes,
)
OPS = (MATMUL,)


def matmul(a: V | Array, b: V | Array) -> V:
    """Computes numpy.matmul: products of the last two axes.

    Leading axes broadcast; a vector is a single row or column.
    """
    return cast(V, apply(MATMUL, (a, b))[0])
