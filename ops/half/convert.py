"""Copies between tensors of 16 bits and scratch arrays of float32."""

from functools import partial
from typing import Any

import numpy as np

from allocator.machine_code.door import address
from allocator.machine_code.instructions import has, this_kind
from ops.half.args import AXES, CONVERT, FROM_BFLOAT, FROM_HALF, SAME, TO_BFLOAT, TO_HALF
from ops.native.call import native_call
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
    """Returns whether compiled code converts float16; otherwise it would call a function that does not exist."""
    return this_kind() == "aarch64" or has("f16c")


def plain_copy(source: Array, target: Array) -> Thunk:
    """Returns the copy by numpy."""
    return partial(np.copyto, target, source, casting="unsafe")


def native_copy(source: Array, target: Array) -> Thunk:
    """Returns a compiled call, if there is one for these types; the arrays have one shape, and do not overlap."""
    kind = _KINDS.get((source.dtype, target.dtype))
    if kind is None or source.ndim > AXES or (_HALF in (source.dtype, target.dtype) and not has_half()):
        return plain_copy(source, target)
    forward: Any = (*(slice(None, None, -1 if step < 0 else 1) for step in source.strides), ...)
    source, target = source[forward], target[forward]
    if any(step < 0 for step in target.strides):
        return plain_copy(source, target)
    shape, (source_strides, target_strides) = _merged(source, target)
    ahead = AXES - len(shape)
    return native_call(
        address("ops.half.convert_code", "convert"),
        CONVERT,
        source=source,
        target=target,
        kind=kind,
        lengths=(1,) * ahead + tuple(shape),
        source_strides=(0,) * ahead + tuple(source_strides),
        target_strides=(0,) * ahead + tuple(target_strides),
    )


def _merged(source: Array, target: Array) -> tuple[list[int], tuple[list[int], list[int]]]:
    """Returns shape and strides in elements; axes that are contiguous on both sides become one."""
    shape: list[int] = []
    source_strides: list[int] = []
    target_strides: list[int] = []
    rows = zip(source.shape, source.strides, target.strides, strict=True)
    for length, source_bytes, target_bytes in rows:
        step, hop = source_bytes // source.itemsize, target_bytes // target.itemsize
        if length == 1 and shape:
            continue
        if shape and source_strides[-1] == step * length and target_strides[-1] == hop * length:
            shape[-1], source_strides[-1], target_strides[-1] = shape[-1] * length, step, hop
        else:
            shape = [*shape, length]
            source_strides, target_strides = [*source_strides, step], [*target_strides, hop]
    return shape or [1], (source_strides or [1], target_strides or [1])
