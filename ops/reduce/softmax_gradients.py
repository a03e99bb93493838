"""Gradients of softmax and of its logarithm, from their outputs alone, in place over the gradient of the output."""

from functools import partial

import numpy as np

from ops.common.blocks import BLOCK_BYTES, blocks
from ops.common.costs import flops_per_input_element
from ops.common.elementwise import require_one_dtype
from ops.common.thunks import in_turn, nothing
from ops.schema.attributes import Attribute, integer
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import (
    Attrs,
    Binding,
    Kernel,
    OpSchema,
    Signature,
    Specs,
    Thunk,
    overwrites_either,
    overwrites_first,
    unless,
)
from ops.tensor.errors import ShapeError
from ops.tensor.spec import FLOATS, Shape, TensorSpec, normalize_axis

_AXIS = Attribute("axis", integer, -1)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    require_one_dtype(inputs, FLOATS)
    dy, y = inputs
    if dy.shape != y.shape:
        raise ShapeError(f"a gradient of shape {dy.shape} does not belong to {y.shape}")
    normalize_axis(attrs["axis"], y.ndim)
    return (dy,)


def row_spec(signature: Signature) -> TensorSpec:
    """Returns the spec of x with one element along the axis."""
    axis = normalize_axis(signature.attrs["axis"], signature.x.ndim)
    shape: Shape = tuple(1 if i == axis else n for i, n in enumerate(signature.x.shape))
    return signature.x.with_shape(shape)


def _buffer(signature: Signature) -> TensorSpec:
    most = BLOCK_BYTES // signature.x.dtype.itemsize
    return signature.x.with_shape((max(1, min(signature.x.size, most)),))


def _softmax_temporaries(signature: Signature) -> Specs:
    return (row_spec(signature),)


def _softmax(call: Binding) -> Thunk:
    """Returns the thunk of y * (dy - sum(dy * y))."""
    (dy, y), dx, axis = call.inputs, call.y, call.attrs["axis"]
    if not dx.size:
        return nothing
    (row,) = call.temporaries
    terms, factors, sums = np.moveaxis(dy, axis, -1), np.moveaxis(y, axis, -1), row.squeeze(axis)

    def run() -> None:
        np.vecdot(terms, factors, out=sums)
        np.subtract(dy, row, out=dx)
        np.multiply(dx, y, out=dx)

    return run


def _is_last(signature: Signature) -> bool:
    return normalize_axis(signature.attrs["axis"], signature.x.ndim) == signature.x.ndim - 1


_not_last = unless(_is_last, "not the last axis")


def _softmax_in_blocks(call: Binding) -> Thunk:
    """Returns the thunk of dy * y - y * sum(dy * y), for an axis that is not last.

    The products dy * y are written to the output first.
    """
    (dy, y), dx, axis = call.inputs, call.y, normalize_axis(call.attrs["axis"], call.y.ndim)
    row, buffer = call.temporaries
    steps: list[Thunk] = [
        partial(np.multiply, dy, y, dx),
        partial(np.add.reduce, dx, axis=axis, keepdims=True, out=row),
    ]
    for index in blocks(dx.shape, buffer.size) if dx.size else ():
        part = dx[index]
        terms = buffer[: part.size].reshape(part.shape)
        steps += (
            partial(np.multiply, y[index], np.broadcast_to(row, dx.shape)[index], terms),
            partial(np.subtract, part, terms, part),
        )
    return in_turn(*steps)


def _roomy_temporaries(signature: Signature) -> Specs:
    return row_spec(signature), _buffer(signature)


def _log_softmax(call: Binding) -> Thunk:
    """Returns the thunk of dy - exp(y) * sum(dy).

    It goes block by block, so that either input may lie where the output lies.
    """
    (dy, y), dx, axis = call.inputs, call.y, normalize_axis(call.attrs["axis"], call.y.ndim)
    row, buffer = call.temporaries
    steps: list[Thunk] = [partial(np.add.reduce, dy, axis=axis, keepdims=True, out=row)]
    for index in blocks(dx.shape, buffer.size) if dx.size else ():
        part = dx[index]
        powers = buffer[: part.size].reshape(part.shape)
        sums = np.broadcast_to(row, dx.shape)[index]
        steps += (
            partial(np.exp, y[index], powers),
            partial(np.multiply, powers, sums, powers),
            partial(np.subtract, dy[index], powers, part),
        )
    return in_turn(*steps)


def _softmax_again(b: Backward) -> Terms:
    (dy, y), axes = b.inputs, (b.attrs["axis"],)

    def of_y() -> Tensor:
        return b.dy * (dy - b.sum(dy * y, axes)) - dy * b.sum(b.dy * y, axes)

    return b.terms(lambda: b.apply1(SOFTMAX_GRADIENT, b.dy, y, **b.attrs), of_y)


def _log_softmax_again(b: Backward) -> Terms:
    (dy, y), axes = b.inputs, (b.attrs["axis"],)
    return b.terms(
        lambda: b.dy - b.sum(b.dy * b.exp(y), axes),
        lambda: -(b.dy * b.exp(y) * b.sum(dy, axes)),
    )


_of_two = partial(OpSchema, infer=_infer, arity=(2, 2), attributes=(_AXIS,), cost=flops_per_input_element(4))
SOFTMAX_GRADIENT = _of_two(
    name="softmax_gradient",
    summary="y * (dy - sum(dy * y)) along `axis`.",
    kernels=(
        Kernel("dot", _softmax, _softmax_temporaries, unsupported=_not_last),
        Kernel("blocks", _softmax_in_blocks, _roomy_temporaries),
    ),
    overwrites=overwrites_first,
    gradient=_softmax_again,
)
LOG_SOFTMAX_GRADIENT = _of_two(
    name="log_softmax_gradient",
    summary="dy - exp(y) * sum(dy) along `axis`.",
    kernels=(Kernel("numpy", _log_softmax, _roomy_temporaries),),
    overwrites=overwrites_either,
    gradient=_log_softmax_again,
)
OPS = (SOFTMAX_GRADIENT, LOG_SOFTMAX_GRADIENT)
