"""Softmax and its logarithm in compiled code: rows, or columns side by side."""

from functools import partial

import numpy as np

from allocator.machine_code.door import address
from ops.native.call import Native, Step
from ops.native.records import join_args, pack_args
from ops.reduce.args import SOFTMAX
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Thunk, unless
from ops.tensor.spec import Array, normalize_axis
from ops.vector.rows import Rows, all_single, neighbours

_MODULE = "ops.reduce.softmax_code"


def _bind(is_log: bool, call: Binding) -> Thunk:
    x, y = call.x, call.y
    if not x.size:
        return Native(())
    axis = normalize_axis(call.attrs["axis"], x.ndim)
    step = _rows(is_log, x, y, axis) if _is_last(x, axis) else _columns(is_log, x, y, axis)
    return Native((step,), (x, y))


def _is_last(x: Array, axis: int) -> bool:
    """Returns whether no axis behind has more than one element."""
    return x.size == 1 or (x.shape[axis] > 1 and all(n == 1 for n in x.shape[axis + 1 :]))


def _rows(is_log: bool, x: Array, y: Array, axis: int) -> Step:
    both = [np.moveaxis(a, axis, -1) for a in (x, y)]
    head = pack_args(SOFTMAX, is_log=is_log, length=x.shape[axis], x_step=0, y_step=0, width=0)
    return Step(address(_MODULE, "softmax_rows"), join_args(head, Rows.of(both, both[0].shape[:-1]).args))


def _columns(is_log: bool, x: Array, y: Array, axis: int) -> Step:
    """Returns the step where the neighbours are the last axis that has more than one element."""
    last = max(i for i, n in enumerate(x.shape) if n != 1)
    order = [*(i for i in range(x.ndim) if i not in (axis, last)), axis, last]
    both = [a.transpose(order) for a in (x, y)]
    head = pack_args(
        SOFTMAX,
        is_log=is_log,
        length=x.shape[axis],
        x_step=x.strides[axis],
        y_step=y.strides[axis],
        width=x.shape[last],
    )
    return Step(address(_MODULE, "softmax_columns"), join_args(head, Rows.of(both, both[0].shape[:-2]).args))


def softmax_kernel(*, is_log: bool = False) -> Kernel:
    """Returns the compiled kernel."""
    reads, unsupported = neighbours, unless(all_single, "not float32")
    return Kernel(
        "rows", partial(_bind, is_log), reads=reads, unsupported=unsupported, writes=neighbours, backend=NUMBA
    )
