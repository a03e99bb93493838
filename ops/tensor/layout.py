"""Where the elements of a tensor lie inside a chunk of memory: first byte, shape, strides."""

import math
from functools import lru_cache

from attrs import frozen

from ops.tensor.spec import Array, Shape, TensorSpec

CACHE_LINE = 64
"""Bytes of a line of the processor's cache: kernels read whole lines, so that arrays begin at a line."""


def address_of(array: Array) -> int:
    """Returns the address of the first element."""
    return int(array.__array_interface__["data"][0])


@lru_cache(maxsize=4096)
def dense_strides(shape: Shape, itemsize: int) -> tuple[int, ...]:
    """Returns the byte strides of a dense tensor in C order."""
    strides, step = [], itemsize
    for dim in reversed(shape):
        strides.append(step)
        step *= max(dim, 1)
    return tuple(reversed(strides))


@frozen
class Layout:
    """Element (i, j, ...) starts at byte `offset + i * strides[0] + j * strides[1] + ...` of its chunk.

    Strides are in bytes and may be zero (expand) or negative (a slice that runs backwards).
    """

    offset: int
    shape: Shape
    strides: tuple[int, ...]
    itemsize: int

    @staticmethod
    def dense(spec: TensorSpec, offset: int = 0) -> "Layout":
        """Returns the layout in C order, without holes."""
        layout = _dense(spec.shape, spec.dtype.itemsize)
        return layout.starting_at(offset) if offset else layout

    @classmethod
    def of(cls, array: Array) -> "Layout":
        """Returns the layout of an array, counted from its own first element."""
        return cls(0, array.shape, array.strides, array.itemsize)

    def is_all_of(self, spec: TensorSpec) -> bool:
        """Returns whether this is `Layout.dense(spec, offset)` for its own offset."""
        itemsize = spec.dtype.itemsize
        return (self.shape, self.strides, self.itemsize) == (spec.shape, dense_strides(spec.shape, itemsize), itemsize)

    @property
    def is_dense(self) -> bool:
        """Returns whether elements lie in C order without holes (dimensions of length 0 or 1 may have any stride)."""
        wanted = dense_strides(self.shape, self.itemsize)
        if self.strides == wanted or 0 in self.shape:
            return True
        return all(n == 1 or s == w for n, s, w in zip(self.shape, self.strides, wanted, strict=True))

    @property
    def extent(self) -> tuple[int, int]:
        """Returns the half-open range of bytes that the elements touch; empty for an empty tensor."""
        if self.strides == dense_strides(self.shape, self.itemsize):
            return self.offset, self.offset + math.prod(self.shape) * self.itemsize
        low = high = self.offset
        for n, s in zip(self.shape, self.strides, strict=True):
            if not n:
                return self.offset, self.offset
            if s > 0:
                high += (n - 1) * s
            else:
                low += (n - 1) * s
        return low, high + self.itemsize

    @property
    def runs(self) -> int:
        """Returns into how many runs of neighbouring bytes the elements fall, in C order."""
        if 0 in self.shape:
            return 0
        count, outer, back = 1, math.prod(self.shape), 0
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            outer //= length
            if stride - back != self.itemsize:  # a step along this axis goes back to the start of all inner ones
                count += (length - 1) * outer
            back += (length - 1) * stride
        return count

    def starting_at(self, byte: int) -> "Layout":
        """Returns the layout moved so that `byte` is the lowest one that an element touches."""
        return Layout(self.offset + byte - self.extent[0], self.shape, self.strides, self.itemsize)

    def transpose(self, perm: tuple[int, ...]) -> "Layout":
        """Returns the layout with its axes in the order `perm`."""
        shape, strides = (tuple(v[p] for p in perm) for v in (self.shape, self.strides))
        return Layout(self.offset, shape, strides, self.itemsize)

    def slice(self, axis: int, start: int, length: int, step: int = 1) -> "Layout":
        """Returns the layout of `length` elements along `axis` from `start`, every `step`-th; it checks no bounds.

        An empty slice stays where it was: it has no first element that could lie further on.
        """
        shape, strides = list(self.shape), list(self.strides)
        first = start * strides[axis]
        shape[axis], strides[axis] = length, strides[axis] * step
        offset = self.offset if 0 in shape else self.offset + first
        return Layout(offset, tuple(shape), tuple(strides), self.itemsize)

    def expand(self, shape: Shape) -> "Layout":
        """Returns the layout broadcast to `shape` (numpy's rule): stride 0 along each dimension that grows."""
        lead = len(shape) - len(self.shape)
        kept = ((s if n == m else 0) for n, m, s in zip(self.shape, shape[lead:], self.strides, strict=True))
        return Layout(self.offset, shape, (0,) * lead + tuple(kept), self.itemsize)

    def reshape(self, shape: Shape) -> "Layout | None":
        """Returns the same elements in C order under another shape, or None where that needs a copy."""
        if 0 in shape:
            return Layout(self.offset, shape, dense_strides(shape, self.itemsize), self.itemsize)
        runs = _dense_runs(self)
        strides: list[int] = []
        for dim in reversed(shape):
            while runs and runs[-1][0] == 1:
                runs.pop()
            if dim == 1:
                strides.append(strides[-1] if strides else self.itemsize)
                continue
            length, step = runs.pop() if runs else (1, 0)
            if length % dim:
                return None
            strides.append(step)
            runs.append((length // dim, step * dim))
        return Layout(self.offset, shape, tuple(reversed(strides)), self.itemsize)


def _dense_runs(layout: Layout) -> list[tuple[int, int]]:
    """Merges neighbouring dimensions where one steps over exactly the next: (length, stride), outermost first."""
    runs: list[tuple[int, int]] = []
    for length, stride in zip(layout.shape, layout.strides, strict=True):
        if length == 1:
            continue
        if runs and runs[-1][1] == length * stride:
            runs[-1] = (runs[-1][0] * length, stride)
        else:
            runs.append((length, stride))
    return runs


@lru_cache(maxsize=4096)
def _dense(shape: Shape, itemsize: int) -> Layout:
    return Layout(0, shape, dense_strides(shape, itemsize), itemsize)
