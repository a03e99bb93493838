"""Constants that are made when they are wanted, and are gone when nobody has them any more.

What a pass makes of weights would double them: the graph that it began with has them too. So the new graph keeps how
it is made.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from attrs import define, field, frozen

from engine.graph.mapped import release
from engine.system.arrays import aligned_empty
from ops.tensor.spec import Array, TensorSpec

SMALL = 1 << 16
"""Bytes of an array that is better kept."""
_PIECE = 1 << 22
_Key = TypeVar("_Key")


def _nothing() -> Array | None:
    """No array is there."""
    return None


@define(eq=False)
class Deferred:
    """A dense array of that spec. `make` makes it, the same each time; nobody writes it."""

    spec: TensorSpec
    make: Callable[[], Array] = field(repr=False)
    _made: Callable[[], Array | None] = field(default=_nothing, init=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return self.spec.nbytes

    def array(self) -> Array:
        """The array: the one that somebody holds, or a new one."""
        held = self._made()
        if held is None:
            held = self.make()
            held.flags.writeable = False
            self._made = weakref.ref(held)
        return held


Entry = Array | Deferred


@frozen(eq=False)
class Constants(Mapping[_Key, Array]):
    """Arrays by key; one that is deferred is made when it is looked up. `entries` has them as they are kept."""

    entries: Mapping[_Key, Entry]

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
        """Shape and dtype, and nothing is made."""
        entry = self.entries[key]
        return entry.spec if isinstance(entry, Deferred) else TensorSpec(entry.shape, entry.dtype)


def as_constants(entries: Any) -> Constants[Any]:
    """The same, where they are no plain mapping."""
    return entries if isinstance(entries, Constants) else Constants(entries)


def array_of(entry: Entry) -> Array:
    """The array."""
    return entry.array() if isinstance(entry, Deferred) else entry


def sources(entry: object) -> Iterator[Array]:
    """The array, or those that a deferred one is made of, as far as arguments of its maker tell."""
    if isinstance(entry, np.ndarray):
        yield entry
    elif isinstance(entry, Deferred):
        yield from sources(entry.make)
    elif isinstance(entry, partial):
        yield from sources((*entry.args, *entry.keywords.values()))
    elif isinstance(entry, tuple):
        for part in entry:
            yield from sources(part)


def aligned(array: Array) -> Entry:
    """The same where kernels can read it; else what they can read, a copy, is made when it is wanted."""
    if array.flags.aligned:
        return array
    if array.nbytes <= SMALL:
        return _aligned_copy(array)
    return Deferred(TensorSpec(array.shape, array.dtype), partial(_aligned_copy, array))


def _aligned_copy(array: Array) -> Array:
    """A piece at a time, so that a file and its copy are never resident at once."""
    made = aligned_empty(array.nbytes, 64)
    source = array.reshape(-1).view(np.uint8)
    for first in range(0, array.nbytes, _PIECE):
        part = source[first : first + _PIECE]
        np.copyto(made[first : first + _PIECE], part)
        release(part)
    found = made.view(array.dtype).reshape(array.shape)
    found.flags.writeable = False
    return found
