"""The fused product with BLAS: each block of rows is finished while it is in the cache."""

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from ops.common.epilogue import BIAS, GELU_ERF, GELU_TANH, RESIDUAL, SILU, finish, hold, needs_sums
from ops.common.thunks import in_turn
from ops.elementwise.smooth import GELU, SWISH
from ops.products.blas import blas_reads, is_vector_product
from ops.products.case import Product, products
from ops.schema.backends import NUMPY
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Thunk, contiguous_at, no_contiguity, unless
from ops.schema.workspace import bytes_spec, carve
from ops.tensor.limits import constant
from ops.tensor.spec import Array, TensorSpec, spec_of

_SUMS_BYTES = 256 << 10
"""Most bytes of sums before a tensor is added to them, unless one row is longer: they stay in a second-level cache."""
_SMOOTH: Mapping[str, tuple[OpSchema, Attrs]] = {
    GELU_ERF: (GELU, {"approximate": "none"}),
    GELU_TANH: (GELU, {"approximate": "tanh"}),
    SILU: (SWISH, {"alpha": 1.0}),
}


def _scratch_spec(signature: Signature) -> TensorSpec:
    """Returns the spec of the sums of a block of rows."""
    width, rows = signature.y.shape[-1], math.prod(signature.y.shape[:-1])
    most = max(1, _SUMS_BYTES // max(1, width * signature.y.dtype.itemsize))
    return signature.y.with_shape((min(rows, most), width))


def _scratch_specs(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of sums (empty if they are made in y), and of the bytes that the activation needs."""
    buffer = _scratch_spec(signature)
    smooth = _smooth_bytes(buffer, signature.attrs["activation"])
    return buffer if needs_sums(signature) else buffer.with_shape((0,)), bytes_spec(smooth)


def _smooth_bytes(block: TensorSpec, activation: str) -> int:
    if activation not in _SMOOTH:
        return 0
    schema, attrs = _SMOOTH[activation]
    signature = schema.sign([block], attrs)
    return schema.kernel(signature, (NUMPY,)).workspace(signature)


def _bind(call: Binding) -> Thunk:
    buffer, rest = call.temporaries
    steps: list[Thunk] = []
    whole = not needs_sums(call.signature)
    b = call.inputs[1].swapaxes(-1, -2) if call.attrs["transpose_b"] else call.inputs[1]
    if whole:
        steps.append(partial(np.matmul, call.x, b, out=call.y))
    for product in products(call.x, b, call.y, call.inputs[RESIDUAL:]):
        for rows in _row_blocks(len(product.y), _scratch_spec(call.signature).shape[0]):
            if whole:
                steps += _finished(call, product, rows, product.y[rows], rest)
                continue
            sums = buffer[: len(product.y[rows])]
            steps.append(partial(np.matmul, product.a[rows], product.b, out=sums))
            steps += _finished(call, product, rows, sums, rest)
    return in_turn(*steps)


def _row_blocks(rows: int, most: int) -> Iterator[slice]:
    for start in range(0, rows, max(most, 1)):
        yield slice(start, min(start + most, rows))


def _finished(call: Binding, product: Product, rows: slice, sums: Array, rest: Array) -> Iterator[Thunk]:
    """Yields the steps from sums to some rows of y; both may be the same array."""
    y, attrs = product.y[rows], call.attrs
    if attrs["alpha"] != 1:
        yield partial(np.multiply, sums, constant(attrs["alpha"], y.dtype), sums)
    for bias in call.inputs[BIAS:RESIDUAL]:
        yield partial(np.add, sums, bias, sums)
    for added in product.added:
        yield partial(np.add, sums, added[rows], sums)
    if attrs["activation"] in _SMOOTH:
        yield _smoothed(sums, y, attrs["activation"], rest)
    elif needs_sums(call.signature):
        yield from finish(sums, y, None, None, attrs)
    else:
        yield from hold(sums, attrs)


def _smoothed(sums: Array, y: Array, activation: str, rest: Array) -> Thunk:
    schema, attrs = _SMOOTH[activation]
    signature = schema.sign([spec_of(y)], attrs)
    kernel = schema.kernel(signature, (NUMPY,))
    return kernel.bind(Binding(signature, (sums,), (y,), carve(rest, *kernel.temporaries(signature))))


def _has_vectors(signature: Signature) -> bool:
    """Returns whether some block has one row, or one column."""
    rows, block = math.prod(signature.y.shape[:-1]), _scratch_spec(signature).shape[0]
    return is_vector_product(signature) or (needs_sums(signature) and 1 in (block, rows % max(block, 1)))


def _kernel(name: str, *, vectors: bool) -> Kernel:
    """Returns the kernel for products with vectors, or without (`ops.products.blas.is_vector_product`)."""
    return Kernel(
        name,
        _bind,
        _scratch_specs,
        contiguous=contiguous_at(0, 1) if vectors else no_contiguity,
        reads=blas_reads,
        unsupported=unless(lambda signature: _has_vectors(signature) == vectors, "blocks of other lengths"),
    )


FUSED_BLAS = _kernel("blas, in blocks, a vector", vectors=True), _kernel("blas, in blocks", vectors=False)
"""float32 and float64."""
