"""Products with a constant matrix by oneDNN: it is packed once, and all rows of a batch are those of one matrix."""

import math
from collections.abc import Mapping

import numpy as np

from ops.onednn import declarations as c
from ops.onednn.descriptors import Tensor, dense
from ops.onednn.nan_safe import call, packing
from ops.onednn.primitives import Operand, Primitive, reordered
from ops.products.onednn_products import Product, form_of, is_plain, operands_of, product_case, summed
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, all_contiguous, first_weights
from ops.schema.workspace import bytes_spec
from ops.tensor.spec import Array, Shape

_LARGE = 1 << 21
"""Weights of 8 MiB: they come from main memory for each call, since second-level caches are smaller."""
_MANY_ROWS = 512
"""Rows from which on the library is taken for products with large weights.
tools/bench_kernels.py --operators fused_matmul matmul gemm times both back-ends on the layers of its networks."""


def _packed_case(signature: Signature) -> Product:
    depth, width = signature.x.shape[-1], signature.y.shape[-1]
    rows = math.prod(signature.y.shape[:-1])
    return product_case(signature, dense((rows, depth)), Tensor((depth, width)), dense((rows, width)))


def _packed(signature: Signature) -> tuple[Primitive, ...]:
    return packing(_packed_case(signature), signature.threads)


def _unsupported_packed(signature: Signature) -> str:
    if 1 not in signature.constants or len(signature.inputs) < 2 or signature.inputs[1].ndim != 2:
        return "the second factor is not one constant matrix"
    if not is_plain(signature):
        return "not float32, or a product that the library does not have"
    if not _row_like(signature):
        return "an addition that is broadcast along rows"
    if _slower(signature):
        return "an addition, few rows or small weights: compiled code is faster"
    return "" if _packed(signature) else "the library has only reference code for it"


def _slower(signature: Signature) -> bool:
    """Returns whether our own kernels are taken; they add a tensor to sums in registers.

    The library is taken for large weights, from some number of rows on.
    tools/bench_kernels.py --operators fused_matmul matmul gemm times both back-ends.
    """
    rows, weights = math.prod(signature.y.shape[:-1]), signature.inputs[1].size
    if form_of(signature).residual:
        return True
    return weights < 2 * _LARGE if rows == 1 else rows < _MANY_ROWS or weights < _LARGE


def _row_like(signature: Signature) -> bool:
    """Returns whether the tensor to add has y's shape, or is one row, if the whole batch is one matrix."""
    added = [signature.inputs[p] for p in form_of(signature).residual]
    return all(s == signature.y or s.size == s.shape[-1] for s in added)


def _packed_temporaries(signature: Signature) -> Specs:
    return (bytes_spec(max(p.scratchpad for p in _packed(signature))),)


def _pack(signature: Signature, constants: Mapping[int, Array]) -> tuple[Array, ...]:
    if 1 not in constants:
        return ()
    primitive = _packed(signature)[0]
    dense_b = Tensor((signature.x.shape[-1], signature.y.shape[-1]), _matrix_strides(signature))
    source, layout = np.ascontiguousarray(constants[1]), dense_b.descriptor(primitive.at)
    return (reordered(source, layout, primitive.weights, primitive.threads),)


def _packed_specs(signature: Signature) -> Specs:
    primitive = _packed(signature)[0]
    return (primitive.packed_spec,) if 1 in signature.constants else ()


def _matrix_strides(signature: Signature) -> Shape:
    """Returns the strides of b (K, N), which is dense, maybe transposed."""
    depth, width = signature.x.shape[-1], signature.y.shape[-1]
    return (1, depth) if form_of(signature).transpose_b else (width, 1)


def _bind_packed(call_: Binding) -> Thunk:
    case = _packed_case(call_.signature)
    weights = Operand(c.WEIGHTS, _packed(call_.signature)[0].weights, call_.packed[0])
    return call(case, operands_of(call_, case, weights), call_.temporaries[0], call_.signature.threads, summed(call_))


PACKED = Kernel(
    "onednn",
    _bind_packed,
    _packed_temporaries,
    contiguous=all_contiguous,
    pack=_pack,
    packed_specs=_packed_specs,
    unread_after_pack=first_weights,
    unsupported=_unsupported_packed,
    backend=ONEDNN,
)
"""float32, one constant matrix b."""
