"""Tensors one behind the other along an axis (ONNX Concat-13)."""

from functools import partial

import numpy as np

from ops.attributes import Attribute, integer
from ops.errors import DtypeError, ShapeError
from ops.looking import copy_cost
from ops.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.spec import normalize_axis

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


def _concat(call: Binding) -> Thunk:
    return partial(np.concatenate, call.inputs, axis=call.attrs["axis"], out=call.y)


CONCAT = OpSchema(
    name="concat",
    summary="The inputs one behind the other along `axis`.",
    infer=_infer,
    kernels=(Kernel("numpy", _concat),),
    arity=(1, _MOST_INPUTS),
    attributes=(Attribute("axis", integer),),
    cost=copy_cost,
)
OPS = (CONCAT,)
