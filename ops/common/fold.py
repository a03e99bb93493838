"""Reductions over axes in bounded memory: a block is loaded into a temporary, folded, and joined to what was there."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.blocks import BLOCK_BYTES, Index, blocks
from ops.schema.attributes import Attribute, flag, integers, optional
from ops.schema.schema import Attrs, Signature, Thunk
from ops.tensor.limits import lowest
from ops.tensor.spec import Array, Shape, TensorSpec, normalize_axes

ATTRIBUTES = (Attribute("axes", optional(integers), None), Attribute("keepdims", flag, True))
Load = Callable[[Array, Array, Index], tuple[Thunk, ...]]
"""Passes from a block of x to the temporary of its shape; the rows say which elements of the output it belongs to."""


def reduced_axes(attrs: Attrs, ndim: int) -> tuple[int, ...]:
    """Returns the axes to reduce, counted from the front; all where `axes` is None."""
    axes = attrs["axes"]
    return tuple(range(ndim)) if axes is None else normalize_axes(axes, ndim)


def kept_shape(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """Returns the shape with 1 for each reduced axis."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def reduced_spec(x: TensorSpec, attrs: Attrs) -> TensorSpec:
    """Returns the spec of the reduced tensor."""
    axes = reduced_axes(attrs, x.ndim)
    if attrs["keepdims"]:
        return x.with_shape(kept_shape(x.shape, axes))
    return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in axes))


def dense_for_sums(signature: Signature) -> tuple[int, ...]:
    """Returns input 0 where it is summed over several axes, for a kernel's `contiguous`.

    Neighbouring axes are one loop, but not where there are gaps between them, and the order of a sum decides its bits.
    """
    axes = reduced_axes(signature.attrs, signature.x.ndim)
    return (0,) if sum(signature.x.shape[a] > 1 for a in axes) > 1 else ()


def fold_scratch(signature: Signature, dtype: np.dtype[Any]) -> tuple[TensorSpec, TensorSpec]:
    """Returns the specs of the two temporaries of a fold in `dtype`: a block of the input, and its result."""
    size = max(1, min(signature.x.size, BLOCK_BYTES // 2 // dtype.itemsize))
    return TensorSpec((size,), dtype), TensorSpec((min(size, signature.y.size),), dtype)


@frozen(eq=False)
class Fold:
    """A tensor to reduce over `axes`, with two temporaries (see `fold_scratch`) that a fold through blocks needs."""

    x: Array
    axes: tuple[int, ...]
    block: Array
    part: Array

    @property
    def count(self) -> int:
        """Returns how many elements are folded into one."""
        return prod(self.x.shape[a] for a in self.axes)

    def steps(self, function: np.ufunc, rows: Array, load: Load | None = None) -> tuple[Thunk, ...]:
        """Returns steps that fold x, or what `load` makes of it, into `rows`.

        `rows` has the kept shape and the dtype of the fold.
        """
        if not self.x.size:
            empty = lowest(rows.dtype) if function.identity is None else function.identity
            return (partial(rows.fill, empty),)
        if load is None and self.x.dtype == rows.dtype:
            return (partial(function.reduce, self.x, self.axes, rows.dtype, rows, keepdims=True),)
        return self._through_blocks(function, rows, load or copied)

    def _through_blocks(self, function: np.ufunc, rows: Array, load: Load) -> tuple[Thunk, ...]:
        steps: list[Thunk] = []
        for index in blocks(self.x.shape, self.block.size):
            source = self.x[index]
            loaded = self.block[: source.size].reshape(source.shape)
            where = tuple(slice(0, 1) if i in self.axes else s for i, s in enumerate(index))
            target = rows[where]
            part = self.part[: target.size].reshape(target.shape)
            steps += load(source, loaded, where)
            if _is_first(index, self.axes):
                steps.append(partial(function.reduce, loaded, self.axes, rows.dtype, target, keepdims=True))
            else:
                steps.append(partial(function.reduce, loaded, self.axes, rows.dtype, part, keepdims=True))
                steps.append(partial(function, target, part, out=target))
        return tuple(steps)


def _is_first(index: tuple[Any, ...], axes: tuple[int, ...]) -> bool:
    return all(index[a].start == 0 for a in axes)


def copied(source: Array, loaded: Array, _: Index) -> tuple[Thunk, ...]:
    """Returns the elements as they are, in the dtype of the fold."""
    return (partial(np.copyto, loaded, source),)


def mapped(function: np.ufunc) -> Load:
    """Returns `function` of the elements, computed in the dtype of the fold."""

    def load(source: Array, loaded: Array, _: Index) -> tuple[Thunk, ...]:
        if source.dtype == loaded.dtype:
            return (partial(function, source, loaded),)
        return (partial(np.copyto, loaded, source), partial(function, loaded, loaded))

    return load
