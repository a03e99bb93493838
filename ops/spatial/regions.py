"""Regions of images, each brought to one size by pooling (ONNX RoiAlign-22, MaxRoiPool-22)."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from ops.common.apply import Operand, V, apply1
from ops.common.indices import INT64, check_index_dtype
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, flag, integer, integers, number, one_of
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.spatial.args import REGIONS
from ops.spatial.region_tables import MOST_RATIO, element_specs, sample_specs, write_elements, write_samples
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec

_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def _check(x: TensorSpec, regions: TensorSpec, numbers: int, pooled: Sequence[int]) -> None:
    if x.dtype not in _DTYPES or regions.dtype != x.dtype:
        raise DtypeError(f"takes float32 or float64 for both, not {x.dtype} and {regions.dtype}")
    if x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != numbers:
        raise ShapeError(f"takes images (N, C, H, W) and regions (n, {numbers}), not {x} and {regions}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"there is nothing to pool in {x}")
    if len(pooled) != 2 or min(pooled) < 1:
        raise AttributeValueError(f"a region becomes a height and a width of 1 or more, not {tuple(pooled)}")


def _align_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, regions, images = inputs
    pooled = attrs["output_height"], attrs["output_width"]
    _check(x, regions, 4, pooled)
    check_index_dtype(images)
    if images.shape != regions.shape[:1]:
        raise ShapeError(f"{images} does not name an image for each of {regions}")
    if not 0 <= attrs["sampling_ratio"] <= MOST_RATIO:
        raise AttributeValueError(f"sampling_ratio is {attrs['sampling_ratio']}; it must be from 0 to {MOST_RATIO}")
    return (x.with_shape((regions.shape[0], x.shape[1], *pooled)),)


def _align_temporaries(signature: Signature) -> Specs:
    """Returns the specs of both tables, of places and weights of one sample of all outputs, and of channels' values."""
    x, outputs = signature.x, math.prod(signature.y.shape[2:])
    values = x.with_shape((x.shape[1], outputs))
    return *sample_specs(signature), TensorSpec((outputs,), INT64), x.with_shape((outputs,)), values, values


@frozen(eq=False)
class _Axis:
    """The samples of a region along one axis, by output: the elements beside each, and their weights."""

    elements: tuple[Array, Array]
    weights: tuple[Array, Array]

    @classmethod
    def of(cls, start: Any, size: Any, outputs: int, sample: tuple[int, int], length: int) -> "_Axis":
        """Returns one sample of each output; those more than an element outside have no weight."""
        dtype = size.dtype.type
        places = start + np.arange(outputs, dtype=dtype) * size + dtype(sample[0] + 0.5) * size / dtype(sample[1])
        inside = (places >= -1) & (places <= length)
        at = np.clip(places, 0, length - 1)
        low = np.floor(at)
        high, rest = np.minimum(low + 1, length - 1), at - low
        return cls((low.astype(np.int64), high.astype(np.int64)), ((1 - rest) * inside, rest * inside))


def _align(call: Binding) -> Thunk:
    x, (edges, counts) = call.inputs[0], call.temporaries[:2]
    outputs = call.y.reshape(*call.y.shape[:2], math.prod(call.y.shape[2:]))

    def run() -> None:
        write_samples(call)
        for of_region, numbers, y in zip(edges, counts, outputs, strict=True):
            _pool_samples(x[numbers[0]], of_region, numbers[1:].tolist(), call, y)

    return run


def _pool_samples(image: Array, edges: Array, samples: Sequence[int], call: Binding, y: Array) -> None:
    """Writes the mean of all samples of each output, or the largest product of an element and its weight."""
    is_max, count, (values, sums) = call.attrs["mode"] == "max", math.prod(samples), call.temporaries[4:]
    y.fill(-np.inf if is_max and count else 0)
    flat = image.reshape(len(image), math.prod(image.shape[1:]))
    for at in np.ndindex(*samples):
        row, column = (
            _Axis.of(edges[2 * a], edges[2 * a + 1], call.y.shape[2 + a], (at[a], samples[a]), image.shape[1 + a])
            for a in range(2)
        )
        sums.fill(0)
        for places, weights in _corners(row, column, image.shape[2], call.temporaries[2:4]):
            np.take(flat, places, axis=1, out=values, mode="clip")
            np.multiply(values, weights, out=values)
            np.maximum(y, values, out=y) if is_max else np.add(sums, values, out=sums)
        if not is_max:
            np.add(y, sums, out=y)
    if not is_max:
        np.divide(y, y.dtype.type(max(count, 1)), out=y)


def _corners(row: _Axis, column: _Axis, width: int, temporaries: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """Yields places and weights of the four elements around the samples, one after the other in the same arrays."""
    places, weights = temporaries
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


def _max_pool(call: Binding) -> Thunk:
    x, (table,), (height, width) = call.inputs[0], call.temporaries, call.y.shape[2:]

    def run() -> None:
        write_elements(call)
        for (image, *bounds), y in zip(table.tolist(), call.y, strict=True):
            parts = [slice(*pair) for pair in zip(bounds[::2], bounds[1::2], strict=True)]
            for i, j in np.ndindex(height, width):
                part = x[image][:, parts[i], parts[height + j]]
                np.maximum.reduce(part, axis=(1, 2), out=y[:, i, j]) if part.size else y[:, i, j].fill(0)

    return run


def _compiled(name: str, write: Callable[[Binding], None]) -> Callable[[Binding], Thunk]:
    """Returns the `bind` of compiled code that reads the tables that `write` has written."""

    def bind(call: Binding) -> Thunk:
        x, y, (*edges, table) = call.x, call.y, call.temporaries
        compute = function_call(
            "ops.spatial.regions_code",
            f"{name}_{x.dtype.name}",
            REGIONS,
            x=x,
            y=y,
            edges=edges[0] if edges else None,
            table=table,
            regions=len(y),
            images=len(x),
            channels=x.shape[1],
            lengths=x.shape[2:],
            outputs=y.shape[2:],
            is_max=int(call.attrs.get("mode") == "max"),
        )

        def run() -> None:
            write(call)
            compute()

        return run

    return bind


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
    kernels=(
        Kernel("numba", _compiled("roi_align", write_samples), sample_specs, all_contiguous, backend=NUMBA),
        Kernel("numpy", _align, _align_temporaries, all_contiguous),
    ),
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
    kernels=(
        Kernel("numba", _compiled("max_roi_pool", write_elements), element_specs, all_contiguous, backend=NUMBA),
        Kernel("numpy", _max_pool, element_specs, all_contiguous),
    ),
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
