"""Rows of inputs, from arrays that have all of them, and from stripes that come one after the other."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field

from engine.executor.feeds import check_array
from engine.text.errors import FeedError
from ops.tensor.spec import Array, TensorSpec


class RowSource(Protocol):
    """An input of which rows are taken in order."""

    def take(self, first: int, last: int) -> Array:
        """Returns rows [first, last); `first` is never less than before. Raises FeedError."""

    def end(self) -> None:
        """Raises FeedError where what was given has other rows than the input."""


def row_source(name: str, value: Any, spec: TensorSpec, axis: int) -> RowSource:
    """Returns the rows of an input of that spec: of an array, or of stripes that an iterable gives. Raises FeedError.

    What has a shape and gives arrays for slices, such as an array in a file, is as good as an array.
    """
    if hasattr(value, "shape") and hasattr(value, "__getitem__"):
        if tuple(value.shape) != spec.shape:
            raise FeedError(f"input {name!r} has shape {tuple(value.shape)}, but {spec.shape} is expected")
        return _Given(name, value, spec, axis)
    if not isinstance(value, Iterable):
        raise FeedError(
            f"input {name!r} is a {type(value).__name__}: give an array, or an iterable of arrays with some rows each"
        )
    return _Coming(name, spec, axis, iter(value))


@define(eq=False)
class _Given:
    """An input that is given whole."""

    name: str
    array: Any
    spec: TensorSpec
    axis: int

    def take(self, first: int, last: int) -> Array:
        """Returns rows [first, last): views of an array."""
        rows: Array = np.asarray(self.array[(*(slice(None) for _ in range(self.axis)), slice(first, last))])
        return rows

    def end(self) -> None:
        """Does nothing: the shape is right."""


@define(eq=False)
class _Coming:
    """An input whose stripes come in order, of any heights. Rows are kept as long as they may be needed."""

    name: str
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

    def end(self) -> None:
        """Takes what nobody needs, and checks that no row is missing or too many."""
        while self.last < self.spec.shape[self.axis]:
            self._drop(self.last)
            self._pull()
        if next(self.coming, None) is not None:
            raise FeedError(f"input {self.name!r} has more than its {self.spec.shape[self.axis]} rows")

    def _drop(self, first: int) -> None:
        """Forgets the rows before one."""
        kept = [self._cut(array, first - self.first, self.last - self.first) for array in self.held]
        self.held, self.first = [array for array in kept if array.size], first

    def _pull(self) -> None:
        """Takes the next stripe. The last one is copied before: the caller may write the next one over it."""
        self.held[-1:] = [array.copy() for array in self.held[-1:]]
        stripe, rows = next(self.coming, None), self.spec.shape[self.axis]
        if stripe is None:
            raise FeedError(f"input {self.name!r} ended after {self.last} of its {rows} rows")
        height = stripe.shape[self.axis] if isinstance(stripe, np.ndarray) and stripe.ndim == self.spec.ndim else 0
        if not height:
            what = f"shape {stripe.shape}" if isinstance(stripe, np.ndarray) else f"type {type(stripe).__name__}"
            raise FeedError(f"input {self.name!r}: the stripe from row {self.last} on has {what}; {self._wanted}")
        shape = (*self.spec.shape[: self.axis], height, *self.spec.shape[self.axis + 1 :])
        check_array(f"input {self.name!r}: the stripe from row {self.last} on", stripe, evolve(self.spec, shape=shape))
        if self.last + height > rows:
            raise FeedError(f"input {self.name!r} has more than its {rows} rows")
        self.held.append(stripe)
        self.last += height

    @property
    def _wanted(self) -> str:
        return f"give arrays of {self.spec.ndim} dimensions, with rows in axis {self.axis}"

    def _cut(self, array: Array, first: int, last: int) -> Array:
        return array[(*(slice(None) for _ in range(self.axis)), slice(first, last))]
