"""Which elements an output of a resized axis reads, and their weights, as ONNX Resize-19 defines them.

Cubic weights: Keys, "Cubic Convolution Interpolation for Digital Image Processing" (1981).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve, frozen

from ops.schema.schema import Attrs
from ops.tensor.spec import Array

Floats = npt.NDArray[np.float64]
_FAR = 2.0**53
"""Places beyond are outside of every tensor; farther ones would not be integers of 64 bits."""


@frozen(eq=False)
class Axis:
    """A resized axis. `size` is `scale * elements`, which need not be whole where scales were given.

    Its outputs [first, last) are computed, from a tensor whose first element is element `low`.
    """

    elements: int
    outputs: int
    scale: float
    size: float
    start: float
    end: float
    first: int
    last: int
    low: int

    @property
    def whole(self) -> "Axis":
        """The axis with all outputs and elements."""
        return evolve(self, first=0, last=self.outputs, low=0)


@frozen(eq=False)
class Table:
    """The outputs that are computed, from the elements of the tensor.

    Output o is the sum over k of `weights[k, o]` times element `indices[k, o]`, or outside where `outside[o]`.
    """

    indices: Array
    weights: Floats
    outside: Array


def _half_pixel(o: Floats, axis: Axis) -> Floats:
    return (o + 0.5) / axis.scale - 0.5


def _half_pixel_symmetric(o: Floats, axis: Axis) -> Floats:
    offset = axis.elements / 2 * (1 - axis.outputs / axis.size) if axis.outputs else 0.0
    return offset + (o + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(o: Floats, axis: Axis) -> Floats:
    return (o + 0.5) / axis.scale - 0.5 if axis.outputs > 1 else np.zeros_like(o)


def _align_corners(o: Floats, axis: Axis) -> Floats:
    return o * ((axis.elements - 1) / (axis.size - 1)) if axis.outputs > 1 else np.zeros_like(o)


def _asymmetric(o: Floats, axis: Axis) -> Floats:
    return o / axis.scale


def _tf_crop_and_resize(o: Floats, axis: Axis) -> Floats:
    last = axis.elements - 1
    if axis.outputs == 1:
        return np.full_like(o, 0.5 * (axis.start + axis.end) * last)
    return axis.start * last + o * ((axis.end - axis.start) * last / (axis.size - 1))


COORDINATES: dict[str, Callable[[Floats, Axis], Floats]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_crop_and_resize": _tf_crop_and_resize,
}
"""Where an output lies among the elements, by coordinate_transformation_mode."""
NEAREST: dict[str, Callable[[Floats], Any]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""Which element is nearest, by nearest_mode."""


def _triangle(distance: Floats, _: float) -> Floats:
    return np.maximum(1 - distance, 0)


def _cubic(distance: Floats, a: float) -> Floats:
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _shrink(axis: Axis, attrs: Attrs) -> float:
    """Returns the factor of distances: with antialias, an axis that shrinks is weighed over more elements."""
    return min(axis.scale, 1.0) if attrs["antialias"] and axis.outputs else 1.0


def reach(axis: Axis, attrs: Attrs) -> range:
    """Returns the elements that an output reads, counted from the one at or before its place."""
    if attrs["mode"] == "nearest":
        return range(1)
    first = math.floor(-(1 if attrs["mode"] == "linear" else 2) / _shrink(axis, attrs)) + 1
    return range(first, 2 - first)


def is_copy(mapping: Table, elements: int) -> bool:
    """Returns whether the outputs of a table are the elements."""
    if mapping.indices.shape[1] != elements or mapping.outside.any():
        return False
    hit = np.arange(elements) == mapping.indices
    return bool((np.where(hit, mapping.weights, 0).sum(axis=0) == 1).all() and not mapping.weights[~hit].any())


def is_repetition(mapping: Table, times: int) -> bool:
    """Returns whether the outputs of a table of nearest elements are each element so many times."""
    return not mapping.outside.any() and bool(
        (mapping.indices[0] == np.arange(mapping.indices.shape[1]) // times).all()
    )


def table(axis: Axis, attrs: Attrs) -> Table:
    """Returns the table of one axis; `attrs` are those of the operator."""
    o = np.arange(axis.first, axis.last, dtype=np.float64)
    with np.errstate(all="ignore"):
        places = np.nan_to_num(COORDINATES[attrs["coordinate_transformation_mode"]](o, axis)).clip(-_FAR, _FAR)
    outside = np.zeros(len(o), bool)
    if attrs["coordinate_transformation_mode"] == "tf_crop_and_resize":
        outside = (places < 0) | (places > axis.elements - 1)
    if attrs["mode"] == "nearest":
        raw: Array = NEAREST[attrs["nearest_mode"]](places)[np.newaxis].astype(np.int64)
        weights = np.ones(raw.shape)
    else:
        raw, weights = _weigh(places, axis, attrs)
    return Table((np.clip(raw, 0, axis.elements - 1) - axis.low).astype(np.intp), weights, outside)


def transposed(forward: Table, elements: int) -> Table:
    """Returns the table of the gradient.

    Each element collects from all outputs that read it.
    """
    reads: list[list[tuple[int, float]]] = [[] for _ in range(elements)]
    for taps, weights in zip(forward.indices, forward.weights, strict=True):
        for o, (i, weight) in enumerate(zip(taps, weights, strict=True)):
            if weight and not forward.outside[o]:
                reads[i].append((o, float(weight)))
    # A table of one tap is not weighed, so elements that nothing reads, or by other weights than 1, take a second.
    is_copy = all(len(row) == 1 and row[0][1] == 1 for row in reads)
    most = 1 if is_copy else max(2, *map(len, reads))
    padded = [sorted(row) + [(0, 0.0)] * (most - len(row)) for row in reads]
    indices = np.array([[o for o, _ in row] for row in padded], np.intp).reshape(elements, most)
    weights = np.array([[w for _, w in row] for row in padded], np.float64).reshape(elements, most)
    return Table(np.ascontiguousarray(indices.T), np.ascontiguousarray(weights.T), np.zeros(elements, bool))


def _weigh(places: Floats, axis: Axis, attrs: Attrs) -> tuple[Array, Floats]:
    """Returns the numbers of the elements around each place, and their weights: both (taps, outputs).

    Numbers may lie outside the tensor.
    """
    shape = _triangle if attrs["mode"] == "linear" else _cubic
    base = np.floor(places)
    raw = base.astype(np.int64) + np.array(reach(axis, attrs))[:, np.newaxis]
    weights = shape(np.abs(raw - places) * _shrink(axis, attrs), attrs["cubic_coeff_a"])
    if attrs["exclude_outside"]:
        weights = np.where((raw >= 0) & (raw < axis.elements), weights, 0)
    if attrs["exclude_outside"] or attrs["antialias"]:
        weights = weights / weights.sum(axis=0)
    return raw, weights
