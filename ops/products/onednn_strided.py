"""Products of matrices by oneDNN that read both factors in place, with strides: computed matrices, and batches."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from ops.onednn import declarations as c
from ops.onednn.descriptors import Tensor, dense
from ops.onednn.library import library
from ops.onednn.nan_safe import call, usable
from ops.onednn.primitives import Operand, Primitive
from ops.products.onednn_products import Product, form_of, is_plain, operands_of, product_case, summed
from ops.schema.backends import ONEDNN
from ops.schema.schema import Binding, Kernel, Signature, Specs, Thunk, contiguous_from
from ops.schema.workspace import bytes_spec
from ops.tensor.layout import Layout, dense_strides
from ops.tensor.spec import Array, Shape


def _case(signature: Signature, a: Tensor, b: Tensor) -> Product:
    y = signature.y.shape
    return product_case(signature, a, b, dense((*(1 for _ in range(_ndim(y) - len(y))), *y)))


def _ndim(y: Shape) -> int:
    """Returns in how many dimensions the library gets them: rows of heads side by side are described in four."""
    return len(y) if len(y) == 2 else max(len(y), 4)


def _orders(shape: Shape) -> Iterator[Tensor]:
    """Yields the layouts that are read: rows, columns, rows of heads side by side, and their columns."""
    last = len(shape) - 1
    tails: list[Shape] = [(last - 1, last), (last, last - 1)]
    if last > 1:
        tails += [(last - 1, last - 2, last), (last, last - 2, last - 1)]
    for tail in tails:
        yield _permuted(shape, (*range(last + 1 - len(tail)), *tail))


def _matching(layout: Layout) -> Iterator[Tensor]:
    """Yields those of `_orders` that a layout equals; dimensions of one element may have any stride."""
    for order in _orders(layout.shape):
        pairs = zip(layout.shape, layout.strides, order.strides, strict=True)
        if all(n == 1 or s == step * layout.itemsize for n, s, step in pairs):
            yield order


def _reads(layout: Layout) -> bool:
    return len(layout.shape) > 1 and any(True for _ in _matching(layout))


def _permuted(shape: Shape, order: Shape) -> Tensor:
    strides = dense_strides(tuple(shape[i] for i in order), 1)
    return Tensor(shape, tuple(strides[order.index(i)] for i in range(len(shape))))


def _shapes(signature: Signature) -> tuple[Shape, Shape]:
    """Returns the shapes of a and b, in as many dimensions as the library gets."""
    ndim = _ndim(signature.y.shape)
    b = signature.inputs[1].shape
    right = (*b[:-2], b[-1], b[-2]) if form_of(signature).transpose_b else b
    return tuple((*(1 for _ in range(ndim - len(s))), *s) for s in (signature.x.shape, right))  # type: ignore[return-value]


def _layouts(signature: Signature) -> tuple[Primitive, ...]:
    """Returns the primitives for all layouts; the scratchpad is large enough for each."""
    a, b = _shapes(signature)
    return usable([_case(signature, x, y) for x, y in product(_orders(a), _orders(b))], signature.threads)


def _unsupported(signature: Signature) -> str:
    if not is_plain(signature):
        return "not float32, or a product that the library does not have"
    if _slower(signature):
        return "the second factor is one constant matrix, which compiled code packs once"
    if signature.y.shape[-2] <= 1:
        return "one row"
    return "" if _layouts(signature) else "the library has only reference code for it"


def _slower(signature: Signature) -> bool:
    """Returns whether our own kernels are taken: they pack a constant matrix once.

    tools/bench_kernels.py --operators matmul times both back-ends.
    """
    return 1 in signature.constants and signature.inputs[1].ndim == 2


def _temporaries(signature: Signature) -> Specs:
    return (bytes_spec(max(p.scratchpad for p in _layouts(signature))),)


def _bind(call_: Binding) -> Thunk:
    signature, inputs, ndim = call_.signature, call_.inputs, _ndim(call_.y.shape)
    b = inputs[1].swapaxes(-1, -2) if form_of(signature).transpose_b else inputs[1]
    left, right = (next(_matching(Layout.of(_raised(v, ndim)))) for v in (call_.x, b))
    case = _case(signature, left, right)
    b_operand = Operand(c.WEIGHTS, case.b.descriptor(library()), inputs[1])
    return call(case, operands_of(call_, case, b_operand), call_.temporaries[0], signature.threads, summed(call_))


def _raised(array: Array, ndim: int) -> Array:
    """Returns the array with leading dimensions of one element."""
    return array[(np.newaxis,) * (ndim - array.ndim)]


STRIDED = Kernel(
    "onednn, strided",
    _bind,
    _temporaries,
    contiguous=contiguous_from(2),
    reads=_reads,
    unsupported=_unsupported,
    backend=ONEDNN,
)
"""float32; matrices that are computed, or batches of them."""
