"""The kernel of compiled searches for extremes: float32, however it lies."""

from collections.abc import Iterable
from functools import partial

import numpy as np

from ops.native.call import Native, Step
from ops.native.door import address
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.tensor.spec import normalize_axis

_Loop = tuple[int, int]
"""Length, and bytes from turn to turn."""
_SIZE = 4
_MOST = 1 << 31
"""Positions are counted in int32."""


def _supports(signature: Signature) -> bool:
    return signature.x.dtype == np.dtype("float32") and max(signature.x.shape) < _MOST


def _merged(loops: Iterable[_Loop]) -> list[_Loop]:
    """Neighbours are joined where the outer one steps over the inner one."""
    kept: list[_Loop] = []
    for length, step in loops:
        if kept and kept[-1][1] == length * step:
            kept[-1] = kept[-1][0] * length, step
        else:
            kept.append((length, step))
    return kept


def _bind(is_least: bool, call: Binding) -> Thunk:
    x, y = call.x, call.y
    if not x.size:
        return Native(())
    axis = normalize_axis(call.attrs["axis"], x.ndim)
    length, hop = x.shape[axis], x.strides[axis]
    loops = _merged((n, s) for i, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)) if n > 1 and i != axis)
    function = "search_rows" if hop == _SIZE else "search_columns"
    width, step = loops.pop() if loops and hop != _SIZE else (1, _SIZE)
    head = (x.ctypes.data, y.ctypes.data, is_least, call.attrs["select_last_index"], length, hop, width, step)
    words = (*head, len(loops), *(n for loop in loops for n in loop))
    return Native((Step(address("ops.reduce.arg_code", function), words),), (x, y))


def search_kernel(*, is_least: bool) -> Kernel:
    """The compiled kernel: NaN is an extreme, as in numpy."""
    return Kernel("native", partial(_bind, is_least), supports=_supports, backend=NUMBA)
