"""Elements written by index into a copy of a tensor (ONNX ScatterElements-18, ScatterND-18)."""

import math
from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from ops.common.apply import V, apply
from ops.common.indices import (
    PositionScratch,
    along_axis,
    check_elements,
    check_index_dtype,
    position_specs,
    row_specs,
    rows,
)
from ops.common.thunks import copier, in_turn
from ops.index.gather import GATHER_ELEMENTS, GATHER_ND
from ops.index.gather_scatter_compiled import SCATTER_ELEMENTS_NATIVE, SCATTER_ND_NATIVE
from ops.schema.attributes import Attribute, integer, one_of
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at, overwrites_first
from ops.tensor.errors import DtypeError, GradientError, ShapeError
from ops.tensor.spec import BFLOAT16, NUMBERS, Array, normalize_axis

_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
_REDUCTION = Attribute("reduction", one_of("none", *_COMBINE), "none")


def _check(inputs: Specs, attrs: Attrs) -> None:
    data, indices, updates = inputs
    check_index_dtype(indices)
    if updates.dtype != data.dtype:
        raise DtypeError(f"updates of {updates.dtype} do not fit into {data.dtype}")
    if attrs["reduction"] != "none" and data.dtype not in NUMBERS | {BFLOAT16}:
        raise DtypeError(f"reduction {attrs['reduction']!r} takes numbers to compute with, not {data.dtype}")


def _elements_infer(inputs: Specs, attrs: Attrs) -> Specs:
    data, indices, updates = inputs
    _check(inputs, attrs)
    check_elements(indices, data, normalize_axis(attrs["axis"], data.ndim))
    if updates.shape != indices.shape:
        raise ShapeError(f"updates of shape {updates.shape} for indices of shape {indices.shape}")
    return (data,)


def _nd_infer(inputs: Specs, attrs: Attrs) -> Specs:
    data, indices, updates = inputs
    _check(inputs, attrs)
    if not indices.ndim or indices.shape[-1] > data.ndim:
        raise ShapeError(f"indices of shape {indices.shape} hold no tuples into {data.ndim} dimensions")
    wanted = indices.shape[:-1] + data.shape[indices.shape[-1] :]
    if updates.shape != wanted:
        raise ShapeError(f"updates of shape {updates.shape}; {wanted} is wanted")
    return (data,)


def _elements_temporaries(signature: Signature) -> Specs:
    return position_specs(signature.inputs[1].shape)


def _write(y: Array, flat: Array, updates: Array, reduction: str) -> Thunk:
    if reduction == "none":
        return partial(y.__setitem__, flat, updates)
    return partial(_COMBINE[reduction].at, y, flat, updates)


def _scatter_elements(call: Binding) -> Thunk:
    data, indices, updates = call.inputs
    axis, scratch = normalize_axis(call.attrs["axis"], data.ndim), PositionScratch(*call.temporaries)
    return in_turn(
        along_axis(indices, data.shape, axis, scratch),
        copier(data, call.y),
        _write(call.y.reshape(-1), scratch.flat.reshape(-1), updates.reshape(-1), call.attrs["reduction"]),
    )


def _scatter_nd(call: Binding) -> Thunk:
    data, indices, updates = call.inputs
    scratch, named = PositionScratch(*call.temporaries), indices.shape[-1]
    width = math.prod(data.shape[named:])
    y = call.y.reshape(math.prod(data.shape[:named]), width)
    return in_turn(
        rows(indices, data.shape[:named], 0, scratch),
        copier(data, call.y),
        _write(y, scratch.flat.reshape(-1), updates.reshape(scratch.flat.size, width), call.attrs["reduction"]),
    )


def _gradient(b: Backward, scatter: OpSchema, pick: Callable[[], Tensor]) -> Terms:
    """Returns the gradients of a scatter; elements that were written over get 0.

    Where indices name an element twice, each update that may have been written last gets the gradient. Raises
    GradientError for a reduction that has no rule.
    """
    reduction = b.attrs["reduction"]
    if reduction not in ("none", "add"):
        raise GradientError(f"has no rule for its gradient where the reduction is {reduction!r}")

    def of_data() -> Tensor:
        if reduction == "add":
            return b.dy
        return b.apply1(scatter, b.dy, b.inputs[1], b.zeros(b.signature.inputs[2]), **b.attrs)

    return b.terms(of_data, None, pick)


def _elements_gradient(b: Backward) -> Terms:
    axis = b.attrs["axis"]
    return _gradient(b, SCATTER_ELEMENTS, lambda: b.apply1(GATHER_ELEMENTS, b.dy, b.inputs[1], axis=axis))


def _nd_gradient(b: Backward) -> Terms:
    return _gradient(b, SCATTER_ND, lambda: b.apply1(GATHER_ND, b.dy, b.inputs[1]))


SCATTER_ELEMENTS = OpSchema(
    name="scatter_elements",
    summary="A copy of data where y[indices[i, j], j] = updates[i, j] for axis 0, and likewise for others.",
    infer=_elements_infer,
    kernels=(SCATTER_ELEMENTS_NATIVE, Kernel("numpy", _scatter_elements, _elements_temporaries, contiguous_at(2))),
    arity=(3, 3),
    attributes=(Attribute("axis", integer, 0), _REDUCTION),
    gradient=_elements_gradient,
    overwrites=overwrites_first,
)
SCATTER_ND = OpSchema(
    name="scatter_nd",
    summary="A copy of data where y[indices[i, 0], indices[i, 1], ...] = updates[i].",
    infer=_nd_infer,
    kernels=(SCATTER_ND_NATIVE, Kernel("numpy", _scatter_nd, row_specs, contiguous_at(2))),
    arity=(3, 3),
    attributes=(_REDUCTION,),
    gradient=_nd_gradient,
    overwrites=overwrites_first,
)
OPS = (SCATTER_ELEMENTS, SCATTER_ND)


def scatter_elements(
    data: V | Array, indices: V | Array, updates: V | Array, axis: int = 0, reduction: str = "none"
) -> V:
    """Returns a copy of data with y[indices[i, j], j] = updates[i, j]; `reduction` is none, add, mul, max or min."""
    return cast(V, apply(SCATTER_ELEMENTS, (data, indices, updates), axis=axis, reduction=reduction)[0])


def scatter_nd(data: V | Array, indices: V | Array, updates: V | Array, reduction: str = "none") -> V:
    """Returns a copy of data with y[indices[i, 0], indices[i, 1], ...] = updates[i]."""
    return cast(V, apply(SCATTER_ND, (data, indices, updates), reduction=reduction)[0])
