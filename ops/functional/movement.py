"""Functions on vars that move elements: joined, repeated, padded, picked and written by index."""

from collections.abc import Sequence
from typing import cast

import numpy.typing as npt

from ops.functional.apply import Operand, V, apply, apply1
from ops.functional.lengths import Length, length, lengths
from ops.functional.views import unsqueeze
from ops.index.gather import GATHER, GATHER_ELEMENTS, GATHER_ND
from ops.index.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ops.index.top_k import TOP_K
from ops.movement.concat import CONCAT
from ops.movement.cumulative import CUM_SUM, REVERSE_SEQUENCE
from ops.movement.generate import EYE_LIKE, HARDMAX, ONE_HOT, TRILU
from ops.movement.tile import TILE
from ops.spatial.pad import PAD
from ops.symbolic.guesses import numbers_to
from ops.symbolic.guesses import repeats as few
from ops.tensor.errors import ArityError, ShapeError
from ops.tensor.spec import Array, normalize_axes, normalize_axis


def concat(xs: Sequence[V | Operand], axis: int = 0) -> V:
    """The operands one behind the other along `axis`."""
    return cast(V, apply(CONCAT, xs, axis=axis)[0])


def stack(xs: Sequence[V], axis: int = 0) -> V:
    """The operands, all of one shape, one behind the other along a new `axis`."""
    if not xs:
        raise ArityError("stack: at least one operand is wanted")
    return concat([unsqueeze(x, [axis]) for x in xs], axis)


def tile(x: V, repeats: Sequence[Length]) -> V:
    """x, repeats[i] times along axis i; these may be vars of one integer."""
    return apply1(TILE, x, repeats=lengths(repeats, few))


def pad(
    x: V,
    pads: Sequence[int],
    mode: str = "constant",
    value: Operand | None = None,
    axes: Sequence[int] | None = None,
) -> V:
    """x with a border. `pads` are all numbers before, then all after, of `axes` (of every axis where none are given).

    Negative pads take elements away. `mode` is constant (0 where no value is given), reflect, edge or wrap.
    """
    more = () if value is None else (value,)
    return apply1(PAD, x, *more, pads=_all_pads(tuple(pads), axes, len(x.spec.shape)), mode=mode)


def gather(x: V | Array, indices: V | Array, axis: int = 0) -> V:
    """Slices of x along `axis`, picked by int32 or int64 indices; their shape replaces that axis."""
    return cast(V, apply(GATHER, (x, indices), axis=axis)[0])


def gather_elements(x: V | Array, indices: V | Array, axis: int = 0) -> V:
    """y[i, j] = x[indices[i, j], j] for axis 0, and likewise for others."""
    return cast(V, apply(GATHER_ELEMENTS, (x, indices), axis=axis)[0])


def gather_nd(x: V | Array, indices: V | Array, batch_dims: int = 0) -> V:
    """y[b, i] = x[b, indices[b, i, 0], indices[b, i, 1], ...]."""
    return cast(V, apply(GATHER_ND, (x, indices), batch_dims=batch_dims)[0])


def scatter_elements(
    data: V | Array, indices: V | Array, updates: V | Array, axis: int = 0, reduction: str = "none"
) -> V:
    """A copy of data where y[indices[i, j], j] = updates[i, j]; `reduction` is none, add, mul, max or min."""
    return cast(V, apply(SCATTER_ELEMENTS, (data, indices, updates), axis=axis, reduction=reduction)[0])


def scatter_nd(data: V | Array, indices: V | Array, updates: V | Array, reduction: str = "none") -> V:
    """A copy of data where y[indices[i, 0], indices[i, 1], ...] = updates[i]."""
    return cast(V, apply(SCATTER_ND, (data, indices, updates), reduction=reduction)[0])


def trilu(x: V, upper: bool = True, k: int = 0) -> V:
    """The upper (or lower) triangle of matrices, `k` above the main diagonal; zeros elsewhere."""
    return apply1(TRILU, x, upper=upper, k=k)


def eye_like(x: V, dtype: npt.DTypeLike | None = None, k: int = 0) -> V:
    """Ones on the diagonal `k` above the main one, of the shape of x."""
    return apply1(EYE_LIKE, x, dtype=dtype, k=k)


def one_hot(indices: V, values: Operand, depth: Length, axis: int = -1) -> V:
    """values[1] where the new `axis` of length `depth` (or a var of one integer) equals the index, else values[0]."""
    return apply1(ONE_HOT, indices, values, depth=length(depth), axis=axis)


def hardmax(x: V, axis: int = -1) -> V:
    """One at the first greatest element along `axis`, else zero."""
    return apply1(HARDMAX, x, axis=axis)


def cum_sum(x: V, axis: int, exclusive: bool = False, reverse: bool = False) -> V:
    """Sums of the elements up to each along `axis`."""
    return apply1(CUM_SUM, x, axis=axis, exclusive=exclusive, reverse=reverse)


def top_k(x: V, k: Length, axis: int = -1, largest: bool = True) -> tuple[V, V]:
    """The `k` greatest (or least) elements along `axis`, best first, and their int64 indices.

    `k` may be a var of one integer, which the run decides.
    """
    most = x.spec.shape[normalize_axis(axis, len(x.spec.shape))]
    return cast(tuple[V, V], apply(TOP_K, (x,), k=length(k, numbers_to(most)), axis=axis, largest=largest))


def reverse_sequence(x: V, lengths: Operand, batch_axis: int = 1, time_axis: int = 0) -> V:
    """The first lengths[b] time steps of each sequence b backwards."""
    return apply1(REVERSE_SEQUENCE, x, lengths, batch_axis=batch_axis, time_axis=time_axis)


def _all_pads(pads: tuple[int, ...], axes: Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return pads
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads for {len(axes)} axes; 2 an axis are wanted")
    found = normalize_axes(axes, ndim)
    before, after = (dict(zip(found, part, strict=True)) for part in (pads[: len(found)], pads[len(found) :]))
    return tuple(side.get(i, 0) for side in (before, after) for i in range(ndim))
