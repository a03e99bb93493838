"""What kernels read of regions: their images, and along each axis the samples or the elements of each output."""

import math
from collections.abc import Iterator

import numpy as np

from ops.common.indices import INT64, IndexRangeError
from ops.schema.schema import Attrs, Binding, Signature, Specs
from ops.tensor.errors import DataError
from ops.tensor.spec import TensorSpec

MOST_RATIO = 512
_MOST_SAMPLES = MOST_RATIO**2
"""The most samples of a region that one output takes: they are taken one after the other."""
_FARTHEST = 2**62
"""The farthest element from 0 at which a region of whole elements may end."""
Samples = tuple[np.floating, np.floating, int]
"""Where a region begins along an axis, the size of one output, and the samples of each."""


def sample_specs(signature: Signature) -> Specs:
    """Returns the specs of the tables of `write_samples`."""
    regions = signature.inputs[1]
    return regions, TensorSpec((regions.shape[0], 3), INT64)


def write_samples(call: Binding) -> None:
    """Writes a row for each region: begin and size of an output along both axes; the image, and samples along both.

    They are the first two temporaries. Raises DataError or IndexRangeError.
    """
    (x, regions, images), (edges, counts) = call.inputs, call.temporaries[:2]
    for i, (left, top, right, bottom) in enumerate(regions):
        rows = _samples(top, bottom, call.y.shape[2], call.attrs)
        columns = _samples(left, right, call.y.shape[3], call.attrs)
        if max(rows[2], 1) * max(columns[2], 1) > _MOST_SAMPLES:
            raise DataError(f"region {regions[i]} needs more than {_MOST_SAMPLES} samples; give a sampling_ratio")
        edges[i] = (*rows[:2], *columns[:2])
        counts[i] = _checked(images[i], len(x)), rows[2], columns[2]


def _samples(begin: np.floating, end: np.floating, outputs: int, attrs: Attrs) -> Samples:
    dtype = begin.dtype.type
    shift = dtype(0.5 if attrs["half_pixel"] else 0)
    start, stop = (_scaled(edge, attrs["spatial_scale"]) - shift for edge in (begin, end))
    length = stop - start if attrs["half_pixel"] else max(stop - start, dtype(1))
    size = length / dtype(outputs)
    if not np.isfinite(size):
        raise DataError(f"a region from {begin:g} to {end:g} is too large")
    return start, size, attrs["sampling_ratio"] or max(math.ceil(size), 0)


def element_specs(signature: Signature) -> Specs:
    """Returns the spec of the table of `write_elements`."""
    return (TensorSpec((signature.inputs[1].shape[0], 1 + 2 * sum(signature.y.shape[2:])), INT64),)


def write_elements(call: Binding) -> None:
    """Writes a row for each region: the image, and of all rows of outputs, then of all columns, begin and end.

    It is the first temporary. Raises DataError or IndexRangeError.
    """
    (x, regions), table, scale = call.inputs, call.temporaries[0], call.attrs["spatial_scale"]
    height, width = call.y.shape[2:]
    for row, (image, left, top, right, bottom) in zip(table, regions, strict=True):
        row[0] = _checked(image, len(x))
        row[1 : 1 + 2 * height] = tuple(_elements(top, bottom, height, x.shape[2], scale))
        row[1 + 2 * height :] = tuple(_elements(left, right, width, x.shape[3], scale))


def _elements(begin: np.floating, end: np.floating, outputs: int, length: int, scale: float) -> Iterator[int]:
    """Yields begin and end of each output along one axis; edges are rounded to elements, which all belong to it."""
    first, last = (_nearest(float(_scaled(edge, scale))) for edge in (begin, end))
    if max(abs(first), abs(last)) > _FARTHEST:
        raise DataError(f"a region from {begin:g} to {end:g} is too large")
    size = np.float32(max(last - first + 1, 1)) / np.float32(outputs)
    for i in range(outputs):
        yield min(max(math.floor(np.float32(i) * size) + first, 0), length)
        yield min(max(math.ceil(np.float32(i + 1) * size) + first, 0), length)


def _nearest(value: float) -> int:
    """Returns the nearest integer, the one farther from 0 of two."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _scaled(edge: np.floating, scale: float) -> np.floating:
    """Returns an edge of a region in elements. Raises DataError where it is no finite number."""
    scaled: np.floating = edge * edge.dtype.type(scale)
    if not np.isfinite(scaled):
        raise DataError(f"an edge of a region is {scaled:g}; regions must be finite numbers")
    return scaled


def _checked(image: float, count: int) -> int:
    """Returns the number of an image. Raises IndexRangeError where there is no such image."""
    if not 0 <= image < count:
        raise IndexRangeError(f"a region lies in image {image:g}, and there are {count}")
    return int(image)
