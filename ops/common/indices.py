"""Indices of gather and scatter: checked, counted from the front, and made flat positions in a dense tensor.

Everything happens in arrays of int64, which are temporaries of the caller.
"""

import math
from functools import partial

import numpy as np
from attrs import frozen

from ops.common.thunks import in_turn, nothing
from ops.schema.schema import Signature, Specs, Thunk
from ops.tensor.errors import DtypeError, OpError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec

INT64 = np.dtype("int64")
INDEX_DTYPES = frozenset(map(np.dtype, ("int32", "int64")))
ENDS = TensorSpec((2,), INT64)
"""Scratch for the least and the greatest index."""


class IndexRangeError(OpError, IndexError):
    """An index outside its axis; known only when the operator runs."""


def check_index_dtype(indices: TensorSpec) -> None:
    """Raises DtypeError where `indices` cannot be indices."""
    if indices.dtype not in INDEX_DTYPES:
        raise DtypeError(f"indices must be int32 or int64, not {indices.dtype}")


def check_elements(indices: TensorSpec, data: TensorSpec, axis: int) -> None:
    """Raises ShapeError where indices, one for each element, do not fit the data outside the axis that they replace."""
    pairs = enumerate(zip(indices.shape, data.shape, strict=False))
    if indices.ndim != data.ndim or any(n > m for i, (n, m) in pairs if i != axis):
        raise ShapeError(f"indices of shape {indices.shape} do not fit {data.shape} outside axis {axis}")


def range_check(indices: Array, dim: int, ends: Array) -> Thunk:
    """Raises IndexRangeError where an int64 index lies outside [-dim, dim). `ends` is scratch for two numbers."""
    least, greatest = ends[0:1].reshape(()), ends[1:2].reshape(())

    def check() -> None:
        np.minimum.reduce(indices, axis=None, out=least)
        np.maximum.reduce(indices, axis=None, out=greatest)
        if least < -dim or greatest >= dim:
            wrong = int(least) if least < -dim else int(greatest)
            raise IndexRangeError(f"index {wrong} is outside [-{dim}, {dim})")

    return nothing if indices.size == 0 else check


def from_front(indices: Array, dim: int, ends: Array) -> Thunk:
    """Checks dense int64 `indices` into an axis of length `dim` and counts them from the front, in place."""
    count = np.asarray(max(dim, 1), INT64)
    return in_turn(range_check(indices, dim, ends), partial(np.remainder, indices, count, out=indices))


def element_strides(shape: Shape) -> tuple[int, ...]:
    """Returns the strides of a dense tensor, in elements."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def add_positions(flat: Array, term: Array, strides: tuple[int, ...]) -> Thunk:
    """Returns the step flat[i, j, ...] += i * strides[0] + j * strides[1] + ...

    `term` is scratch of the shape of `flat`.
    """
    thunks = []
    for axis, stride in enumerate(strides):
        if stride and flat.shape[axis] > 1:
            column = (np.arange(flat.shape[axis]) * stride).reshape([-1] + [1] * (flat.ndim - axis - 1))
            thunks += [partial(np.copyto, term, column), partial(np.add, flat, term, out=flat)]
    return in_turn(*thunks)


@frozen(eq=False)
class PositionScratch:
    """Temporaries of int64: `flat` takes the positions, `term` (of the same shape) and `ends` are scratch."""

    flat: Array
    term: Array
    ends: Array


def position_specs(shape: Shape) -> Specs:
    """Returns the specs of the scratch for positions of this shape."""
    return TensorSpec(shape, INT64), TensorSpec(shape, INT64), ENDS


def row_specs(signature: Signature) -> Specs:
    """Returns the specs of the scratch for `rows`; input 1 has the tuples of indices."""
    return position_specs(signature.inputs[1].shape[:-1])


def along_axis(indices: Array, shape: Shape, axis: int, scratch: PositionScratch) -> Thunk:
    """Returns a thunk that turns indices along `axis` into positions in a dense tensor of `shape`.

    Position i, in the scratch `flat`, is that of element i of `indices`.
    """
    strides = element_strides(shape)
    others = tuple(0 if i == axis else s for i, s in enumerate(strides))
    return in_turn(
        partial(np.copyto, scratch.flat, indices),
        from_front(scratch.flat, shape[axis], scratch.ends),
        partial(np.multiply, scratch.flat, np.asarray(strides[axis], INT64), out=scratch.flat),
        add_positions(scratch.flat, scratch.term, others),
    )


def rows(indices: Array, shape: Shape, batch_dims: int, scratch: PositionScratch) -> Thunk:
    """Returns a thunk that turns tuples of indices into positions of rows in a dense tensor of `shape`.

    Position i, in the scratch `flat`, is that of the row that the tuple indices[i, :] names; batch axes come first.
    """
    flat, term, strides = scratch.flat, scratch.term, element_strides(shape)
    thunks: list[Thunk] = [partial(flat.fill, 0)]
    for k, dim in enumerate(shape[batch_dims:]):
        stride = np.asarray(strides[batch_dims + k], INT64)
        thunks += [
            partial(np.copyto, term, indices[..., k]),
            from_front(term, dim, scratch.ends),
            partial(np.multiply, term, stride, out=term),
            partial(np.add, flat, term, out=flat),
        ]
    return in_turn(*thunks, add_positions(flat, term, strides[:batch_dims]))
