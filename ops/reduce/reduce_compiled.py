"""Reductions in compiled code: rows that fold to a number, or columns side by side."""

from functools import partial
from math import prod

from allocator.machine_code.door import address
from ops.common.fold import dense_for_sums, reduced_axes
from ops.native.call import Native, Step
from ops.native.records import join_args, pack_args
from ops.reduce.args import AS_IS, MAX, REDUCE
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Thunk, no_contiguity
from ops.tensor.spec import Array
from ops.vector.rows import neighbours, not_single_elements, rows_args

_MODULE = "ops.reduce.reduce_code"
_Dim = tuple[int, int, bool]
"""Length, bytes from one to the next, and whether it is reduced."""


def _dims(x: Array, axes: tuple[int, ...]) -> list[_Dim]:
    """Returns the dimensions, neighbours joined where both are reduced, or both stay, and one steps over the other."""
    dims: list[_Dim] = []
    for axis, (length, stride) in enumerate(zip(x.shape, x.strides, strict=True)):
        reduced = axis in axes
        if length == 1:
            continue
        if dims and dims[-1][1:] == (stride * length, reduced):
            dims[-1] = dims[-1][0] * length, stride, reduced
        else:
            dims.append((length, stride, reduced))
    return dims


def _rows(dims: list[_Dim], reduced: bool, start: int) -> Array:
    """Returns the arguments of rows along the dimensions that are reduced, or along those that stay."""
    loops = [d for d in dims if d[2] == reduced]
    return rows_args([d[0] for d in loops], [(start, [d[1] for d in loops])])


def _bind(kind: int, end: int, call: Binding) -> Thunk:
    x, y, axes = call.x, call.y, reduced_axes(call.attrs, call.x.ndim)
    *outer, inner = _dims(x, axes) or [(1, 4, True)]
    elements = prod(x.shape[a] for a in axes)
    head = pack_args(REDUCE, fold=kind, end=end, elements=elements, width=inner[0], y=y.ctypes.data)
    args = join_args(head, _rows(outer, False, x.ctypes.data), _rows(outer, True, 0))
    function = "reduce_rows" if inner[2] else "reduce_columns"
    return Native((Step(address(_MODULE, function), args),), (x, y))


def reduce_kernel(kind: int, end: int = AS_IS) -> Kernel:
    """Returns the compiled kernel of such a fold and end (ops.reduce.args)."""
    return Kernel(
        "vector",
        partial(_bind, kind, end),
        contiguous=dense_for_sums if kind < MAX else no_contiguity,
        reads=neighbours,
        unsupported=not_single_elements,
        backend=NUMBA,
    )
