"""Indexing with brackets, x[...], as slices and a reshape."""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

from ops.common.apply import V
from ops.common.lengths import Length
from ops.movement.reshape import reshape
from ops.movement.slicing import slice as slice_axes
from ops.movement.views import identity
from ops.schema.attributes import integer
from ops.tensor.dims import Dim
from ops.tensor.errors import AttributeValueError, ShapeError

Key = int | slice | EllipsisType | None
"""One part of the index between the brackets."""


_BEFORE_THE_FIRST = -(2**63) + 1


def getitem(x: V, key: Key | tuple[Key, ...]) -> V:
    """Returns x[key] for integers, slices, one ellipsis, and None for a new axis, as numpy does.

    Bounds of slices may be dimensions, or vars of one integer, which the run decides.
    """
    shape = x.spec.shape
    keys = _spelled_out(key if isinstance(key, tuple) else (key,), len(shape))
    parts = [_part(k, n) for k, n in zip((k for k in keys if k is not None), shape, strict=True)]
    cut = [(axis, *part) for axis, part in enumerate(parts) if not _is_whole(part, shape[axis])]
    if cut:
        axes, starts, ends, steps = zip(*cut, strict=True)
        x = slice_axes(x, starts, ends, axes, steps)
    lengths = iter(x.spec.shape)
    dims = [1 if k is None else next(lengths) for k in keys]
    shape_after = [n for k, n in zip(keys, dims, strict=True) if k is None or isinstance(k, slice)]
    if not _is_same(shape_after, x.spec.shape):
        return reshape(x, shape_after)
    return x if cut else identity(x)


def _spelled_out(keys: tuple[Key, ...], ndim: int) -> list[int | slice | None]:
    """Returns the keys with the ellipsis replaced, so that all axes have one."""
    named = sum(1 for k in keys if k is not None and k is not ...)
    dots = sum(1 for k in keys if k is ...)
    if named > ndim or dots > 1:
        raise ShapeError(f"{keys} does not index a tensor of {ndim} dimensions")
    rest = [slice(None)] * (ndim - named)
    spelled: list[int | slice | None] = []
    for k in keys if dots else (*keys, ...):
        if isinstance(k, EllipsisType):
            spelled += rest
        else:
            spelled.append(k if k is None or isinstance(k, slice) else _number(k))
    return spelled


def _number(key: int) -> int:
    try:
        return integer(key)
    except (AttributeError, TypeError) as error:
        raise AttributeValueError(f"{key!r} indexes nothing; integers, slices, ... and None do") from error


def _part(key: int | slice, length: Dim | int) -> tuple[Length, Length, int]:
    """Returns start, end and step of a slice operator."""
    if not isinstance(key, slice):
        start = _from_front(key, length)
        return start, start + 1, 1
    if key.step == 0:
        raise ShapeError(f"{key} has the step 0")
    if not all(p is None or isinstance(p, int) for p in (length, key.start, key.stop)):
        return _open_part(key, length)
    places = range(*key.indices(length))
    if not places:
        return 0, 0, 1
    return places.start, places.stop if places.stop >= 0 else _BEFORE_THE_FIRST, places.step


def _open_part(key: slice, length: Dim | int) -> tuple[Length, Length, int]:
    """Returns start, end and step where the length or an entry of the key has no number yet."""
    step = 1 if key.step is None else _number(key.step)
    start, end = (0, length) if step > 0 else (-1, _BEFORE_THE_FIRST)
    if step < 0 and isinstance(key.start, int) and key.start < 0:
        _from_front(
            key.start, length
        )  # numpy takes nothing from in front of the axis; the operator would take the first element
    return start if key.start is None else key.start, end if key.stop is None else key.stop, step


def _is_whole(part: tuple[Length, Length, int], length: Dim | int) -> bool:
    """Returns whether a part is the whole axis. Decides nothing about lengths."""
    start, end, step = part
    if not isinstance(start, int) or (start, step) != (0, 1):
        return False
    return end is length or (isinstance(end, int) and isinstance(length, int) and end == length)


def _is_same(one: Sequence[Dim | int], other: Sequence[Dim | int]) -> bool:
    """Returns whether two shapes are the same. Decides nothing about lengths."""
    return len(one) == len(other) and all(
        m is n or (isinstance(m, int) and isinstance(n, int) and m == n) for m, n in zip(one, other, strict=True)
    )


def _from_front(index: int, length: Dim | int) -> Any:
    """Returns the index, counted from the front. Raises ShapeError outside the axis."""
    if not (index < length if index >= 0 else -index <= length):
        raise ShapeError(f"index {index} is outside an axis of length {length}")
    return index if index >= 0 else length + index
