"""Rows of inputs, from arrays that have all of them, and from stripes that come one after the other."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field, frozen

from engine.executor.feeds import as_array, check_array
from engine.text.errors import FeedError
from ops.common.tiling import cut
from ops.tensor.spec import Array, TensorSpec

_END = object()
"""What follows the last stripe."""


class RowSource(Protocol):
    """An input of which rows are taken in order."""

    def take(self, first: int, last: int) -> Array:
        """Returns rows [first, last); `first` is never less than before. Raises FeedError."""

    @property
    def memory(self) -> Array:
        """The array that the rows which were taken last lie in, with all others that it has."""

    def end(self) -> None:
        """Raises FeedError where what was given has other rows than the input."""


def row_source(name: str, value: Any, spec: TensorSpec, axis: int) -> RowSource:
    """Returns the rows of an input of that spec: of an array, or of stripes that an iterable gives. Raises FeedError.

    What has a shape and gives arrays for slices, such as an array in a file, is as good as an array.
    """
    what = f"input {name!r}"
    if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
        return Given(what, _checked(what, value, spec), spec, axis)
    if hasattr(value, "shape") and hasattr(value, "__getitem__"):
        shape = tuple(value.shape) if isinstance(value.shape, Iterable) else value.shape
        if shape != spec.shape:
            raise FeedError(f"{what} has shape {shape}, but {spec.shape} is expected")
        return Given(what, value, spec, axis)
    if not isinstance(value, Iterable):
        raise FeedError(
            f"{what} is a {type(value).__name__}: give an array, or an iterable of arrays with some rows each"
        )
    return _Coming(what, spec, axis, iter(value))


@frozen(eq=False)
class Given:
    """Rows of what is given whole: an array, or what gives arrays for slices. `what` is its name in errors."""

    what: str
    array: Any
    spec: TensorSpec
    axis: int

    def take(self, first: int, last: int) -> Array:
        """Returns rows [first, last): views of an array. Raises FeedError."""
        rows = self.array[cut(self.axis, first, last)]
        return _checked(f"{self.what}: rows {first} to {last}", rows, with_rows(self.spec, self.axis, last - first))

    @property
    def memory(self) -> Array:
        """The array; without elements where it is none, whose rows are new arrays."""
        return self.array if isinstance(self.array, np.ndarray) else np.empty(0)

    def end(self) -> None:
        """Does nothing: the shape is right."""


def with_rows(spec: TensorSpec, axis: int, rows: int) -> TensorSpec:
    """Returns a spec with so many rows."""
    return evolve(spec, shape=(*spec.shape[:axis], rows, *spec.shape[axis + 1 :]))


def _checked(what: str, rows: Any, spec: TensorSpec) -> Array:
    """Returns rows as an array of that spec. Raises FeedError."""
    array = as_array(what, rows, spec)
    check_array(what, array, spec)
    return array


@define(eq=False)
class _Coming:
    """An input whose stripes come in order, of any heights. Rows are kept as long as they may be needed."""

    what: str
    spec: TensorSpec
    axis: int
    coming: Iterator[Any]
    first: int = 0
    last: int = 0
    held: list[Array] = field(factory=list)
    """The arrays with rows [first, last), at most one between calls; it may be the caller's."""

    def take(self, first: int, last: int) -> Array:
        """Returns rows [first, last)."""
        self._drop(min(first, self.last))
        while self.last < last:
            self._pull()
        if len(self.held) > 1:
            self.held = [np.concatenate(self.held, self.axis)]
        return self._cut(self.held[0], first - self.first, last - self.first)

    @property
    def memory(self) -> Array:
        """The rows that are kept; an array without elements before any is read."""
        return self.held[0] if self.held else np.empty(0)

    def end(self) -> None:
        """Takes what nobody needs, and checks that no row is missing or too many."""
        while self.last < self.spec.shape[self.axis]:
            self._drop(self.last)
            self._pull()
        if next(self.coming, _END) is not _END:
            raise FeedError(f"{self.what} has more than its {self.spec.shape[self.axis]} rows")

    def _drop(self, first: int) -> None:
        """Forgets the rows before one."""
        kept = [self._cut(array, first - self.first, self.last - self.first) for array in self.held]
        self.held, self.first = [array for array in kept if array.shape[self.axis]], first

    def _pull(self) -> None:
        """Takes the next stripe. The last one is copied before: the caller may write the next one over it."""
        self.held[-1:] = [array.copy() for array in self.held[-1:]]
        stripe, rows = next(self.coming, _END), self.spec.shape[self.axis]
        if stripe is _END:
            raise FeedError(f"{self.what} ended after {self.last} of its {rows} rows")
        what = f"{self.what}: the stripe from row {self.last} on"
        if not any(hasattr(stripe, name) for name in ("__array__", "__dlpack__")):
            raise FeedError(f"{what} has type {type(stripe).__name__}; {self._wanted}")
        array = as_array(what, stripe, self.spec)
        height = array.shape[self.axis] if array.ndim == self.spec.ndim else 0
        if not height:
            raise FeedError(f"{what} has shape {array.shape}; {self._wanted}")
        check_array(what, array, with_rows(self.spec, self.axis, height))
        if self.last + height > rows:
            raise FeedError(f"{self.what} has more than its {rows} rows")
        self.held.append(array)
        self.last += height

    @property
    def _wanted(self) -> str:
        return f"give arrays of {self.spec.ndim} dimensions, with rows in axis {self.axis}"

    def _cut(self, array: Array, first: int, last: int) -> Array:
        return array[cut(self.axis, first, last)]
