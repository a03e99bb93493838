"""Converters of Fourier transforms and of mel weights.

The length of a transform is known when the model is read, so a transform is a matrix product with constants, and one of
windows that slide over a signal is a convolution. Real and imaginary parts are the last axis, of length 1 or 2.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.onnx.tensors import dtype_of
from engine.text.errors import ModelError
from ops.tensor.dims import Dim
from ops.tensor.spec import Array, normalize_axis

_MOST_ELEMENTS = 2**25
"""The most elements of the matrix of a transform: those of a real one of 5,792 points with all of its results."""


def _dft_attribute(node: Node) -> tuple[Value, ...]:
    return _dft(node, node.attr("axis", 1))


def _dft_input(node: Node) -> tuple[Value, ...]:
    return _dft(node, -2 if node.optional(2) is None else int(node.number(2, "axis")))


def _dft(node: Node, axis: int) -> tuple[Value, ...]:
    x = node.value(0)
    rank, inverse, onesided = len(x.shape), bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    axis = normalize_axis(axis, rank)
    parts = _parts(node, x)
    if axis == rank - 1:
        raise ModelError("the last axis has real and imaginary parts; it cannot be transformed")
    if onesided and parts != 1 + inverse:
        raise ModelError(
            f"onesided transforms {'complex' if inverse else 'real'} numbers, and the last axis has {parts}"
        )
    points = _length(node, x, axis)
    length = 2 * (points - 1) if onesided and inverse else points
    if node.optional(1) is not None:
        length = int(node.number(1, "dft_length"))
    matrix = _matrix(node, length, parts, inverse=inverse, onesided=onesided)[:points]
    order = [i for i in range(rank) if i not in (axis, rank - 1)]
    lead = tuple(x.shape[i] for i in order)
    turned = _transposed(node, x, (*order, axis, rank - 1))
    if len(matrix) < points:
        turned = node.step("slice", turned, starts=(0,), ends=(len(matrix),), axes=(rank - 2,), steps=(1,))
    rows = node.step("reshape", turned, shape=(*lead, len(matrix) * parts))
    flat = np.ascontiguousarray(matrix.reshape(len(matrix) * parts, -1).astype(x.dtype))
    result = node.step("reshape", node.step("matmul", rows, flat), shape=(*lead, *matrix.shape[2:]))
    return node.last("transpose", result, perm=tuple(np.argsort([*order, axis, rank - 1]).tolist()))


def _stft(node: Node) -> tuple[Value, ...]:
    x, step = node.value(0), int(node.number(1, "frame_step"))
    if len(x.shape) != 3:
        raise ModelError(f"the signal has {len(x.shape)} axes, and 3 are wanted: batch, length, parts")
    if step < 1:
        raise ModelError(f"frame_step is {step}; it must be 1 or more")
    window = None if node.optional(2) is None else node.array(2, "window")
    length = _frame_length(node, x, window)
    parts, onesided = _parts(node, x), bool(node.attr("onesided", 1))
    if onesided and parts != 1:
        raise ModelError("onesided transforms real numbers, and the last axis has 2")
    matrix = _matrix(node, length, parts, inverse=False, onesided=onesided)
    if window is not None:
        matrix = matrix * window.astype(np.float64).reshape(-1, 1, 1, 1)
    weights = np.ascontiguousarray(matrix.transpose(2, 3, 1, 0).reshape(-1, parts, length).astype(x.dtype))
    frames = node.step("conv", _transposed(node, x, (0, 2, 1)), weights, strides=(step,))
    split = node.step("reshape", frames, shape=(x.shape[0], *matrix.shape[2:], frames.shape[2]))
    return node.last("transpose", split, perm=(0, 3, 1, 2))


def _frame_length(node: Node, x: Value, window: Array | None) -> int:
    lengths = [] if window is None else [window.size]
    if node.optional(3) is not None:
        lengths.append(int(node.number(3, "frame_length")))
    if len(set(lengths)) > 1:
        raise ModelError(f"the window has {lengths[0]} elements, and frame_length is {lengths[1]}")
    return lengths[0] if lengths else _length(node, x, 1)


def _parts(node: Node, x: Value) -> int:
    """Returns 1 for real numbers, and 2 for complex ones."""
    parts: Any = x.shape[-1] if x.shape else 0
    if isinstance(parts, Dim) or parts not in (1, 2):
        raise node.refuse(f"the last axis must have 1 element (real) or 2 (complex), and has {parts}")
    return int(parts)


def _length(node: Node, x: Value, axis: int) -> int:
    length: Any = x.shape[axis]
    if isinstance(length, Dim):
        raise node.refuse(f"axis {axis} is transformed, and its length {length} is left open; give it through shapes=")
    return int(length)


def _transposed(node: Node, x: Value, perm: tuple[int, ...]) -> Value:
    return x if perm == tuple(range(len(perm))) else node.step("transpose", x, perm=perm)


def _matrix(node: Node, length: int, parts: int, *, inverse: bool, onesided: bool) -> Array:
    """Returns the coefficients of a transform by point, part of the point, result, and part of the result."""
    half = length // 2 + 1
    points, results = (half if onesided and inverse else length), (half if onesided and not inverse else length)
    if length < 1:
        raise ModelError(f"a transform of {length} points does not exist")
    if points * results * parts * 2 > _MOST_ELEMENTS:
        raise node.refuse(f"a transform of {length} points is a matrix of more than {_MOST_ELEMENTS} elements")
    turns = np.outer(np.arange(points), np.arange(results)) % length  # whole turns drop out while they are integers
    angles = turns * (2 * np.pi / length) * (-1 if inverse else 1)
    cos, sin = np.cos(angles), np.sin(angles)
    matrix = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], 1)[:, :parts]
    if not inverse:
        return matrix
    matrix = matrix / length
    if onesided:  # the other half of the spectrum is the conjugate of this one, so that the result is real
        doubled = np.arange(1, (length + 1) // 2)
        matrix[doubled] *= 2
        matrix = matrix[..., :1]
    return matrix


def _mel_weights(node: Node) -> tuple[Value, ...]:
    roles = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bins, length, rate, lower, upper = (node.number(i, role) for i, role in enumerate(roles))
    if rate <= 0 or not 0 <= lower < math.inf or not 0 <= upper < math.inf:
        raise ModelError(f"edges of {lower} and {upper} hertz at {rate} samples a second are no mel bins")
    low, high = (2595 * np.log1p(hertz / 700) / np.log(10) for hertz in (lower, upper))
    mels = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    edges = ((length + 1) * (700 * np.expm1(mels / 2595 * np.log(10))) // rate).astype(np.int64)
    rows = np.arange(length // 2 + 1).reshape(-1, 1)
    if edges.min() < 0 or edges.max() >= len(rows):
        raise ModelError(f"{upper} hertz are beyond the {len(rows)} bins of {length} samples at {rate} hertz")
    first, centre, last = edges[:-2], edges[1:-1], edges[2:]
    rising = np.where(centre == first, rows == centre, (rows - first) / np.maximum(centre - first, 1))
    falling = (last - rows) / np.maximum(last - centre, 1)
    inside = (rows >= first) & (rows <= centre)
    weights = np.where(inside, rising, 0.0)
    weights = np.where((rows >= centre) & (rows < last), falling, weights)
    return (weights.astype(dtype_of(node.attr("output_datatype", 1), f"the output of {node}")),)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "DFT": ((17, _dft_attribute), (20, _dft_input)),
        "STFT": ((17, _stft),),
        "MelWeightMatrix": ((17, _mel_weights),),
    }
)
