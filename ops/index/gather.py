"""Elements picked by index (ONNX Gather-13, GatherElements-13, GatherND-13). Negative indices count from the back."""

import math
from functools import partial
from typing import cast

import numpy as np

from ops.common.apply import V, apply
from ops.common.costs import copy_cost
from ops.common.indices import (
    ENDS,
    INT64,
    PositionScratch,
    along_axis,
    check_elements,
    check_index_dtype,
    position_specs,
    range_check,
    row_specs,
    rows,
)
from ops.common.thunks import in_turn
from ops.index.gather_gradient import GATHER_ELEMENTS_GRADIENT, GATHER_GRADIENT, GATHER_ND_GRADIENT
from ops.index.gather_scatter_compiled import ELEMENTS_NATIVE, GATHER_NATIVE, ND_NATIVE
from ops.schema.attributes import Attribute, integer
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, GradientRule, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at
from ops.tensor.errors import ShapeError
from ops.tensor.spec import Array, normalize_axis

_AXIS = Attribute("axis", integer, 0)


def _gather_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, indices = inputs
    check_index_dtype(indices)
    axis = normalize_axis(attrs["axis"], x.ndim)
    return (x.with_shape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :]),)


def _temporaries(signature: Signature) -> Specs:
    return signature.inputs[1].with_dtype(INT64), ENDS


def _gather(call: Binding) -> Thunk:
    axis = normalize_axis(call.attrs["axis"], call.x.ndim)
    flat, ends = call.temporaries
    return in_turn(
        partial(np.copyto, flat, call.inputs[1]),
        range_check(flat, call.x.shape[axis], ends),
        partial(np.take, call.x, flat, axis=axis, out=call.y, mode="wrap"),
    )


def _elements_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, indices = inputs
    check_index_dtype(indices)
    check_elements(indices, x, normalize_axis(attrs["axis"], x.ndim))
    return (x.with_shape(indices.shape),)


def _elements_temporaries(signature: Signature) -> Specs:
    return position_specs(signature.y.shape)


def _gather_elements(call: Binding) -> Thunk:
    axis = normalize_axis(call.attrs["axis"], call.x.ndim)
    scratch = PositionScratch(*call.temporaries)
    return in_turn(
        along_axis(call.inputs[1], call.x.shape, axis, scratch),
        partial(np.take, call.x.reshape(-1), scratch.flat, out=call.y, mode="clip"),
    )


def _nd_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, indices = inputs
    check_index_dtype(indices)
    batch = attrs["batch_dims"]
    if not 0 <= batch < min(x.ndim, indices.ndim) or x.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(f"{x.shape} and indices of shape {indices.shape} do not share {batch} batch dimensions")
    depth = indices.shape[-1]
    if depth > x.ndim - batch:
        raise ShapeError(f"tuples of {depth} indices into {x.ndim - batch} dimensions")
    return (x.with_shape(indices.shape[:-1] + x.shape[batch + depth :]),)


def _gather_nd(call: Binding) -> Thunk:
    indices, batch = call.inputs[1], call.attrs["batch_dims"]
    scratch = PositionScratch(*call.temporaries)
    named = batch + indices.shape[-1]
    width = math.prod(call.x.shape[named:])
    data = call.x.reshape(math.prod(call.x.shape[:named]), width)
    y = call.y.reshape(scratch.flat.size, width)
    return in_turn(
        rows(indices, call.x.shape[:named], batch, scratch),
        partial(np.take, data, scratch.flat.reshape(-1), axis=0, out=y, mode="clip"),
    )


def _gradient_by(schema: OpSchema) -> GradientRule:
    """Returns the rule that adds up dy, by an operator of `ops.index.gather_gradient`."""

    def gradient(b: Backward) -> Terms:
        shape = b.signature.x.shape
        return b.terms(lambda: b.apply1(schema, b.dy, b.inputs[1], shape=shape, **b.attrs))

    return gradient


_gathers = partial(OpSchema, arity=(2, 2), cost=copy_cost, bit_copies=True)
GATHER = _gathers(
    name="gather",
    summary="Slices of x along `axis`, picked by indices; their shape replaces that axis.",
    infer=_gather_infer,
    kernels=(GATHER_NATIVE, Kernel("numpy", _gather, _temporaries, contiguous_at(0))),
    gradient=_gradient_by(GATHER_GRADIENT),
    attributes=(_AXIS,),
)
GATHER_ELEMENTS = _gathers(
    name="gather_elements",
    summary="y[i, j] = x[indices[i, j], j] for axis 0, and likewise for others.",
    infer=_elements_infer,
    kernels=(ELEMENTS_NATIVE, Kernel("numpy", _gather_elements, _elements_temporaries, contiguous_at(0))),
    gradient=_gradient_by(GATHER_ELEMENTS_GRADIENT),
    attributes=(_AXIS,),
)
GATHER_ND = _gathers(
    name="gather_nd",
    summary="y[b, i] = x[b, indices[b, i, 0], indices[b, i, 1], ...], where b are `batch_dims` leading dimensions.",
    infer=_nd_infer,
    kernels=(ND_NATIVE, Kernel("numpy", _gather_nd, row_specs, contiguous_at(0))),
    gradient=_gradient_by(GATHER_ND_GRADIENT),
    attributes=(Attribute("batch_dims", integer, 0),),
)
OPS = (GATHER, GATHER_ELEMENTS, GATHER_ND)


def gather(x: V | Array, indices: V | Array, axis: int = 0) -> V:
    """Returns slices of x along `axis`, picked by int32 or int64 indices; their shape replaces that axis."""
    return cast(V, apply(GATHER, (x, indices), axis=axis)[0])


def gather_elements(x: V | Array, indices: V | Array, axis: int = 0) -> V:
    """Returns y with y[i, j] = x[indices[i, j], j] for axis 0, and likewise for others."""
    return cast(V, apply(GATHER_ELEMENTS, (x, indices), axis=axis)[0])


def gather_nd(x: V | Array, indices: V | Array, batch_dims: int = 0) -> V:
    """Returns y with y[b, i] = x[b, indices[b, i, 0], indices[b, i, 1], ...]."""
    return cast(V, apply(GATHER_ND, (x, indices), batch_dims=batch_dims)[0])
