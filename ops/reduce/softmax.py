"""Softmax and its logarithm along one axis (ONNX Softmax-13, LogSoftmax-13)."""

from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.costs import flops_per_input_element
from ops.common.thunks import nothing
from ops.common.tiling import axis_rows, axis_stripes
from ops.reduce.softmax_compiled import softmax_kernel
from ops.reduce.softmax_gradients import LOG_SOFTMAX_GRADIENT, SOFTMAX_GRADIENT, row_spec
from ops.schema.attributes import Attribute, integer
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, overwrites_first
from ops.tensor.errors import DtypeError
from ops.tensor.spec import FLOATS, normalize_axis

_AXIS = Attribute("axis", integer, -1)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype not in FLOATS:
        raise DtypeError(f"takes floating-point numbers, not {x.dtype}")
    normalize_axis(attrs["axis"], x.ndim)
    return (x,)


def _temporaries(signature: Signature) -> Specs:
    return (row_spec(signature),)


def _log_temporaries(signature: Signature) -> Specs:
    return row_spec(signature), signature.x


def _softmax(call: Binding) -> Thunk:
    x, y, axis = call.x, call.y, call.attrs["axis"]
    if not x.size:
        return nothing
    (row,) = call.temporaries

    def run() -> None:
        np.maximum.reduce(x, axis=axis, keepdims=True, out=row)
        np.subtract(x, row, out=y)
        np.exp(y, out=y)
        np.add.reduce(y, axis=axis, keepdims=True, out=row)
        np.divide(y, row, out=y)

    return run


def _log_softmax(call: Binding) -> Thunk:
    x, y, axis = call.x, call.y, call.attrs["axis"]
    if not x.size:
        return nothing
    row, powers = call.temporaries

    def run() -> None:
        np.maximum.reduce(x, axis=axis, keepdims=True, out=row)
        np.subtract(x, row, out=y)
        np.exp(y, out=powers)
        np.add.reduce(powers, axis=axis, keepdims=True, out=row)
        np.log(row, out=row)
        np.subtract(y, row, out=y)

    return run


def _gradient(b: Backward) -> Terms:
    return (b.apply1(SOFTMAX_GRADIENT, b.dy, b.y, **b.attrs),)


def _log_gradient(b: Backward) -> Terms:
    return (b.apply1(LOG_SOFTMAX_GRADIENT, b.dy, b.y, **b.attrs),)


_along_axis = partial(
    OpSchema,
    infer=_infer,
    attributes=(_AXIS,),
    overwrites=overwrites_first,
    cost=flops_per_input_element(5),
    stripes=axis_stripes,
    rows=axis_rows,
)
SOFTMAX = _along_axis(
    name="softmax",
    summary="exp(x) / sum(exp(x)) along `axis`.",
    kernels=(softmax_kernel(), Kernel("numpy", _softmax, _temporaries)),
    gradient=_gradient,
)
LOG_SOFTMAX = _along_axis(
    name="log_softmax",
    summary="log(softmax(x)) along `axis`.",
    kernels=(softmax_kernel(is_log=True), Kernel("numpy", _log_softmax, _log_temporaries)),
    gradient=_log_gradient,
)
OPS = (SOFTMAX, LOG_SOFTMAX)


def softmax(x: V, axis: int = -1) -> V:
    """Returns exp(x) / sum(exp(x)) along `axis`, in the shape of x."""
    return apply1(SOFTMAX, x, axis=axis)


def log_softmax(x: V, axis: int = -1) -> V:
    """Returns log(softmax(x)) along `axis`, in the shape of x."""
    return apply1(LOG_SOFTMAX, x, axis=axis)
