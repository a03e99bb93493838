"""Position of the largest or smallest element along one axis (ONNX ArgMax-13, ArgMin-13)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.blocks import BLOCK_BYTES, blocks
from ops.common.costs import flops_per_input_element
from ops.common.elementwise import require_dtype
from ops.common.thunks import in_turn
from ops.reduce.arg_compiled import search_kernel
from ops.schema.attributes import Attribute, flag, integer
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at, unless
from ops.tensor.errors import ShapeError
from ops.tensor.limits import constant
from ops.tensor.spec import NUMBERS, Array, TensorSpec, normalize_axis

Search = Callable[[Array, Array], Thunk]
"""A thunk that finds the position in each row of a dense array, written into the other."""


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    require_dtype(x, NUMBERS)
    axis = normalize_axis(attrs["axis"], x.ndim)
    if not x.shape[axis]:
        raise ShapeError(f"axis {axis} of shape {x.shape} is empty: it has no first element")
    merged = (1,) if attrs["keepdims"] else ()
    return (TensorSpec((*x.shape[:axis], *merged, *x.shape[axis + 1 :]), np.dtype("int64")),)


def _axis(signature: Signature) -> int:
    return normalize_axis(signature.attrs["axis"], signature.x.ndim)


def _is_plain(signature: Signature) -> bool:
    """Returns whether rows lie in memory as numpy searches them."""
    return _axis(signature) == signature.x.ndim - 1 and not signature.attrs["select_last_index"]


_not_plain = unless(_is_plain, "not the last axis, or the last of equal elements is asked for")


def _rows(signature: Signature) -> TensorSpec:
    """Returns the spec of a block of rows: as many as fit into it, at least one."""
    length = signature.x.shape[_axis(signature)]
    most = BLOCK_BYTES // (length * signature.x.dtype.itemsize)
    return signature.x.with_shape((max(1, min(most, signature.y.size)), length))


def _temporaries(signature: Signature) -> Specs:
    return (_rows(signature),)


def _plain(search: Search, call: Binding) -> Thunk:
    return search(call.x, call.y.reshape(call.x.shape[:-1]))


def _through_blocks(search: Search, call: Binding) -> Thunk:
    """Returns the thunk that copies a block of rows at a time and searches it.

    numpy would copy all of x to search along another axis, or backwards.
    """
    spec = _rows(call.signature)
    (buffer,) = call.temporaries
    x = np.moveaxis(call.x, _axis(call.signature), -1)
    y = call.y.reshape(x.shape[:-1])
    last = call.attrs["select_last_index"]
    if last:
        x = x[..., ::-1]
    steps: list[Thunk] = []
    for index in blocks(y.shape, spec.shape[0]):
        positions, source = y[index], x[(*index[:-1], ..., slice(None))]
        rows = buffer[: positions.size].reshape(source.shape)
        steps += (partial(np.copyto, rows, source), search(rows, positions))
    if last:
        steps.append(partial(np.subtract, constant(spec.shape[1] - 1, y.dtype), y, y))
    return in_turn(*steps)


def _largest(rows: Array, y: Array) -> Thunk:
    return partial(rows.argmax, -1, y)


def _smallest(rows: Array, y: Array) -> Thunk:
    return partial(rows.argmin, -1, y)


def _arg(name: str, search: Search, summary: str) -> OpSchema:
    return OpSchema(
        name,
        _infer,
        (
            search_kernel(is_least=search is _smallest),
            Kernel("plain", partial(_plain, search), contiguous=contiguous_at(0), unsupported=_not_plain),
            Kernel("blocks", partial(_through_blocks, search), _temporaries),
        ),
        attributes=(
            Attribute("axis", integer, 0),
            Attribute("keepdims", flag, True),
            Attribute("select_last_index", flag, False),
        ),
        cost=flops_per_input_element(1),
        summary=summary,
    )


ARG_MAX = _arg("arg_max", _largest, "Position of the largest element; the first of equals, or the last.")
ARG_MIN = _arg("arg_min", _smallest, "Position of the smallest element; the first of equals, or the last.")
OPS = (ARG_MAX, ARG_MIN)


def arg_max(x: V, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> V:
    """Returns the int64 position of the largest element along `axis`; the first of equals, or the last."""
    return apply1(ARG_MAX, x, axis=axis, keepdims=keepdims, select_last_index=select_last_index)


def arg_min(x: V, axis: int = 0, keepdims: bool = True, select_last_index: bool = False) -> V:
    """Returns the int64 position of the smallest element along `axis`; the first of equals, or the last."""
    return apply1(ARG_MIN, x, axis=axis, keepdims=keepdims, select_last_index=select_last_index)
