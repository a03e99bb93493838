"""Sliding windows over the spatial dimensions of a tensor (N, C, spatial...): pads, strides, dilations, output sizes.

The arithmetic of ONNX Conv, MaxPool and AveragePool: pads are all begins, then all ends; with `ceil_mode` a last window
that would start in the end pad does not exist.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from attrs import frozen
from numpy.lib.stride_tricks import as_strided

from ops.schema.attributes import Attribute, flag, integer, integers, one_of
from ops.schema.schema import Attrs, Signature
from ops.tensor.dims import Dim
from ops.tensor.errors import AttributeValueError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec

STRIDES = Attribute("strides", integers, ())
PADS = Attribute("pads", integers, ())
DILATIONS = Attribute("dilations", integers, ())
AUTO_PAD = Attribute("auto_pad", one_of("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "NOTSET")
WINDOW_ATTRIBUTES = (STRIDES, PADS, DILATIONS, AUTO_PAD)
"""Attributes that all operators with windows share; () stands for all ones (pads: all zeros)."""
CONV_ATTRIBUTES = (*WINDOW_ATTRIBUTES, Attribute("group", integer, 1), Attribute("kernel_shape", integers, ()))
"""Attributes of convolutions."""
POOL_ATTRIBUTES = (*WINDOW_ATTRIBUTES, Attribute("kernel_shape", integers), Attribute("ceil_mode", flag, False))
"""Attributes of pooling."""
MOST = 2**31 - 1
"""The largest entry of these attributes, and the largest window: so places of taps never overflow 64 bits."""


Sizes = int | Sequence[int]
"""One number for all spatial dimensions, or one for each."""


def spatial_attributes(x: TensorSpec, strides: Sizes, pads: Sizes, dilations: Sizes) -> dict[str, Shape]:
    """Returns attributes with an entry for each spatial dimension of x; pads that are begins alone are ends, too."""
    count = x.ndim - 2
    sides = each(pads, count)
    return {
        "strides": each(strides, count),
        "pads": sides if len(sides) == 2 * count else sides + sides,
        "dilations": each(dilations, count),
    }


def each(value: Sizes, count: int) -> Shape:
    """Returns one number for each of `count` dimensions."""
    return tuple(value) if np.iterable(value) else (value,) * count


def require_spatial(x: TensorSpec) -> None:
    """Raises ShapeError for what is no (N, C, spatial...)."""
    if x.ndim < 3:
        raise ShapeError(f"data {x.shape} must have 2 + spatial dimensions, at least 3")


@frozen
class Windows:
    """One entry a dimension: tap `t` of window `o` reads element `o * stride - begin + t * dilation`."""

    sizes: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    begins: Shape
    ends: Shape
    outputs: Shape

    @property
    def ndim(self) -> int:
        """Returns the number of spatial dimensions."""
        return len(self.sizes)

    @property
    def padded(self) -> bool:
        """Returns whether any window reaches outside the tensor."""
        axes = range(self.ndim)
        return any(self.begins) or any(self.reach(a, self.outputs[a]) > self.sizes[a] + self.begins[a] for a in axes)

    @property
    def pointwise(self) -> bool:
        """Returns whether each output reads exactly the input at its own place."""
        ones = (1,) * self.ndim
        return self.kernel == ones and self.strides == ones and not any(self.begins) and not any(self.ends)

    def extent(self, axis: int) -> int:
        """Returns the number of elements from the first to the last of one window, inclusive."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def reach(self, axis: int, outputs: int) -> int:
        """Returns the number of elements that `outputs` neighbouring windows span."""
        return (outputs - 1) * self.strides[axis] + self.extent(axis) if outputs else 0


def filled(name: str, values: Sequence[int], length: int, least: int, default: int) -> tuple[int, ...]:
    """Returns `values`, or `length` times the default where there are none.

    Raises AttributeValueError for a wrong length, a small value, or one beyond MOST.
    """
    if not values:
        return (default,) * length
    if len(values) != length:
        raise AttributeValueError(f"attribute {name!r} has {len(values)} entries, not {length}")
    if min(values) < least:
        raise AttributeValueError(f"attribute {name!r} is {tuple(values)}; the least that it may hold is {least}")
    if max(values) > MOST:
        raise AttributeValueError(f"attribute {name!r} is {tuple(values)}; the most that it may hold is {MOST}")
    return tuple(values)


def _extents(kernel: Shape, dilations: Shape) -> Shape:
    extents = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    if max(extents) > MOST:
        raise ShapeError(f"windows of {kernel} with dilations {dilations} span {extents}; at most {MOST} are wanted")
    return extents


def windows(sizes: Shape, kernel: Shape, attrs: Attrs) -> Windows:
    """Returns the windows of these attributes over spatial `sizes`. Raises ShapeError where no window fits.

    Results are kept, since an operator is asked for its windows several times until it runs, and networks repeat
    layers.
    """
    ceil_mode = attrs.get("ceil_mode", False)
    steps = (attrs["strides"], attrs["dilations"])
    compute = _windows if Dim in map(type, sizes) else _kept_windows  # to look for dimensions would compare them
    return compute(sizes, kernel, *steps, pads=attrs["pads"], auto_pad=attrs["auto_pad"], ceil_mode=ceil_mode)


def pool_windows(signature: Signature) -> Windows:
    """Returns the windows of pooling, of x (N, C, spatial...)."""
    return windows(signature.x.shape[2:], signature.attrs["kernel_shape"], signature.attrs)


def nhwc_pool_windows(signature: Signature) -> Windows:
    """Returns the windows of pooling, of x (N, spatial..., C)."""
    return windows(signature.x.shape[1:-1], signature.attrs["kernel_shape"], signature.attrs)


def _windows(
    sizes: Shape, kernel: Shape, strides: Shape, dilations: Shape, *, pads: Shape, auto_pad: str, ceil_mode: bool
) -> Windows:
    n = len(sizes)
    if n == 0:
        raise ShapeError("has no spatial dimension; (N, C, spatial...) is wanted")
    kernel = filled("kernel_shape", kernel, n, 1, 1)
    strides = filled("strides", strides, n, 1, 1)
    dilations = filled("dilations", dilations, n, 1, 1)
    extents = _extents(kernel, dilations)
    begins, ends = _pads(pads, auto_pad, sizes, extents, strides)
    every = zip(sizes, extents, strides, begins, ends, strict=True)
    outputs = tuple(_output(*numbers, ceil_mode=ceil_mode) for numbers in every)
    return Windows(sizes, kernel, strides, dilations, begins, ends, outputs)


_kept_windows = lru_cache(maxsize=4096)(_windows)


def _pads(pads: Shape, auto: str, sizes: Shape, extents: Shape, strides: Shape) -> tuple[Shape, Shape]:
    n = len(sizes)
    sides = filled("pads", pads, 2 * n, 0, 0)
    if auto == "NOTSET":
        return sides[:n], sides[n:]
    if any(sides):
        raise AttributeValueError(f"pads {sides} and auto_pad {auto} cannot both be given")
    if auto == "VALID":
        return (0,) * n, (0,) * n
    totals = [max((-(-i // s) - 1) * s + e - i, 0) for i, e, s in zip(sizes, extents, strides, strict=True)]
    small, large = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
    return (small, large) if auto == "SAME_UPPER" else (large, small)


def _output(size: int, extent: int, stride: int, begin: int, end: int, *, ceil_mode: bool) -> int:
    free = size + begin + end - extent
    if free < 0:
        raise ShapeError(f"a window of {extent} does not fit into {size} elements padded by {begin} and {end}")
    if not ceil_mode:
        return free // stride + 1
    outputs = -(-free // stride) + 1
    return outputs - 1 if (outputs - 1) * stride >= size + begin else outputs


def tap_range(w: Windows, axis: int, tap: int, first: int = 0, last: int | None = None) -> tuple[slice, slice]:
    """Returns the outputs in [first, last) whose element number `tap` lies inside the tensor, and those elements.

    Outputs are counted from `first`; elements are counted from the start of the tensor.
    """
    stop = w.outputs[axis] if last is None else last
    shift, stride = tap * w.dilations[axis] - w.begins[axis], w.strides[axis]
    low = max(first, -(shift // stride))
    high = min(stop, (w.sizes[axis] - 1 - shift) // stride + 1)
    if low >= high:
        return slice(0, 0), slice(0, 0)
    return slice(low - first, high - first), slice(low * stride + shift, (high - 1) * stride + shift + 1, stride)


def window_view(array: Array, w: Windows, outputs: Shape) -> Array:
    """Returns a view (lead..., kernel..., outputs...) of an array (lead..., spatial...) from the first window on."""
    lead = array.ndim - w.ndim
    steps = array.strides[lead:]
    taps = tuple(s * d for s, d in zip(steps, w.dilations, strict=True))
    hops = tuple(s * d for s, d in zip(steps, w.strides, strict=True))
    shape = array.shape[:lead] + w.kernel + outputs
    if 0 in shape:
        return np.empty(shape, array.dtype)
    return as_strided(array, shape, array.strides[:lead] + taps + hops)
