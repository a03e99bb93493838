"""alpha * A @ B + beta * C, where A and B may be transposed (ONNX Gemm-13)."""

import math
from functools import partial

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.thunks import in_turn
from ops.movement.reshape import reshape
from ops.products.blas import blas_reads
from ops.products.kernels import GEMM_KERNELS
from ops.products.matmul import check_factors, is_half, not_matrices, not_vectors, single_copies
from ops.products.onednn import PACKED
from ops.products.onednn_strided import STRIDED
from ops.schema.attributes import Attribute, flag, number
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at, unless
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import FLOATS, Array, TensorSpec, broadcast_shapes

_BLOCK_BYTES = 1 << 16
"""Bytes of beta * C that are expanded at a time: they stay in a second-level cache."""

_not_half = unless(is_half, "not float16")


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    a, b = inputs[:2]
    check_factors(a, b)
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(f"takes matrices, not {a} and {b}")
    left = a.shape[::-1] if attrs["trans_a"] else a.shape
    right = b.shape[::-1] if attrs["trans_b"] else b.shape
    if left[1] != right[0]:
        raise ShapeError(f"{left[1]} columns against {right[0]} rows")
    y = a.with_shape((left[0], right[1]))
    for c in inputs[2:]:
        if c.dtype != a.dtype:
            raise DtypeError(f"c is {c.dtype}, not {a.dtype}")
        if broadcast_shapes(c.shape, y.shape) != y.shape:
            raise ShapeError(f"c of shape {c.shape} does not broadcast to {y.shape}")
    if a.dtype not in FLOATS and not (attrs["alpha"].is_integer() and attrs["beta"].is_integer()):
        raise AttributeValueError(f"alpha {attrs['alpha']} and beta {attrs['beta']} must be whole for {a.dtype}")
    return (y,)


def _block(y: TensorSpec) -> TensorSpec:
    row = y.shape[1] * y.dtype.itemsize
    return y.with_shape((min(y.shape[0], max(1, _BLOCK_BYTES // max(row, 1))), y.shape[1]))


def _temporaries(signature: Signature) -> Specs:
    return (_block(signature.y),)


def _plus(y: Array, c: Array, beta: float, block: Array) -> list[Thunk]:
    """Returns the steps of y += beta * c, by blocks: numpy buffers a broadcast operand, but not a broadcast copy."""
    if beta == 0:
        return []
    if beta == 1 and c.shape == y.shape:
        return [partial(np.add, y, c, out=y)]
    wide, step = np.broadcast_to(c, y.shape), max(len(block), 1)
    repeats = c.ndim < 2 or c.shape[0] == 1
    thunks: list[Thunk] = []
    for start in range(0, len(y), step):
        target = y[start : start + step]
        part = block[: len(target)]
        if start == 0 or not repeats:
            thunks.append(partial(np.copyto, part, wide[start : start + step]))
            thunks += _times(part, beta)
        thunks.append(partial(np.add, target, part, out=target))
    return thunks


def _times(y: Array, factor: float) -> list[Thunk]:
    if factor == 1:
        return []
    return [partial(np.multiply, y, np.asarray(factor).astype(y.dtype), out=y)]


def _thunk(inputs: tuple[Array, ...], y: Array, attrs: Attrs, block: Array) -> Thunk:
    a = inputs[0].T if attrs["trans_a"] else inputs[0]
    b = inputs[1].T if attrs["trans_b"] else inputs[1]
    added = [t for c in inputs[2:] for t in _plus(y, c, attrs["beta"], block)]
    return in_turn(partial(np.matmul, a, b, out=y), *_times(y, attrs["alpha"]), *added)


def _gemm(call: Binding) -> Thunk:
    (block,) = call.temporaries
    return _thunk(call.inputs, call.y, call.attrs, block)


def _half_temporaries(signature: Signature) -> Specs:
    copies = single_copies(signature)
    return *copies, _block(copies[-1])


def _half(call: Binding) -> Thunk:
    *inputs, y, block = call.temporaries
    widen = [partial(np.copyto, wide, narrow) for wide, narrow in zip(inputs, call.inputs, strict=True)]
    narrowed = partial(np.copyto, call.y, y, casting="unsafe")
    return in_turn(*widen, _thunk(tuple(inputs), y, call.attrs, block), narrowed)


def _cost(signature: Signature) -> Cost:
    depth = signature.x.shape[0 if signature.attrs["trans_a"] else 1]
    return Cost(2 * signature.y.size * depth, signature.nbytes)


def _gradient(b: Backward) -> Terms:
    """Returns the gradients: that of a factor is a product of dy and the other one, each maybe transposed."""
    a, c, trans_a, trans_b = *b.inputs[:2], b.attrs["trans_a"], b.attrs["trans_b"]

    def product(left: Tensor, right: Tensor, trans_left: bool, trans_right: bool) -> Tensor:
        return b.apply1(GEMM, left, right, alpha=b.attrs["alpha"], trans_a=trans_left, trans_b=trans_right)

    def of_a() -> Tensor:
        return product(c, b.dy, trans_b, True) if trans_a else product(b.dy, c, False, not trans_b)

    def of_b() -> Tensor:
        return product(b.dy, a, True, trans_a) if trans_b else product(a, b.dy, not trans_a, False)

    def of_c() -> Tensor:
        total = b.sum_to(b.dy, b.signature.inputs[2].shape)
        return total if b.attrs["beta"] == 1 else total * b.attrs["beta"]

    return b.terms(of_a, of_b, of_c)[: len(b.inputs)]


GEMM = OpSchema(
    name="gemm",
    summary="alpha * A @ B + beta * C, where C broadcasts to the product.",
    infer=_infer,
    kernels=(
        Kernel("blas, through float32", _half, _half_temporaries, unsupported=_not_half),
        Kernel("blas, a vector", _gemm, _temporaries, contiguous=contiguous_at(0, 1), unsupported=not_vectors),
        Kernel("blas", _gemm, _temporaries, reads=blas_reads, unsupported=not_matrices),
        *GEMM_KERNELS,
        PACKED,
        STRIDED,
    ),
    arity=(2, 3),
    attributes=(
        Attribute("alpha", number, 1.0),
        Attribute("beta", number, 1.0),
        Attribute("trans_a", flag, False),
        Attribute("trans_b", flag, False),
    ),
    cost=_cost,
    gradient=_gradient,
)
OPS = (GEMM,)


def gemm(
    a: V,
    b: Operand,
    c: Operand | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> V:
    """Returns alpha * a @ b + beta * c.

    `a` is (M, K) or, where transposed, (K, M), `b` likewise, and `c` broadcasts to (M, N).
    """
    more = (b,) if c is None else (b, c)
    return apply1(GEMM, a, *more, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b)


def linear(x: V, weight: Operand, bias: Operand | None = None) -> V:
    """Returns x @ weight.T + bias; `x` is (..., K), `weight` (N, K), `bias` (N,)."""
    shape = x.spec.shape
    if len(shape) == 2:
        return gemm(x, weight, bias, trans_b=True)
    rows = gemm(reshape(x, (math.prod(shape[:-1]), shape[-1])), weight, bias, trans_b=True)
    return reshape(rows, (*shape[:-1], rows.spec.shape[1]))
