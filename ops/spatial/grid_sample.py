"""Values of an image, or of a volume, at places that a grid names (ONNX GridSample-22)."""

import math
from itertools import product

import numpy as np
from attrs import frozen

from ops.common.apply import Operand, V, apply1
from ops.schema.attributes import Attribute, flag, one_of
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, contiguous_at
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec

_TAPS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
"""The elements of an axis, from the one in front of a place on, that its value is computed from."""
_SHARPNESS = -0.75
_DTYPES = (np.dtype("float32"), np.dtype("float64"))


def _infer(inputs: Specs, _: Attrs) -> Specs:
    x, grid = inputs
    if x.dtype not in _DTYPES or grid.dtype != x.dtype:
        raise DtypeError(f"takes float32 or float64 for both, not {x.dtype} and {grid.dtype}")
    if x.ndim < 3 or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != x.ndim - 2:
        raise ShapeError(f"a grid for {x} has {x.shape[:1]}, then the places, then {x.ndim - 2} numbers; not {grid}")
    if 0 in x.shape[2:]:
        raise ShapeError(f"there is nothing to sample in {x}")
    return (x.with_shape((*x.shape[:2], *grid.shape[1:-1])),)


def _places(signature: Signature) -> int:
    return int(np.prod(signature.y.shape[2:], dtype=np.int64))


def _temporaries(signature: Signature) -> Specs:
    """Returns rows of places: of numbers two an axis and three more, of elements, of truths; and values of channels."""
    n, axes, x = _places(signature), signature.x.ndim - 2, signature.x
    numbers = x.with_shape((2 * axes + 3, n))
    return (numbers, TensorSpec((2, n), "int64"), TensorSpec((n,), "bool"), x.with_shape((x.shape[1], n)))


@frozen(eq=False)
class _Rows:
    """The temporaries: per axis the element in front of each place and the rest of the way, and scratch rows."""

    base: Array
    rest: Array
    at: Array
    weight: Array
    factor: Array
    element: Array
    part: Array
    outside: Array
    values: Array


def _bind(call: Binding) -> Thunk:
    numbers, elements, outside, values = call.temporaries
    axes = call.x.ndim - 2
    at, weight, factor = numbers[2 * axes :]
    element, part = elements
    rows = _Rows(numbers[:axes], numbers[axes : 2 * axes], at, weight, factor, element, part, outside, values)
    sampler = _Sampler(call, rows)

    def run() -> None:
        for image, grid, y in sampler.batch:
            sampler.sample(image, grid, y)

    return run


class _Sampler:
    """The sampling of one image after the other."""

    def __init__(self, call: Binding, rows: _Rows) -> None:
        x, grid, y = call.inputs[0], call.inputs[1], call.y
        self.lengths, self.rows = x.shape[2:], rows
        self.mode, self.padding = call.attrs["mode"], call.attrs["padding_mode"]
        self.aligned = call.attrs["align_corners"]
        images, results = (array.reshape(*array.shape[:2], math.prod(array.shape[2:])) for array in (x, y))
        places = grid.reshape(len(x), results.shape[2], len(self.lengths)).transpose(0, 2, 1)[:, ::-1]
        self.batch = tuple(zip(images, places, results, strict=True))

    def sample(self, image: Array, grid: Array, y: Array) -> None:
        rows = self.rows
        for axis, length in enumerate(self.lengths):
            self._place(grid[axis], axis, length)
        y.fill(0)
        for taps in product(_TAPS[self.mode], repeat=len(self.lengths)):
            rows.weight.fill(1)
            rows.element.fill(0)
            for axis, (tap, length) in enumerate(zip(taps, self.lengths, strict=True)):
                self._tap(axis, tap, length)
            np.take(image, rows.element, axis=1, out=rows.values, mode="clip")
            np.multiply(rows.values, rows.weight, out=rows.values)
            np.add(y, rows.values, out=y)

    def _place(self, grid: Array, axis: int, length: int) -> None:
        """Computes where the places are on an axis: the element in front, and the rest of the way to the next one."""
        at, base, rest = self.rows.at, self.rows.base[axis], self.rows.rest[axis]
        np.add(grid, 1, out=at)
        np.multiply(at, (length - 1 if self.aligned else length) / 2, out=at)
        if not self.aligned:
            np.subtract(at, 0.5, out=at)
        if self.mode == "nearest":
            np.rint(at, out=at)
        if self.padding != "zeros" and self.mode != "cubic":  # a cubic one moves its elements instead, as torch does
            self._inward(at, length)
        (np.rint if self.mode == "nearest" else np.floor)(at, out=base)
        np.subtract(at, base, out=rest)

    def _borders(self, length: int) -> tuple[float, float]:
        return (0.0, length - 1.0) if self.aligned else (-0.5, length - 0.5)

    def _inward(self, at: Array, length: int) -> None:
        """Moves what is outside of the borders inside: to the last element, or reflected by the border."""
        rows, (low, high) = self.rows, self._borders(length)
        np.clip(at, low, high, out=rows.factor)
        np.not_equal(rows.factor, at, out=rows.outside)
        if self.padding == "border":
            np.clip(at, 0, length - 1, out=rows.factor)
        else:
            self._reflect(at, low, high - low)
        np.copyto(at, rows.factor, where=rows.outside)

    def _reflect(self, at: Array, low: float, span: float) -> None:
        """Writes the places reflected by both borders as often as it takes: a wave of triangles."""
        wave = self.rows.factor
        if not span:
            wave.fill(low)
            return
        np.subtract(at, low, out=wave)
        np.remainder(wave, 2 * span, out=wave)
        np.subtract(wave, span, out=wave)
        np.abs(wave, out=wave)
        np.subtract(low + span, wave, out=wave)

    def _tap(self, axis: int, tap: int, length: int) -> None:
        """Multiplies the weights of places by those of one tap, and adds up the element that it stands for."""
        rows = self.rows
        self._weigh(rows.rest[axis], tap)
        np.multiply(rows.weight, rows.factor, out=rows.weight)
        np.add(rows.base[axis], tap, out=rows.at)
        np.clip(rows.at, 0, length - 1, out=rows.factor)
        if self.padding == "zeros":
            np.equal(rows.at, rows.factor, out=rows.outside)
            np.multiply(rows.weight, rows.outside, out=rows.weight)
        elif self.padding == "reflection":
            low, high = self._borders(length)
            self._reflect(rows.at, low, high - low)
            np.rint(rows.factor, out=rows.factor)
        np.copyto(rows.part, rows.factor, casting="unsafe")
        np.multiply(rows.element, length, out=rows.element)
        np.add(rows.element, rows.part, out=rows.element)

    def _weigh(self, rest: Array, tap: int) -> None:
        """Writes the weight of a tap for each place: how much of the value is that of the element."""
        factor = self.rows.factor
        if self.mode == "nearest":
            factor.fill(1)
            return
        np.subtract(rest, tap, out=factor)
        np.abs(factor, out=factor)
        if self.mode == "linear":
            np.subtract(1, factor, out=factor)
        else:
            _cubic(factor, self.rows.at, near=tap in (0, 1))


def _cubic(distance: Array, scratch: Array, *, near: bool) -> None:
    """Replaces distances by the weights of a cubic convolution (Keys, 1981); near ones are at most 1, others 1 to 2."""
    a = _SHARPNESS
    third, *others = (a + 2, -(a + 3), 0, 1) if near else (a, -5 * a, 8 * a, -4 * a)
    np.multiply(distance, third, out=scratch)
    for i, coefficient in enumerate(others):
        np.add(scratch, coefficient, out=scratch)
        if i < len(others) - 1:
            np.multiply(scratch, distance, out=scratch)
    np.copyto(distance, scratch)


def _cost(signature: Signature) -> Cost:
    taps = len(_TAPS[signature.attrs["mode"]]) ** (signature.x.ndim - 2)
    return Cost(2 * taps * signature.y.size, signature.nbytes)


GRID_SAMPLE = OpSchema(
    name="grid_sample",
    summary="Values of x at the places of a grid, whose numbers go from -1 to 1 along each axis, the last axis first.",
    infer=_infer,
    kernels=(Kernel("numpy", _bind, _temporaries, contiguous=contiguous_at(0, 1)),),
    arity=(2, 2),
    attributes=(
        Attribute("mode", one_of(*_TAPS), "linear"),
        Attribute("padding_mode", one_of("zeros", "border", "reflection"), "zeros"),
        Attribute("align_corners", flag, False),
    ),
    cost=_cost,
)
OPS = (GRID_SAMPLE,)


def grid_sample(
    x: V, grid: Operand, mode: str = "linear", padding_mode: str = "zeros", align_corners: bool = False
) -> V:
    """Returns the values of x[n, c, ...] at the places grid[n, ..., axes], interpolated as `mode` says."""
    return apply1(GRID_SAMPLE, x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
