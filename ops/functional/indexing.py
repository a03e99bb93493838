"""What stands between the brackets of x[...], as slices and a reshape."""

from types import EllipsisType

from ops.attributes import integer
from ops.errors import AttributeValueError, ShapeError
from ops.functional.apply import V
from ops.functional.views import identity, reshape
from ops.functional.views import slice as slice_axes

Key = int | slice | EllipsisType | None
"""One part of what stands between the brackets."""

_BEFORE_THE_FIRST = -(2**63) + 1


def getitem(x: V, key: Key | tuple[Key, ...]) -> V:
    """x[key] for integers, slices, one ellipsis, and None for a new axis, as numpy has it."""
    shape = x.spec.shape
    keys = _spelled_out(key if isinstance(key, tuple) else (key,), len(shape))
    parts = [_part(k, n) for k, n in zip((k for k in keys if k is not None), shape, strict=True)]
    cut = [(axis, *part) for axis, part in enumerate(parts) if part != (0, shape[axis], 1)]
    if cut:
        axes, starts, ends, steps = zip(*cut, strict=True)
        x = slice_axes(x, starts, ends, axes, steps)
    kept = iter(x.spec.shape)
    dims = [1 if k is None else next(kept) for k in keys]
    wanted = [n for k, n in zip(keys, dims, strict=True) if k is None or isinstance(k, slice)]
    if wanted != list(x.spec.shape):
        return reshape(x, wanted)
    return x if cut else identity(x)


def _spelled_out(keys: tuple[Key, ...], ndim: int) -> list[int | slice | None]:
    """The keys with the ellipsis replaced, so that all axes have one."""
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


def _part(key: int | slice, length: int) -> tuple[int, int, int]:
    """Start, end and step of a slice operator."""
    if not isinstance(key, slice):
        start = _from_front(key, length)
        return start, start + 1, 1
    if key.step == 0:
        raise ShapeError(f"{key} has the step 0")
    found = range(*key.indices(length))
    if not found:
        return 0, 0, 1
    return found.start, found.stop if found.stop >= 0 else _BEFORE_THE_FIRST, found.step


def _from_front(index: int, length: int) -> int:
    """The index, counted from the front."""
    if not -length <= index < length:
        raise ShapeError(f"index {index} is outside an axis of length {length}")
    return index % length
