"""Regions of images, each brought to one size by pooling (ONNX RoiAlign-22, MaxRoiPool-22)."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from ops.common.apply import Operand, V, apply1
from ops.common.indices import INT64, IndexRangeError, check_index_dtype
from ops.schema.attributes import Attribute, flag, integer, integers, number, one_of
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.tensor.errors import AttributeValueError, DataError, DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec

_DTYPES = (np.dtype("float32"), np.dtype("float64"))
_MOST_RATIO = 512
_MOST_SAMPLES = _MOST_RATIO**2
"""The most samples of a region that one output takes: they are taken one after the other."""


def _check(x: TensorSpec, regions: TensorSpec, numbers: int, pooled: Sequence[int]) -> None:
    if x.dtype not in _DTYPES or regions.dtype != x.dtype:
        raise DtypeError(f"takes float32 or float64 for both, not {x.dtype} and {regions.dtype}")
    if x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != numbers:
        raise ShapeError(f"takes images (N, C, H, W) and regions (n, {numbers}), not {x} and {regions}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"there is nothing to pool in {x}")
    if len(pooled) != 2 or min(pooled) < 1:
        raise AttributeValueError(f"a region becomes a height and a width of 1 or more, not {tuple(pooled)}")


def _image(batch: Array, index: float) -> Array:
    """Returns an image of a batch. Raises IndexRangeError where there is no such image."""
    if not 0 <= index < len(batch):
        raise IndexRangeError(f"a region lies in image {index:g}, and there are {len(batch)}")
    image: Array = batch[int(index)]
    return image


def _scaled(edge: np.floating, scale: float) -> np.floating:
    """Returns an edge of a region in elements. Raises DataError where it is no finite number."""
    scaled: np.floating = edge * edge.dtype.type(scale)
    if not np.isfinite(scaled):
        raise DataError(f"an edge of a region is {scaled:g}; regions must be finite numbers")
    return scaled


def _align_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, regions, images = inputs
    pooled = attrs["output_height"], attrs["output_width"]
    _check(x, regions, 4, pooled)
    check_index_dtype(images)
    if images.shape != regions.shape[:1]:
        raise ShapeError(f"{images} does not name an image for each of {regions}")
    if not 0 <= attrs["sampling_ratio"] <= _MOST_RATIO:
        raise AttributeValueError(f"sampling_ratio is {attrs['sampling_ratio']}; it must be from 0 to {_MOST_RATIO}")
    return (x.with_shape((regions.shape[0], x.shape[1], *pooled)),)


def _align_temporaries(signature: Signature) -> Specs:
    """Returns the specs of places and weights of one sample of all outputs of a region, and of values of channels."""
    x, outputs = signature.x, math.prod(signature.y.shape[2:])
    values = x.with_shape((x.shape[1], outputs))
    return TensorSpec((outputs,), INT64), x.with_shape((outputs,)), values, values


@frozen(eq=False)
class _Axis:
    """The samples of a region along one axis, by output: the elements beside each, and their weights."""

    elements: tuple[Array, Array]
    weights: tuple[Array, Array]

    @classmethod
    def of(cls, places: Array, length: int) -> "_Axis":
        """Returns the samples at these places; those more than an element outside have no weight."""
        inside = (places >= -1) & (places <= length)
        at = np.clip(places, 0, length - 1)
        low = np.floor(at)
        high, rest = np.minimum(low + 1, length - 1), at - low
        return cls((low.astype(np.int64), high.astype(np.int64)), ((1 - rest) * inside, rest * inside))


@frozen(eq=False)
class _Extent:
    """The extent of a region along one axis, cut into outputs, each with so many samples."""

    start: np.floating
    size: np.floating
    outputs: int
    samples: int

    def axis(self, sample: int, length: int) -> _Axis:
        """Returns one sample of each output."""
        dtype = self.start.dtype.type
        outputs = np.arange(self.outputs, dtype=dtype)
        inside = dtype(sample + 0.5) * self.size / dtype(self.samples)
        return _Axis.of(self.start + outputs * self.size + inside, length)


def _extent(begin: np.floating, end: np.floating, outputs: int, attrs: Attrs) -> _Extent:
    dtype = begin.dtype.type
    shift = dtype(0.5 if attrs["half_pixel"] else 0)
    start, stop = (_scaled(edge, attrs["spatial_scale"]) - shift for edge in (begin, end))
    length = stop - start if attrs["half_pixel"] else max(stop - start, dtype(1))
    size = length / dtype(outputs)
    samples = attrs["sampling_ratio"] or max(math.ceil(size), 0)
    return _Extent(start, size, outputs, samples)


def _align(call: Binding) -> Thunk:
    x, regions, images = call.inputs
    pooled, attrs = call.y.shape[2:], call.attrs

    def run() -> None:
        for region, index, y in zip(regions, images, call.y, strict=True):
            image = _image(x, index)
            left, top, right, bottom = region
            extents = _extent(top, bottom, pooled[0], attrs), _extent(left, right, pooled[1], attrs)
            if extents[0].samples * extents[1].samples > _MOST_SAMPLES:
                raise DataError(f"region {region} needs more than {_MOST_SAMPLES} samples; give a sampling_ratio")
            _pool_samples(image, extents, call, y.reshape(len(y), math.prod(pooled)))

    return run


def _pool_samples(image: Array, extents: tuple[_Extent, _Extent], call: Binding, y: Array) -> None:
    """Writes the mean of all samples of each output, or the largest product of an element and its weight."""
    height, width = image.shape[1:]
    is_max = call.attrs["mode"] == "max"
    y.fill(-np.inf if is_max and extents[0].samples * extents[1].samples else 0)
    flat, (_, _, values, sums) = image.reshape(len(image), height * width), call.temporaries
    for sample in np.ndindex(*(extent.samples for extent in extents)):
        row, column = extents[0].axis(sample[0], height), extents[1].axis(sample[1], width)
        sums.fill(0)
        for places, weights in _corners(row, column, width, call.temporaries):
            np.take(flat, places, axis=1, out=values, mode="clip")
            np.multiply(values, weights, out=values)
            np.maximum(y, values, out=y) if is_max else np.add(sums, values, out=sums)
        if not is_max:
            np.add(y, sums, out=y)
    if not is_max:
        np.divide(y, y.dtype.type(max(extents[0].samples * extents[1].samples, 1)), out=y)


def _corners(row: _Axis, column: _Axis, width: int, temporaries: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """Yields places and weights of the four elements around the samples, one after the other in the same arrays."""
    places, weights = temporaries[:2]
    shape = (len(row.elements[0]), len(column.elements[0]))
    for y, of_row in zip(row.elements, row.weights, strict=True):
        for x, of_column in zip(column.elements, column.weights, strict=True):
            np.add((y * width)[:, None], x, out=places.reshape(shape))
            np.multiply(of_row[:, None], of_column, out=weights.reshape(shape))
            yield places, weights


def _align_cost(signature: Signature) -> Cost:
    return Cost(8 * signature.y.size * max(signature.attrs["sampling_ratio"], 1) ** 2, signature.nbytes)


def _pool_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, regions = inputs
    _check(x, regions, 5, attrs["pooled_shape"])
    return (x.with_shape((regions.shape[0], x.shape[1], *attrs["pooled_shape"])),)


def _slices(begin: np.floating, end: np.floating, outputs: int, length: int, scale: float) -> list[slice]:
    """Returns the elements of each output along one axis; borders are rounded to elements, which all belong to it."""
    first, last = (_nearest(float(_scaled(edge, scale))) for edge in (begin, end))
    size = np.float32(max(last - first + 1, 1)) / np.float32(outputs)
    starts = [math.floor(np.float32(i) * size) + first for i in range(outputs)]
    stops = [math.ceil(np.float32(i + 1) * size) + first for i in range(outputs)]
    return [slice(min(max(i, 0), length), min(max(j, 0), length)) for i, j in zip(starts, stops, strict=True)]


def _nearest(value: float) -> int:
    """Returns the nearest integer, the one farther from 0 of two."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _max_pool(call: Binding) -> Thunk:
    x, regions = call.inputs
    (height, width), scale = call.y.shape[2:], call.attrs["spatial_scale"]

    def run() -> None:
        for (index, left, top, right, bottom), y in zip(regions, call.y, strict=True):
            image = _image(x, index)
            columns = _slices(left, right, width, image.shape[2], scale)
            for i, rows in enumerate(_slices(top, bottom, height, image.shape[1], scale)):
                for j, column in enumerate(columns):
                    part = image[:, rows, column]
                    np.maximum.reduce(part, axis=(1, 2), out=y[:, i, j]) if part.size else y[:, i, j].fill(0)

    return run


def _finite(value: object) -> float:
    scale = number(value)
    if not math.isfinite(scale):
        raise ValueError("a finite number is wanted")
    return scale


_SCALE = Attribute("spatial_scale", _finite, 1.0)
ROI_ALIGN = OpSchema(
    name="roi_align",
    summary="Regions (left, top, right, bottom) of the images that `images` names, each cut into output_height x"
    " output_width parts: the mean, or the largest, of interpolated samples of each part.",
    infer=_align_infer,
    kernels=(Kernel("numpy", _align, _align_temporaries, contiguous=all_contiguous),),
    arity=(3, 3),
    attributes=(
        Attribute("output_height", integer, 1),
        Attribute("output_width", integer, 1),
        Attribute("sampling_ratio", integer, 0),
        _SCALE,
        Attribute("mode", one_of("avg", "max"), "avg"),
        Attribute("half_pixel", flag, True),
    ),
    cost=_align_cost,
)
MAX_ROI_POOL = OpSchema(
    name="max_roi_pool",
    summary="The largest elements of each part of regions (image, left, top, right, bottom) of whole elements.",
    infer=_pool_infer,
    kernels=(Kernel("numpy", _max_pool, contiguous=all_contiguous),),
    arity=(2, 2),
    attributes=(Attribute("pooled_shape", integers), _SCALE),
)
OPS = (ROI_ALIGN, MAX_ROI_POOL)


def roi_align(
    x: V,
    regions: Operand,
    images: Operand,
    output_height: int = 1,
    output_width: int = 1,
    *,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
    mode: str = "avg",
    half_pixel: bool = True,
) -> V:
    """Returns regions (n, 4), left, top, right and bottom, of images of x, brought to one size: (n, C, height, width).

    Each output is the mean (`mode` "max": the largest) of sampling_ratio x sampling_ratio interpolated samples; with 0,
    of about one an element. Coordinates are multiplied by `spatial_scale`, then moved by half an element.
    """
    return apply1(
        ROI_ALIGN,
        x,
        regions,
        images,
        output_height=output_height,
        output_width=output_width,
        sampling_ratio=sampling_ratio,
        spatial_scale=spatial_scale,
        mode=mode,
        half_pixel=half_pixel,
    )


def max_roi_pool(x: V, regions: Operand, pooled_shape: Sequence[int], spatial_scale: float = 1.0) -> V:
    """Returns the largest elements of each part of regions (n, 5) of x: image, left, top, right and bottom."""
    return apply1(MAX_ROI_POOL, x, regions, pooled_shape=tuple(pooled_shape), spatial_scale=spatial_scale)
