"""The kernel of compiled searches for extremes: float32, however it lies."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from allocator.machine_code.door import address
from ops.native.call import Native, Step
from ops.native.records import join_args, pack_args
from ops.reduce.args import LOOP, SEARCH
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk, unless
from ops.tensor.spec import normalize_axis

_Loop = tuple[int, int]
"""Length, and bytes from turn to turn."""
_SIZE = 4
_MOST = 1 << 31
"""Positions are counted in int32."""


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and max(signature.x.shape) < _MOST


_unsupported = unless(_supports, "not float32, or a dimension that is too long")


def _merged(loops: Iterable[_Loop]) -> list[_Loop]:
    """Returns the loops, neighbours joined where the outer one steps over the inner one."""
    merged: list[_Loop] = []
    for length, step in loops:
        if merged and merged[-1][1] == length * step:
            merged[-1] = merged[-1][0] * length, step
        else:
            merged.append((length, step))
    return merged


def _bind(is_least: bool, call: Binding) -> Thunk:
    x, y = call.x, call.y
    if not x.size:
        return Native(())
    axis = normalize_axis(call.attrs["axis"], x.ndim)
    step = x.strides[axis]
    loops = _merged((n, s) for i, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)) if n > 1 and i != axis)
    function = "search_rows" if step == _SIZE else "search_columns"
    width, width_step = loops.pop() if loops and step != _SIZE else (1, _SIZE)
    head = pack_args(
        SEARCH,
        x=x.ctypes.data,
        y=y.ctypes.data,
        is_least=is_least,
        is_last=call.attrs["select_last_index"],
        length=x.shape[axis],
        length_step=step,
        width=width,
        width_step=width_step,
        loops=len(loops),
    )
    args = join_args(head, *(pack_args(LOOP, length=length, step=step) for length, step in loops))
    return Native((Step(address("ops.reduce.arg_code", function), args),), (x, y))


def search_kernel(*, is_least: bool) -> Kernel:
    """Returns the compiled kernel: NaN is an extreme, as in numpy."""
    return Kernel("native", partial(_bind, is_least), unsupported=_unsupported, backend=NUMBA)
