"""Slices of a tensor that a condition chooses (ONNX Compress-11).

numba compiles a loop over the condition; numpy writes all positions, those of marks last (`ops.index.marks`).
"""

from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.costs import copy_cost
from ops.common.counts import FOUND, check_count, check_found
from ops.common.indices import INT64
from ops.common.lengths import length
from ops.common.thunks import in_turn, nothing
from ops.index.marks import mark_specs, position_steps
from ops.index.nonzero import count_nonzero
from ops.index.places import places
from ops.schema.attributes import Attribute, integer, optional
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.symbolic.guesses import numbers_to
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import BOOL, Shape, TensorSpec, normalize_axis


def _source(x: TensorSpec, attrs: Attrs) -> tuple[Shape, int]:
    """Returns the shape out of which slices are taken, and the axis along which they are taken."""
    return ((x.size,), 0) if attrs["axis"] is None else (x.shape, normalize_axis(attrs["axis"], x.ndim))


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, condition = inputs
    shape, axis = _source(x, attrs)
    if condition.dtype != BOOL:
        raise DtypeError(f"the condition must be bool, not {condition.dtype}")
    if condition.ndim != 1 or condition.size > shape[axis]:
        raise ShapeError(f"a condition of shape {condition.shape} for {shape[axis]} slices")
    return (x.with_shape((*shape[:axis], check_count(attrs["count"], condition.size), *shape[axis + 1 :])),)


def _temporaries(signature: Signature) -> tuple[TensorSpec, TensorSpec]:
    return TensorSpec((1, signature.attrs["count"]), INT64), FOUND


def _compress(call: Binding) -> Thunk:
    at, total = call.temporaries
    marks = call.inputs[1].view(np.uint8)
    shape, axis = _source(call.signature.x, call.attrs)
    return in_turn(
        partial(total.fill, 0),
        places(marks, 0, marks.shape, at, total),
        lambda: check_found(int(total[0]), at.size),
        partial(np.take, call.x.reshape(shape), at[0], axis=axis, out=call.y, mode="clip") if call.y.size else nothing,
    )


def _specs(signature: Signature) -> tuple[TensorSpec, ...]:
    return (FOUND, *mark_specs(signature.inputs[1].size, signature.attrs["count"]))


def _compress_positions(call: Binding) -> Thunk:
    total, *temporaries = call.temporaries
    at, (shape, axis) = temporaries[-1][:-1], _source(call.signature.x, call.attrs)
    return in_turn(
        partial(total.fill, 0),
        *position_steps(call.inputs[1], 0, temporaries, total),
        lambda: check_found(int(total[0]), at.size),
        partial(np.take, call.x.reshape(shape), at, axis=axis, out=call.y, mode="clip") if call.y.size else nothing,
    )


COMPRESS = OpSchema(
    name="compress",
    summary="Slices of x along `axis` (elements, where none is given) whose condition is true; `count` says how many.",
    infer=_infer,
    kernels=(
        Kernel("numba", _compress, _temporaries, all_contiguous, backend=NUMBA),
        Kernel("positions", _compress_positions, _specs, all_contiguous),
    ),
    arity=(2, 2),
    attributes=(Attribute("count", integer), Attribute("axis", optional(integer), None)),
    cost=copy_cost,
)
OPS = (COMPRESS,)


def compress(x: V, condition: V, axis: int | None = None) -> V:
    """Returns the slices of x along `axis` (elements where that is None) where the bools of `condition` are true."""
    if condition.spec.ndim != 1:
        raise ShapeError(f"a condition has one dimension, and {condition.spec} has {condition.spec.ndim}")
    count = length(count_nonzero(condition), numbers_to(condition.spec.shape[0]))
    return apply1(COMPRESS, x, condition, count=count, axis=axis)
