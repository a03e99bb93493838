"""What is known of a tensor before anything runs: its shape, its element type, hence its size."""

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from ops.tensor.dims import Dim
from ops.tensor.errors import DtypeError, ShapeError

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
"""Lengths of the dimensions. Before shapes are bound, a `Dim` may stand for a number; no kernel ever sees one."""
Axes = int | Sequence[int]
"""One axis or several."""

FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64")))
SIGNED = frozenset(map(np.dtype, ("int8", "int16", "int32", "int64")))
UNSIGNED = frozenset(map(np.dtype, ("uint8", "uint16", "uint32", "uint64")))
INTEGERS = SIGNED | UNSIGNED
NUMBERS = FLOATS | INTEGERS
BOOL = np.dtype("bool")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
"""float32 without its last 16 bits. Tensors are stored in it; what computes with them is in `ops/half/`."""
HALVES = frozenset((np.dtype("float16"), BFLOAT16))
NARROW_INTEGERS = frozenset(map(np.dtype, (ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4)))
NARROW_FLOATS = frozenset(
    map(
        np.dtype,
        (
            ml_dtypes.float4_e2m1fn,
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2,
            ml_dtypes.float8_e5m2fnuz,
        ),
    )
)
POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)
"""Powers of two from -127 to 127, without a sign and without 0: the scales of microscaling formats."""
NARROW = NARROW_INTEGERS | NARROW_FLOATS | {POWERS}
"""Types of 8 bits and fewer in which numbers are stored, one in each byte. Nothing computes in them."""
COMPUTED = NUMBERS | {BOOL, BFLOAT16}
DTYPES = COMPUTED | NARROW

MOST_DIMS = 32
"""The most dimensions of a tensor: numpy broadcasts no more."""
_MOST_BYTES = 2**63 - 1
_PLAIN = frozenset((int,))


def as_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Returns the numpy dtype of `dtype`. Raises DtypeError for one that no tensor can have."""
    if isinstance(dtype, np.dtype) and dtype in DTYPES:
        return dtype
    if dtype is None:
        raise DtypeError("an element type is missing")
    try:
        element_type = np.dtype(dtype)
    except TypeError as error:
        raise DtypeError(f"{dtype!r} is no element type") from error
    if element_type not in DTYPES:
        names = ", ".join(sorted(d.name for d in DTYPES))
        raise DtypeError(f"element type {element_type} is not supported; one of: {names}")
    return element_type


def as_shape(shape: Sequence[int]) -> Shape:
    """Returns a tuple of plain ints, and of `Dim`s as they are. Raises ShapeError for other or negative entries."""
    try:
        dims = lengths = tuple(shape)
        if not _PLAIN.issuperset(map(type, dims)):
            dims = tuple(d if isinstance(d, Dim) else d.__index__() for d in dims)
            lengths = tuple(d for d in dims if not isinstance(d, Dim))
    except (AttributeError, TypeError) as error:
        raise ShapeError(f"shape {shape!r} has a dimension that is no integer") from error
    if lengths and min(lengths) < 0:
        raise ShapeError(f"shape {dims} has a negative dimension")
    return dims


@frozen
class TensorSpec:
    """Shape and dtype of a tensor, stored densely in C order.

    Raises ShapeError for too many dimensions, and where the bytes overflow 64 bits, lengths of 0 left aside.
    """

    shape: Shape = field(converter=as_shape)
    dtype: np.dtype[Any] = field(converter=as_dtype)

    def __attrs_post_init__(self) -> None:
        if len(self.shape) > MOST_DIMS:
            raise ShapeError(f"a tensor has {len(self.shape)} dimensions; the most are {MOST_DIMS}")
        if self.is_symbolic:
            return
        lengths = self.shape if 0 not in self.shape else [n or 1 for n in self.shape]
        nbytes = math.prod(lengths) * self.dtype.itemsize
        if nbytes > _MOST_BYTES:
            raise ShapeError(f"a {self} tensor needs {nbytes} bytes, more than 64 bits can say")

    @property
    def ndim(self) -> int:
        """Returns the number of dimensions."""
        return len(self.shape)

    @property
    def is_symbolic(self) -> bool:
        """Returns whether a dimension has no number yet; `size` and `nbytes` have none then either."""
        return Dim in map(type, self.shape)

    @property
    def size(self) -> int:
        """Returns the number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the dense tensor."""
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Sequence[int]) -> "TensorSpec":
        """Returns a spec of the same dtype with another shape."""
        return TensorSpec(tuple(shape), self.dtype)

    def with_dtype(self, dtype: npt.DTypeLike) -> "TensorSpec":
        """Returns a spec of the same shape with another dtype."""
        return TensorSpec(self.shape, np.dtype(dtype))

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def new_arrays(specs: Iterable[TensorSpec]) -> tuple[Array, ...]:
    """Returns a new dense array of each spec; they hold anything."""
    return tuple(np.empty(s.shape, s.dtype) for s in specs)


def spec_of(array: Array) -> TensorSpec:
    """Returns the spec of an array."""
    return TensorSpec(array.shape, array.dtype)


LOST_MASK = "a masked array, whose mask would be lost: give its `filled()` or its `data`"
"""What is wrong with an array for which `is_masked` is true."""


def is_masked(value: object) -> bool:
    """Returns whether a value is an array with a mask, which everything here would lose."""
    return "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)  # numpy loads it when it is asked for


def as_data(value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
    """Returns a value as an array. Raises DtypeError for a masked array."""
    if is_masked(value):
        raise DtypeError(LOST_MASK)
    return np.asarray(value, dtype)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Returns the shape to which all `shapes` broadcast (numpy's rule). Raises ShapeError where they do not."""
    try:
        return np.broadcast_shapes(*shapes)
    except TypeError:  # numpy asks a dimension for its number
        return _broadcast_dims(shapes)
    except (ValueError, RuntimeError) as error:  # RuntimeError: too many dimensions
        raise ShapeError(f"shapes {', '.join(map(str, shapes))} do not broadcast") from error


def _broadcast_dims(shapes: Sequence[Shape]) -> Shape:
    """Returns the same for shapes with dimensions in them, which are compared where neither is 1."""
    whole: list[int] = []
    for lengths in zip_longest(*map(reversed, shapes), fillvalue=1):
        length, *others = [n for n in lengths if isinstance(n, Dim) or n != 1] or [1]
        for n in others:
            if n in (length, 1):
                continue
            if length != 1:
                raise ShapeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
            length = n
        whole.append(length)
    return tuple(reversed(whole))


def normalize_axis(axis: int, ndim: int) -> int:
    """Returns `axis` counted from the front. Raises ShapeError outside [-ndim, ndim)."""
    if not -ndim <= axis < ndim:
        raise ShapeError(f"axis {axis} does not exist in a tensor of {ndim} dimensions")
    return axis % ndim


def several(value: Any) -> tuple[Any, ...]:
    """Returns the values of a sequence as a tuple; one value that is no sequence is a tuple of one."""
    return tuple(value) if np.iterable(value) else (value,)


def normalize_axes(axes: Axes, ndim: int) -> tuple[int, ...]:
    """Returns all `axes` counted from the front, in their order. Raises ShapeError for one outside, or twice."""
    named = several(axes)
    axes_from_front = tuple(normalize_axis(a, ndim) for a in named)
    if len(set(axes_from_front)) != len(axes_from_front):
        raise ShapeError(f"axes {named} name a dimension twice")
    return axes_from_front


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns float32 for float16, which has no BLAS; else the same."""
    return np.dtype("float32") if dtype == np.dtype("float16") else dtype
