"""The bits of a tensor as elements of another type of the same size (ONNX BitCast-26)."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ops.common.apply import V, apply1
from ops.schema.attributes import Attribute, element_type
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk, overwrites_first
from ops.tensor.errors import DtypeError
from ops.tensor.limits import info
from ops.tensor.spec import NARROW


def _bits(dtype: np.dtype[Any]) -> int:
    return int(info(dtype).bits) if dtype in NARROW else 8 * dtype.itemsize


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if _bits(x.dtype) != _bits(attrs["to"]):
        raise DtypeError(f"reads elements of {x.dtype} as another type of the same size, not as {attrs['to']}")
    return (x.with_dtype(attrs["to"]),)


def _bit_cast(call: Binding) -> Thunk:
    bits = f"u{call.x.dtype.itemsize}"  # a copy of floats may change the bits of a NaN, and one of bools those of 2
    return partial(np.copyto, call.y.view(bits), call.x.view(bits))


BIT_CAST = OpSchema(
    name="bit_cast",
    summary="The bits of x as elements of `to`, which are as large.",
    infer=_infer,
    kernels=(Kernel("numpy", _bit_cast),),
    attributes=(Attribute("to", element_type),),
    overwrites=overwrites_first,
    elementwise=True,
)
OPS = (BIT_CAST,)


def bit_cast(x: V, to: npt.DTypeLike) -> V:
    """Returns the bits of x as elements of dtype `to`, which must be as large."""
    return apply1(BIT_CAST, x, to=to)
