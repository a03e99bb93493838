"""Other looks at the elements of a var: shapes, axes, slices. None of them needs bytes unless strides cannot say it."""

import math
from collections.abc import Sequence
from typing import cast

from ops.functional.apply import V, apply, apply1
from ops.functional.lengths import Length, lengths, new_shape
from ops.movement.reshape import RESHAPE
from ops.movement.slicing import SLICE
from ops.movement.views import EXPAND, IDENTITY, SPLIT, TRANSPOSE
from ops.symbolic.guesses import Guess, numbers_to
from ops.tensor.errors import ShapeError
from ops.tensor.spec import normalize_axes, normalize_axis


def identity(x: V) -> V:
    """x itself."""
    return apply1(IDENTITY, x)


def dropout(x: V) -> V:
    """x itself, as ever when nothing is being trained."""
    return identity(x)


def reshape(x: V, shape: Sequence[Length], *, zero_copies: bool = False) -> V:
    """The elements in C order; one dimension may be -1, and a 0 takes the one of x there where `zero_copies`.

    A length may be a var of one integer, which the run decides.
    """
    return apply1(RESHAPE, x, shape=new_shape(shape, x.spec.shape, zero_copies), zero_copies=zero_copies)


def flatten(x: V, axis: int = 1) -> V:
    """A matrix: the dimensions before `axis` by those from it on."""
    shape = x.spec.shape
    cut = axis if axis == len(shape) else normalize_axis(axis, len(shape))
    return reshape(x, (math.prod(shape[:cut]), math.prod(shape[cut:])))


def squeeze(x: V, axes: Sequence[int] | None = None) -> V:
    """Without the dimensions `axes`, which must have length 1; without all such where none are given."""
    shape = x.spec.shape
    gone = {i for i, n in enumerate(shape) if n == 1} if axes is None else set(normalize_axes(axes, len(shape)))
    if any(shape[i] != 1 for i in gone):
        raise ShapeError(f"axes {sorted(gone)} of shape {shape} are not all of length 1")
    return reshape(x, [n for i, n in enumerate(shape) if i not in gone])


def unsqueeze(x: V, axes: Sequence[int]) -> V:
    """With new dimensions of length 1, which stand at `axes` of the result."""
    ndim = len(x.spec.shape) + len(axes)
    new, kept = set(normalize_axes(axes, ndim)), iter(x.spec.shape)
    return reshape(x, [1 if i in new else next(kept) for i in range(ndim)])


def transpose(x: V, perm: Sequence[int] | None = None) -> V:
    """The axes in the order `perm`; reversed where none is given."""
    return apply1(TRANSPOSE, x, perm=perm)


def expand(x: V, shape: Sequence[Length]) -> V:
    """Broadcast together with `shape`, of which a length may be a var of one integer."""
    return apply1(EXPAND, x, shape=lengths(shape))


def slice(
    x: V,
    starts: Sequence[Length],
    ends: Sequence[Length],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> V:
    """Along each of `axes` (all leading ones where none are given) the elements starts:ends:steps.

    Starts and ends may be vars of one integer, which the run decides.
    """
    along = tuple(range(len(ends))) if axes is None else tuple(axes)
    shape = x.spec.shape

    def most(i: int) -> Guess:
        return numbers_to(shape[along[i]], turn=i)

    begin = lengths(starts, lambda i: tuple(n // 3 for n in most(i)))
    return apply1(SLICE, x, starts=begin, ends=lengths(ends, most), axes=axes, steps=steps)


def split(x: V, parts: int | Sequence[int], axis: int = 0) -> tuple[V, ...]:
    """Consecutive parts along `axis`: of the given lengths, or that many of equal length, the last maybe shorter."""
    length = x.spec.shape[normalize_axis(axis, len(x.spec.shape))]
    sizes = _equal_parts(length, parts) if isinstance(parts, int) else tuple(parts)
    return cast(tuple[V, ...], apply(SPLIT, (x,), sizes=sizes, axis=axis))


def _equal_parts(length: int, parts: int) -> tuple[int, ...]:
    if parts < 1:
        raise ShapeError(f"{length} elements cannot be split into {parts} parts")
    size = -(-length // parts)
    return tuple(max(min(size, length - i * size), 0) for i in range(parts))
