"""Conversion to another element type (ONNX Cast)."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from ops.common.apply import V, apply1
from ops.common.blocks import blocks
from ops.common.thunks import in_turn
from ops.schema.attributes import Attribute, element_type
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk, unless
from ops.tensor.layout import Layout
from ops.tensor.spec import BOOL, Array, TensorSpec
from ops.vector.bytecode import Script
from ops.vector.kernel import is_single, vector_kernel

_STAGE_BYTES = 16 << 10


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    return (inputs[0].with_dtype(attrs["to"]),)


def _views(layout: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    return (layout if signature.x.dtype == signature.y.dtype else None,)


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    """Returns whether y may lie over x: yes, where elements do not grow.

    Going forward, each element is read before its bytes are written.
    """
    return (Overwrite(0, 0),) if signature.y.dtype.itemsize <= signature.x.dtype.itemsize else ()


def _stage(signature: Signature) -> TensorSpec:
    size = min(signature.x.size, _STAGE_BYTES // signature.x.dtype.itemsize)
    return signature.x.with_shape((size,))


def _temporaries(signature: Signature) -> Specs:
    return (_stage(signature),) if _overwrites(signature) else ()


def _cast(call: Binding) -> Thunk:
    if not np.may_share_memory(call.x, call.y):
        return partial(np.copyto, call.y, call.x, casting="unsafe")
    return _cast_in_place(call)


def _cast_in_place(call: Binding) -> Thunk:
    """Casts block by block through a stage; numpy would copy the whole input first."""
    x, y = call.x.reshape(-1), call.y.reshape(-1)
    steps: list[Thunk] = []
    (stage,) = call.temporaries
    for index in blocks(x.shape, max(1, stage.size)):
        source, staged = x[index], stage[: x[index].size]
        steps += (partial(np.copyto, staged, source), partial(np.copyto, y[index], staged, casting="unsafe"))
    return in_turn(*steps)


def _encode(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
    """Appends a cast between bool and float32; two negations make 1 of all that is not 0."""
    if signature.x.dtype == BOOL:
        return script.append("copy", *values)
    return script.append("not", script.append("not", *values))


def _grows(signature: Signature) -> bool:
    """Returns whether it casts bool to float32: nothing may be written over what another thread has yet to read."""
    return is_single(signature) and signature.x.dtype == BOOL


_not_grows = unless(_grows, "not from bool to float32")


def _gradient(b: Backward) -> Terms:
    return (b.cast(b.dy, b.signature.x.dtype),)


CAST = OpSchema(
    "cast",
    _infer,
    (vector_kernel(_encode, unsupported=_not_grows), Kernel("numpy", _cast, _temporaries)),
    attributes=(Attribute("to", element_type),),
    views=_views,
    overwrites=_overwrites,
    gradient=_gradient,
    summary="x in another dtype: floats are truncated to integers, bool is x != 0, float16 overflows to infinity.",
    elementwise=True,
)
OPS = (CAST,)


def cast(x: V, to: npt.DTypeLike) -> V:
    """Returns x in dtype `to`: floats are truncated to integers, bool is x != 0."""
    return apply1(CAST, x, to=to)
