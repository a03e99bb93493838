"""Conversion to another element type (ONNX Cast-25)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ops.common.apply import V, apply1
from ops.common.blocks import blocks
from ops.common.thunks import in_turn
from ops.schema.attributes import Attribute, element_type, flag, one_of
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk, unless
from ops.schema.workspace import prefix
from ops.tensor.layout import Layout
from ops.tensor.limits import constant, highest, lowest
from ops.tensor.spec import BOOL, NARROW, NARROW_INTEGERS, POWERS, Array, TensorSpec
from ops.vector.bytecode import Script
from ops.vector.kernel import is_single, vector_kernel

_STAGE_BYTES = 16 << 10
_DOUBLE = np.dtype("float64")
_FRACTION = np.asarray(2**52 - 1, np.int64)
"""The bits of a float64 below those of its power of two."""


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    return (inputs[0].with_dtype(attrs["to"]),)


def _views(layout: Layout, signature: Signature) -> tuple[Layout | None, ...]:
    return (layout if signature.x.dtype == signature.y.dtype else None,)


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    """Returns whether y may lie over x: yes, where elements do not grow.

    Going forward, each element is read before its bytes are written.
    """
    return (Overwrite(0, 0),) if signature.y.dtype.itemsize <= signature.x.dtype.itemsize else ()


def _is_rounded(signature: Signature) -> bool:
    """Returns whether numbers are rounded as narrow types want it, or where numpy has no cast between two of them."""
    source, to = signature.x.dtype, signature.y.dtype
    return source != to and to in NARROW and (to not in NARROW_INTEGERS or source in NARROW)


def _stage(signature: Signature) -> TensorSpec:
    dtype = _DOUBLE if _is_rounded(signature) else signature.x.dtype
    return TensorSpec((min(signature.x.size, _STAGE_BYTES // dtype.itemsize),), dtype)


def _temporaries(signature: Signature) -> Specs:
    return (_stage(signature),) if _overwrites(signature) or _is_rounded(signature) else ()


def _cast(call: Binding) -> Thunk:
    shared = np.may_share_memory(call.x, call.y)
    if not shared and not _is_rounded(call.signature):
        return partial(np.copyto, call.y, call.x, casting="unsafe")
    return _cast_in_blocks(call, *((a.reshape(-1) for a in (call.x, call.y)) if shared else (call.x, call.y)))


def _cast_in_blocks(call: Binding, x: Array, y: Array) -> Thunk:
    """Casts block by block through a stage; numpy would copy the whole input first where y lies over it."""
    steps: list[Thunk] = []
    (stage,) = call.temporaries
    for index in blocks(x.shape, max(1, stage.size)):
        staged = prefix(stage, x[index].shape)
        steps.append(partial(np.copyto, staged, x[index], casting="unsafe"))
        if _is_rounded(call.signature):
            steps += _rounded(staged, y.dtype, call.attrs)
        steps.append(partial(np.copyto, y[index], staged, casting="unsafe"))
    return in_turn(*steps)


def _rounded(numbers: Array, to: np.dtype[Any], attrs: Attrs) -> Iterator[Thunk]:
    """Yields the steps that keep numbers in the range of a narrow type, and round them to powers of two for `POWERS`.

    NaN stays NaN: all bits of a fraction carry over into the sign, and no power is negative.
    """
    if to in NARROW_INTEGERS:
        return
    if attrs["saturate"]:
        yield partial(np.maximum, numbers, constant(float(lowest(to)), _DOUBLE), out=numbers)
        yield partial(np.minimum, numbers, constant(float(highest(to)), _DOUBLE), out=numbers)
    if to == POWERS and attrs["round_mode"] != "nearest":
        bits = numbers.view(np.int64)
        if attrs["round_mode"] == "up":
            yield partial(np.add, bits, _FRACTION, bits)
        yield partial(np.bitwise_and, bits, ~_FRACTION, bits)


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
    attributes=(
        Attribute("to", element_type),
        Attribute("saturate", flag, True),
        Attribute("round_mode", one_of("up", "down", "nearest"), "up"),
    ),
    views=_views,
    overwrites=_overwrites,
    gradient=_gradient,
    summary="x in another dtype: floats are truncated to integers, bool is x != 0, float16 overflows to infinity, and"
    " 8 bits saturate unless `saturate` is False; `round_mode` is for float8_e8m0fnu.",
    elementwise=True,
)
OPS = (CAST,)


def cast(x: V, to: npt.DTypeLike, *, saturate: bool = True, round_mode: str = "up") -> V:
    """Returns x in dtype `to`: floats are truncated to integers, bool is x != 0.

    Floats of 8 bits are rounded to the nearest. What is beyond their range becomes their largest number, or without
    `saturate` NaN or infinity. Powers of two (float8_e8m0fnu) are rounded "up", "down" or to the "nearest".
    """
    return apply1(CAST, x, to=to, saturate=saturate, round_mode=round_mode)
