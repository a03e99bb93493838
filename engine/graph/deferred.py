"""Constants that are computed when they are read, and dropped when nothing refers to them any more.

The result of a pass over weights would need as many bytes as the weights, which the source graph still has. So the new
graph keeps only how to compute it.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from attrs import define, field, frozen

from engine.graph.mapped import release
from engine.system.arrays import aligned_empty
from ops.tensor.layout import CACHE_LINE
from ops.tensor.spec import Array, Shape, TensorSpec

SMALL = 1 << 16
"""Bytes up to which an array is stored, as computing it again would cost more than its memory."""
_PIECE = 1 << 22
_FEW = 16
"""Elements of an array that are compared first. More reject more pairs early, but read more of mapped files."""
_Key = TypeVar("_Key")


def _nothing() -> Array | None:
    """Returns None: no array exists."""
    return None


@define(eq=False)
class Deferred:
    """A dense array that `make` computes, the same each time; it is read-only."""

    spec: TensorSpec
    make: Callable[[], Array] = field(repr=False)
    _made: Callable[[], Array | None] = field(default=_nothing, init=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.spec.nbytes

    def array(self) -> Array:
        """Returns the array: the one that still exists, or a new one."""
        existing = self._made()
        if existing is None:
            existing = self.make()
            existing.flags.writeable = False
            self._made = weakref.ref(existing)
        return existing

    def keep(self, array: Array) -> None:
        """Takes an array with the same bytes for its own as long as that exists, such as one in a mapped file."""
        self._made = weakref.ref(array)

    @cached_property
    def few_bytes(self) -> bytes:
        """A few elements, evenly spread; kept, so that the array is computed once for them."""
        return _few_bytes(self.array())


Entry = Array | Deferred


@frozen(eq=False)
class Constants(Mapping[_Key, Array]):
    """Arrays by key; a deferred one is computed on access. `entries` has them as they are stored."""

    entries: Mapping[_Key, Entry]

    def __repr__(self) -> str:
        """Returns one line: arrays fill many screens."""
        return f"<{len(self.entries)} constants>"

    def __getitem__(self, key: _Key) -> Array:
        entry = self.entries[key]
        return entry.array() if isinstance(entry, Deferred) else entry

    def __contains__(self, key: object) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[_Key]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def spec(self, key: _Key) -> TensorSpec:
        """Returns shape and dtype without computing the array."""
        entry = self.entries[key]
        return entry.spec if isinstance(entry, Deferred) else TensorSpec(entry.shape, entry.dtype)


def as_constants(entries: Any) -> Constants[Any]:
    """Returns the entries as Constants."""
    return entries if isinstance(entries, Constants) else Constants(entries)


def array_of(entry: Entry) -> Array:
    """Returns the array of an entry."""
    return entry.array() if isinstance(entry, Deferred) else entry


def few_bytes(entry: Entry) -> bytes:
    """Returns a few elements of an array, evenly spread: where they differ, arrays differ."""
    return entry.few_bytes if isinstance(entry, Deferred) else _few_bytes(entry)


def _few_bytes(array: Array) -> bytes:
    flat = array.reshape(-1)
    few = flat[:: max(1, flat.size // _FEW)].tobytes()
    release(array)
    return few


def sources(*entries: Entry) -> Iterator[Array]:
    """Yields the stored arrays that entries are or are computed from, each once."""
    return (entry for entry in behind(*entries) if isinstance(entry, np.ndarray))


def behind(*entries: Entry) -> Iterator[Entry]:
    """Yields entries, and those among the arguments of the functions that compute them, each once."""
    seen, left = set[int](), list[object](entries)
    while left:
        part = left.pop()
        if isinstance(part, (np.ndarray, Deferred)) and id(part) not in seen:
            seen.add(id(part))
            yield part
            left += [part.make] if isinstance(part, Deferred) else []
        elif isinstance(part, partial):
            left += [*part.args, *part.keywords.values()]
        elif isinstance(part, tuple):
            left += part


def is_repeated(array: Array) -> bool:
    """Returns whether elements of an array share their bytes, as those of a number that was broadcast do."""
    return any(stride == 0 and length > 1 for stride, length in zip(array.strides, array.shape, strict=True))


def aligned(array: Array) -> Entry:
    """Returns the array where it is aligned and dense; else such a copy, deferred where it is large.

    The array is dense, or it repeats its elements.
    """
    if array.flags.aligned and not is_repeated(array):
        return array
    make = partial(converted, array, array.dtype)
    if is_repeated(array):
        once = array[tuple(slice(None if stride else 1) for stride in array.strides)]
        make = partial(_repeated, once, array.shape)
    return Deferred(TensorSpec(array.shape, array.dtype), make) if array.nbytes > SMALL else make()


def _repeated(once: Array, shape: Shape) -> Array:
    dense = np.broadcast_to(once, shape).copy("C")
    dense.flags.writeable = False
    return dense


def converted(source: Array, dtype: np.dtype[Any]) -> Array:
    """Returns a dense, aligned, read-only copy of an array in another element type.

    It goes piece by piece, so that the pages of a file and their copy are never resident at once.
    """
    copy = aligned_empty(source.size * dtype.itemsize, CACHE_LINE).view(dtype)
    flat, step = source.reshape(-1), _PIECE // source.itemsize
    for first in range(0, source.size, step):
        part = flat[first : first + step]
        np.copyto(copy[first : first + step], part, casting="unsafe")
        release(part)
    copy.flags.writeable = False
    return copy.reshape(source.shape)
