"""Checks of compiled kernels: any number of parts, gaps between pixels, addresses that are barely aligned."""

import ctypes
from collections.abc import Sequence

import numpy as np

from ops.native.call import Native
from ops.native.runners import COMPILED
from ops.schema.schema import Binding, Kernel, Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.kernel_checks import garbage, garbage_for, pack, without_replaced

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_CHECK = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * 4)


def run_parts(native: Native, parts: int) -> None:
    """Runs every step in `parts` parts, the last one first; a step that is not compiled for parts runs once."""
    for step in native.steps:
        if step.kind != COMPILED:
            status = _CHECK(step.address)(*step.args.tolist())
            if status:
                raise step.explain(status)
            continue
        for part in reversed(range(parts)):
            _FUNCTION(step.address)(step.args.ctypes.data, part, parts)


def placed(array: Array, extra: int = 0, first: int = 1) -> Array:
    """Returns a copy that begins `first` elements behind a cache line, with `extra` elements between its pixels."""
    if not array.ndim:
        return placed(array.reshape(1), extra, first).reshape(())
    wide = (*array.shape[:-1], array.shape[-1] + extra)
    room = garbage(TensorSpec((64 + first + int(np.prod(wide)),), array.dtype))
    start = -room.ctypes.data % 64 // array.itemsize + first
    view: Array = room[start : start + int(np.prod(wide))].reshape(wide)[..., : array.shape[-1]]
    view[...] = array
    return view


def run_native(
    kernel: Kernel, signature: Signature, inputs: Sequence[Array], parts: int, extra: int = 0, *, over: int = -1
) -> tuple[Array, ...]:
    """Returns the outputs of a kernel run in parts, between guards.

    `over` is the input that the first output is written into. Fails where the kernel changes an input, or an element
    between the pixels of an output.
    """
    wide = [placed(np.empty(s.shape, s.dtype), extra, first=3) for s in signature.outputs]
    outputs = [inputs[over] if i == 0 and over >= 0 else w for i, w in enumerate(wide)]
    kept = [a.tobytes() for i, a in enumerate(inputs) if i != over]
    guards = [_outside(y) for y in outputs]
    packed = pack(kernel, signature, inputs)
    for i, a in enumerate(inputs):
        assert kernel.accepts(signature, i, Layout.of(a)), f"{kernel.name} does not read input {i}"
    operands = without_replaced(kernel, signature, inputs)
    thunk = kernel.bind(Binding(signature, operands, tuple(outputs), garbage_for(kernel, signature), packed))
    assert isinstance(thunk, Native)
    run_parts(thunk, parts)
    assert [a.tobytes() for i, a in enumerate(inputs) if i != over] == kept, f"{kernel.name} changed an input"
    for y, guard in zip(outputs, guards, strict=True):
        assert (_outside(y) == guard).all(), f"{kernel.name} wrote beside its output"
    return tuple(outputs)


def _outside(view: Array) -> Array:
    """Returns the array that a view is cut out of, with zeros in place of the view."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    held, inside = base.copy(), view.copy()
    view.view(f"u{view.itemsize}")[...] = 0
    outside = base.copy()
    base[...] = held
    view[...] = inside
    return outside.view(np.uint8)
