"""Tensors one behind the other along an axis (ONNX Concat-13)."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import cast

from ops.common.apply import Operand, V, apply
from ops.common.costs import copy_cost
from ops.common.tiling import concat_rows
from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.movement.reshape import unsqueeze
from ops.movement.views import SPLIT
from ops.schema.attributes import Attribute, integer
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Signature, Specs, any_strides
from ops.tensor.errors import ArityError, DtypeError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import normalize_axis

_MOST_INPUTS = 2**31 - 1


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    first = inputs[0]
    axis = normalize_axis(attrs["axis"], first.ndim)
    frames = {(*s.shape[:axis], *s.shape[axis + 1 :]) for s in inputs}
    if len(frames) != 1 or any(s.ndim != first.ndim for s in inputs):
        raise ShapeError(f"the shapes differ outside axis {axis}")
    if any(s.dtype != first.dtype for s in inputs):
        raise DtypeError("the element types differ")
    length = sum(s.shape[axis] for s in inputs)
    return (first.with_shape((*first.shape[:axis], length, *first.shape[axis + 1 :])),)


def _moves(call: Binding) -> Iterator[Move]:
    ahead = (slice(None),) * normalize_axis(call.attrs["axis"], call.y.ndim)
    lengths = [spec.shape[len(ahead)] for spec in call.signature.inputs]
    for start, length, x in zip(accumulate(lengths[:-1], initial=0), lengths, call.inputs, strict=True):
        yield x, call.y[(*ahead, slice(start, start + length))]


def _input_places(layout: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    axis = normalize_axis(signature.attrs["axis"], signature.y.ndim)
    lengths = [spec.shape[axis] for spec in signature.inputs]
    starts = accumulate(lengths[:-1], initial=0)
    return tuple(layout.slice(axis, start, length) for start, length in zip(starts, lengths, strict=True))


def _gradient(b: Backward) -> Terms:
    """Returns views of the gradient of the output."""
    axis = normalize_axis(b.attrs["axis"], b.signature.y.ndim)
    parts = b.apply(SPLIT, b.dy, sizes=tuple(s.shape[axis] for s in b.signature.inputs), axis=axis)
    return tuple(part if b.wants(i) else None for i, part in enumerate(parts))


CONCAT = OpSchema(
    name="concat",
    summary="The inputs one behind the other along `axis`.",
    infer=_infer,
    kernels=movement(_moves, writes=any_strides),
    arity=(1, _MOST_INPUTS),
    attributes=(Attribute("axis", integer),),
    cost=copy_cost,
    gradient=_gradient,
    input_places=_input_places,
    rows=concat_rows,
    bit_copies=True,
)
OPS = (CONCAT,)


def concat(xs: Sequence[V | Operand], axis: int = 0) -> V:
    """Joins the operands along `axis`."""
    return cast(V, apply(CONCAT, xs, axis=axis)[0])


def stack(xs: Sequence[V], axis: int = 0) -> V:
    """Joins operands of one shape along a new `axis`."""
    if not xs:
        raise ArityError("stack: at least one operand is wanted")
    return concat([unsqueeze(x, [axis]) for x in xs], axis)
