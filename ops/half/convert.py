"""Copies between tensors of 16 bits and rooms of float32."""

import platform
from functools import partial
from typing import Any

import numpy as np

from ops.half.args import AXES, FROM_BFLOAT, FROM_HALF, SAME, TO_BFLOAT, TO_HALF
from ops.native.call import Native, Step
from ops.native.door import address
from ops.native.processor import has
from ops.schema.schema import Thunk
from ops.tensor.spec import BFLOAT16, Array

_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")
_KINDS = {
    (_HALF, _SINGLE): FROM_HALF,
    (BFLOAT16, _SINGLE): FROM_BFLOAT,
    (_SINGLE, _HALF): TO_HALF,
    (_SINGLE, BFLOAT16): TO_BFLOAT,
    (_SINGLE, _SINGLE): SAME,
}


def has_half() -> bool:
    """Whether compiled code converts float16: else it would call a function that it does not find."""
    return platform.machine() in ("aarch64", "arm64") or has("f16c")


def plain_copy(source: Array, target: Array) -> Thunk:
    """By numpy."""
    return partial(np.copyto, target, source, casting="unsafe")


def native_copy(source: Array, target: Array) -> Thunk:
    """As one compiled call, where there is one for these types; arrays of one shape that do not meet."""
    kind = _KINDS.get((source.dtype, target.dtype))
    if kind is None or source.ndim > AXES or (_HALF in (source.dtype, target.dtype) and not has_half()):
        return plain_copy(source, target)
    forward: Any = (*(slice(None, None, -1 if step < 0 else 1) for step in source.strides), ...)
    source, target = source[forward], target[forward]
    if any(step < 0 for step in target.strides):
        return plain_copy(source, target)
    shape, (there, here) = _merged(source, target)
    ahead = AXES - len(shape)
    words = (source.ctypes.data, target.ctypes.data, kind, *(1,) * ahead, *shape)
    strides = (*(0,) * ahead, *there, *(0,) * ahead, *here)
    return Native((Step(address("ops.half.convert_code", "convert"), (*words, *strides)),), (source, target))


def _merged(source: Array, target: Array) -> tuple[list[int], tuple[list[int], list[int]]]:
    """Shape and strides in elements; axes that lie behind each other on both sides are one."""
    shape: list[int] = []
    there: list[int] = []
    here: list[int] = []
    rows = zip(source.shape, source.strides, target.strides, strict=True)
    for length, far, near in rows:
        step, hop = far // source.itemsize, near // target.itemsize
        if length == 1 and shape:
            continue
        if shape and there[-1] == step * length and here[-1] == hop * length:
            shape[-1], there[-1], here[-1] = shape[-1] * length, step, hop
        else:
            shape, there, here = [*shape, length], [*there, step], [*here, hop]
    return shape or [1], (there or [1], here or [1])
