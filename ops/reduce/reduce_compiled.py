"""Reductions in compiled code: rows that fold to a number, or columns side by side."""

from functools import partial
from math import prod

from ops.common.fold import reduced_axes
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.reduce.kinds import AS_IS
from ops.schema.backends import NUMBA
from ops.schema.schema import Binding, Kernel, Signature, Thunk
from ops.tensor.spec import Array
from ops.vector.rows import all_single, neighbours

_MODULE = "ops.reduce.reduce_code"
_Dim = tuple[int, int, bool]
"""Length, bytes from one to the next, and whether it goes."""


def _dims(x: Array, axes: tuple[int, ...]) -> list[_Dim]:
    """Neighbouring dimensions joined where both go, or both stay, and one steps over the other."""
    found: list[_Dim] = []
    for axis, (length, stride) in enumerate(zip(x.shape, x.strides, strict=True)):
        gone = axis in axes
        if length == 1:
            continue
        if found and found[-1][1:] == (stride * length, gone):
            found[-1] = found[-1][0] * length, stride, gone
        else:
            found.append((length, stride, gone))
    return found


def _loops(dims: list[_Dim], gone: bool, start: int) -> list[Word]:
    """As `Rows` says it, of the dimensions that go or that stay."""
    some = [d for d in dims if d[2] == gone]
    lengths = [d[0] for d in some]
    return [1, prod(lengths), len(some), *lengths, start, *(d[1] for d in some)]


def _bind(kind: int, end: int, call: Binding) -> Thunk:
    x, y, axes = call.x, call.y, reduced_axes(call.attrs, call.x.ndim)
    *outer, inner = _dims(x, axes) or [(1, 4, True)]
    head = (kind, end, prod(x.shape[a] for a in axes), inner[0], y.ctypes.data)
    words = (*head, *_loops(outer, False, x.ctypes.data), *_loops(outer, True, 0))
    function = "reduce_rows" if inner[2] else "reduce_columns"
    return Native((Step(address(_MODULE, function), words),), (x, y))


def _has_elements(signature: Signature) -> bool:
    return all_single(signature) and signature.x.size > 0


def reduce_kernel(kind: int, end: int = AS_IS) -> Kernel:
    """The compiled kernel of such a fold and end (ops.reduce.kinds)."""
    return Kernel("vector", partial(_bind, kind, end), reads=neighbours, supports=_has_elements, backend=NUMBA)
