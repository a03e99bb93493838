"""Operators whose outputs are strides over their input: transpose, expand, split, identity."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import cast

import numpy as np

from ops.common.apply import V, apply, apply1
from ops.common.lengths import Lengths, lengths
from ops.common.tiling import cut, first_input_rows
from ops.movement.copies import Move
from ops.movement.kernels import view_operator
from ops.schema.attributes import Attribute, integer, integers, optional
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Signature, Specs, Stripe, any_strides
from ops.tensor.errors import ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import as_shape, broadcast_shapes, normalize_axes, normalize_axis

Layouts = tuple[Layout | None, ...]


def _identity_infer(inputs: Specs, _: Attrs) -> Specs:
    return inputs


def _identity_views(layout: Layout, _: Signature) -> Layouts:
    return (layout,)


def _identity(call: Binding) -> tuple[Move, ...]:
    return ((call.x, call.y),)


def _perm(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    if attrs["perm"] is None:
        return tuple(reversed(range(ndim)))
    perm = normalize_axes(attrs["perm"], ndim)
    if len(perm) != ndim:
        raise ShapeError(f"perm {perm} does not name all {ndim} axes")
    return perm


def _transpose_infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    return (x.with_shape([x.shape[p] for p in _perm(attrs, x.ndim)]),)


def _transpose_views(layout: Layout, signature: Signature) -> Layouts:
    return (layout.transpose(_perm(signature.attrs, signature.x.ndim)),)


def _transpose(call: Binding) -> tuple[Move, ...]:
    return ((call.x.transpose(_perm(call.attrs, call.x.ndim)), call.y),)


def _transpose_rows(signature: Signature, first: int, last: int, axis: int) -> Stripe | None:
    """Returns the call of some rows; those of x are along the axis that becomes the rows. None where images mix."""
    perm = _perm(signature.attrs, signature.x.ndim)
    if perm[0] != 0 and signature.y.shape[0] > 1:
        return None
    return Stripe((cut(perm[axis], first, last),), cut(axis, first, last), signature.attrs)


def _expand_infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    return (x.with_shape(broadcast_shapes(x.shape, as_shape(attrs["shape"]))),)


def _expand_views(layout: Layout, signature: Signature) -> Layouts:
    return (layout.expand(signature.y.shape),)


def _expand(call: Binding) -> tuple[Move, ...]:
    return ((np.broadcast_to(call.x, call.y.shape), call.y),)


def _split_infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    axis, sizes = normalize_axis(attrs["axis"], x.ndim), as_shape(attrs["sizes"])
    if not sizes or sum(sizes) != x.shape[axis]:
        raise ShapeError(f"sizes {sizes} do not add up to the {x.shape[axis]} elements of axis {axis}")
    return tuple(x.with_shape((*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes)


def _split_starts(attrs: Attrs) -> tuple[int, ...]:
    return (0, *accumulate(attrs["sizes"][:-1]))


def _split_views(layout: Layout, signature: Signature) -> Layouts:
    axis, sizes = normalize_axis(signature.attrs["axis"], signature.x.ndim), signature.attrs["sizes"]
    return tuple(layout.slice(axis, a, n) for a, n in zip(_split_starts(signature.attrs), sizes, strict=True))


def _split(call: Binding) -> Iterator[Move]:
    axis = normalize_axis(call.attrs["axis"], call.x.ndim)
    parts = np.split(call.x, _split_starts(call.attrs)[1:], axis)
    return zip(parts, call.outputs, strict=True)


def _same_gradient(b: Backward) -> Terms:
    return (b.dy,)


def _transpose_gradient(b: Backward) -> Terms:
    perm = _perm(b.attrs, b.signature.x.ndim)
    return (b.transpose(b.dy, tuple(perm.index(axis) for axis in range(len(perm)))),)


def _split_gradient(b: Backward) -> Terms:
    return (b.concat([b.grad(i) for i in range(len(b.outputs))], b.attrs["axis"]),)


IDENTITY = view_operator(
    "identity",
    "x itself.",
    infer=_identity_infer,
    views=_identity_views,
    moves=_identity,
    gradient=_same_gradient,
    rows=first_input_rows,
    writes=any_strides,
)
TRANSPOSE = view_operator(
    "transpose",
    "The axes of x in the order `perm`; reversed where none is given.",
    infer=_transpose_infer,
    views=_transpose_views,
    moves=_transpose,
    gradient=_transpose_gradient,
    attributes=(Attribute("perm", optional(integers), None),),
    rows=_transpose_rows,
    writes=any_strides,
)
EXPAND = view_operator(
    "expand",
    "x broadcast together with `shape`: a dimension of length 1 on either side grows.",
    infer=_expand_infer,
    views=_expand_views,
    moves=_expand,
    gradient=_same_gradient,
    attributes=(Attribute("shape", integers),),
    writes=any_strides,
)
SPLIT = view_operator(
    "split",
    "Consecutive parts of x along `axis`, of the lengths `sizes`.",
    infer=_split_infer,
    views=_split_views,
    moves=_split,
    gradient=_split_gradient,
    attributes=(Attribute("sizes", integers), Attribute("axis", integer, 0)),
    writes=any_strides,
)
OPS = (IDENTITY, TRANSPOSE, EXPAND, SPLIT)


def identity(x: V) -> V:
    """Returns x itself."""
    return apply1(IDENTITY, x)


def dropout(x: V) -> V:
    """Returns x itself, which is dropout outside training."""
    return identity(x)


def transpose(x: V, perm: Sequence[int] | None = None) -> V:
    """Returns the axes in the order `perm`; reversed where that is None."""
    return apply1(TRANSPOSE, x, perm=perm)


def expand(x: V, shape: Lengths) -> V:
    """Broadcasts x together with `shape`, of which a length may be a var of one integer."""
    return apply1(EXPAND, x, shape=lengths(shape))


def split(x: V, parts: int | Sequence[int], axis: int = 0) -> tuple[V, ...]:
    """Returns consecutive parts along `axis`: of these lengths, or that many of equal length.

    Of parts of equal length the last ones may be shorter, or empty.
    """
    length = x.spec.shape[normalize_axis(axis, len(x.spec.shape))]
    sizes = _equal_parts(length, parts) if isinstance(parts, int) else tuple(parts)
    return cast(tuple[V, ...], apply(SPLIT, (x,), sizes=sizes, axis=axis))


def _equal_parts(length: int, parts: int) -> tuple[int, ...]:
    if parts < 1:
        raise ShapeError(f"{length} elements cannot be split into {parts} parts")
    size = -(-length // parts)
    return tuple(max(min(size, length - i * size), 0) for i in range(parts))
