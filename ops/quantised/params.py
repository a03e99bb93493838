"""Quantisation parameters: which scale belongs to which elements, and the steps from real numbers to integers.

Rounding is to the nearest, halves to even. Results saturate, and NaN becomes the least number of the type.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.apply import Operand, is_var
from ops.common.blocks import blocks
from ops.schema.schema import Thunk
from ops.schema.workspace import prefix
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.limits import constant, highest, lowest
from ops.tensor.spec import NARROW_FLOATS, NARROW_INTEGERS, Array, TensorSpec, normalize_axis

SINGLE = np.dtype("float32")
BYTES = frozenset(map(np.dtype, ("uint8", "int8")))
QUANTISED_TYPES = BYTES | frozenset(map(np.dtype, ("uint16", "int16")))
"""Element types that operators compute with after numbers are quantised to them."""
STORED_TYPES = QUANTISED_TYPES | NARROW_INTEGERS | NARROW_FLOATS
"""Element types that numbers are quantised to."""
SCALES = frozenset(map(np.dtype, ("float32", "float16")))
PIECE = 1 << 14
"""Elements that go through all steps before the next ones: float32 copies of 64 KiB stay in a second-level cache."""


def check_scale(scale: TensorSpec, allowed: frozenset[np.dtype[Any]] = SCALES) -> None:
    """Raises DtypeError for scales of a type that is not allowed."""
    if scale.dtype not in allowed:
        raise DtypeError(f"a scale must be one of {', '.join(sorted(map(str, allowed)))}, not {scale.dtype}")


@frozen(eq=False)
class Grain:
    """The elements that share a scale.

    They are all elements (axis -1), those at one place along an axis, or blocks along it (block > 0).
    """

    axis: int
    block: int = 0
    whole: int = 0
    """Blocks that are not cut off by the end of the axis."""

    @classmethod
    def of(cls, x: TensorSpec, scale: TensorSpec, axis: int, block: int) -> "Grain":
        """Returns the grain of a scale. Raises ShapeError or AttributeValueError where it does not fit x."""
        if block < 0:
            raise AttributeValueError(f"block_size is {block}; it must be at least 0")
        if block == 0 and scale.size == 1 and scale.ndim <= 1:
            return cls(-1)
        axis = normalize_axis(axis, x.ndim)
        length = x.shape[axis]
        expected = (*x.shape[:axis], -(-length // block), *x.shape[axis + 1 :]) if block else (length,)
        if scale.shape != expected:
            raise ShapeError(f"scale of shape {scale.shape} along axis {axis} of {x.shape}; it must be {expected}")
        return cls(axis, block, length // block if block else 0)

    def cut(self, *arrays: Array) -> list[tuple[Array, ...]]:
        """Returns views of equal arrays, which together have all elements; the views of `spread` broadcast to them."""
        if self.axis < 0 and all(a.flags.c_contiguous for a in arrays):
            return [tuple(a.reshape(-1) for a in arrays)]
        if not self.block:
            return [arrays]
        heads, tails = zip(*(self._halves(a, self.whole * self.block) for a in arrays), strict=True)
        return [tuple(map(self._blocks, heads)), tails]

    def _blocks(self, head: Array) -> Array:
        return head.reshape(*head.shape[: self.axis], self.whole, self.block, *head.shape[self.axis + 1 :])

    def spread(self, parameter: Array, ndim: int) -> list[Array]:
        """Returns a scale or zero point as views that broadcast to those of `cut`; `ndim` is that of the tensor."""
        if self.axis < 0:
            return [parameter.reshape(())]
        if not self.block:
            return [parameter.reshape([-1] + [1] * (ndim - self.axis - 1))]
        head, tail = self._halves(parameter, self.whole)
        return [np.expand_dims(head, self.axis + 1), tail]

    def _halves(self, array: Array, at: int) -> tuple[Array, Array]:
        lead = (slice(None),) * self.axis
        return array[(*lead, slice(0, at))], array[(*lead, slice(at, None))]


def pieces(part: Array, *others: Array) -> Iterator[tuple[Array, ...]]:
    """Yields equal rectangles of a part and of arrays that broadcast to it; single numbers stay 0-d.

    A rectangle has at most PIECE elements.
    """
    wide = tuple(np.broadcast_to(a, part.shape) if a.ndim and a.shape != part.shape else a for a in others)
    if part.size:
        for index in blocks(part.shape, PIECE):
            yield (part[index], *(a[index] if a.ndim else a for a in wide))


def ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Returns the least and the greatest quantised value of a type."""
    return float(lowest(dtype)), float(highest(dtype))


def to_quantised(real: Array, zero: Array, y: Array, bounds: tuple[Array, ...] = ()) -> Iterator[Thunk]:
    """Yields the steps to y = saturate(round(real) + zero), in place in float32; `zero` is 0-d, or has real's shape.

    `bounds` are flat arrays filled with the least and the greatest value. They replace single numbers: they take
    workspace, and numpy then has arrays of one shape. No benchmark covers it.
    """
    least, most = (prefix(b, real.shape) for b in bounds) if bounds else (constant(n, SINGLE) for n in ends(y.dtype))
    yield partial(np.rint, real, real)
    yield partial(np.add, real, zero, real)
    yield partial(np.fmax, real, least, real)
    yield partial(np.fmin, real, most, real)
    yield partial(np.copyto, y, real, casting="unsafe")


def to_narrow_floats(real: Array, zero: Array, y: Array, bounds: tuple[Array, ...]) -> Iterator[Thunk]:
    """Yields the steps to y = the nearest to real + zero of a narrow type, in place in float32; NaN stays NaN.

    `bounds` are as above; without them, what is beyond the type's range becomes NaN or infinity.
    """
    yield partial(np.add, real, zero, real)
    for join, bound in zip((np.maximum, np.minimum), bounds, strict=False):
        yield partial(join, real, prefix(bound, real.shape), out=real)
    yield partial(np.copyto, y, real, casting="unsafe")


def quantised_type(zero: TensorSpec, allowed: frozenset[np.dtype[Any]] = QUANTISED_TYPES) -> np.dtype[Any]:
    """Returns the element type that a zero point stands for. Raises DtypeError for one that is not allowed."""
    if zero.dtype not in allowed:
        raise DtypeError(f"a zero point must be one of {', '.join(sorted(map(str, allowed)))}, not {zero.dtype}")
    return zero.dtype


def scale_operand(value: Operand) -> Operand:
    """Returns a plain number as float32, other operands as they are."""
    return np.asarray(value, np.float32) if isinstance(value, (int, float)) else value


def zero_point_operand(value: Operand, like: Operand) -> Operand:
    """Returns a plain number in the element type of `like`, a tensor or an element type; others as they are."""
    if not isinstance(value, int):
        return value
    return np.asarray(value, like.spec.dtype if is_var(like) else getattr(like, "dtype", like))


def scale_and_zero_point(scale: Operand, zero_point: Operand, like: Operand) -> tuple[Operand, Operand]:
    """Returns both parameters of one tensor as operands."""
    return scale_operand(scale), zero_point_operand(zero_point, like)
