"""Arithmetic in float64 that carries a bound: how far a result in a smaller type may be away.

The bounds are those of running error analysis (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter
3): each operation adds what its inputs' errors become, and a rounding of its own. Nothing of the project is used here.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

Numbers = npt.NDArray[np.float64]
FUNCTION_ROUNDINGS = 16
"""Roundings that one value of a function such as tanh may cost: 8 units in the last place."""
_erf = np.vectorize(math.erf, otypes=[np.float64])


@frozen(eq=False)
class Bounded:
    """Values, and how far away from them the computed ones may be; `unit` is the rounding unit of their type."""

    value: Numbers
    error: Numbers
    unit: float

    @property
    def most(self) -> Numbers:
        """Returns the most that the magnitude of a computed value may be."""
        return np.asarray(np.abs(self.value) + self.error)

    def rounded(self, value: Any, error: Any, roundings: float = 1) -> "Bounded":
        """Returns another result, with some roundings more, and what underflows."""
        value = np.asarray(value, np.float64)
        more = roundings * self.unit * (np.abs(value) + error) + 1e-37
        return Bounded(value, np.asarray(error + more, np.float64), self.unit)

    def moved(self, move: Callable[[Numbers], Any]) -> "Bounded":
        """Returns the same numbers in other places."""
        return Bounded(np.asarray(move(self.value)), np.asarray(move(self.error)), self.unit)

    def __add__(self, other: "Bounded") -> "Bounded":
        return self.rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other: "Bounded") -> "Bounded":
        return self.rounded(self.value - other.value, self.error + other.error)

    def __mul__(self, other: "Bounded") -> "Bounded":
        error = np.abs(self.value) * other.error + self.error * other.most
        return self.rounded(self.value * other.value, error)

    def __truediv__(self, other: "Bounded") -> "Bounded":
        below = np.abs(other.value)
        error = (np.abs(self.value) * other.error + below * self.error) / (
            below * np.maximum(below - other.error, 1e-300)
        )
        return self.rounded(self.value / other.value, error, 2)

    def __matmul__(self, other: "Bounded") -> "Bounded":
        error = np.abs(self.value) @ other.error + self.error @ other.most
        roundings = (self.value.shape[-1] + 2) * self.unit * (self.most @ other.most)
        return self.rounded(self.value @ other.value, error + roundings)


def monotone(function: Callable[[Numbers], Any], x: Bounded, roundings: float = FUNCTION_ROUNDINGS) -> Bounded:
    """Returns a function that only grows or only falls."""
    value = function(x.value)
    error = np.maximum(np.abs(function(x.value + x.error) - value), np.abs(function(x.value - x.error) - value))
    return x.rounded(value, error, roundings)


def sloped(
    function: Callable[[Numbers], Any], slope: float, x: Bounded, roundings: float = FUNCTION_ROUNDINGS
) -> Bounded:
    """Returns a function that is nowhere steeper than `slope`, with an inner rounding of its argument."""
    value = function(x.value)
    return x.rounded(value, slope * (x.error + roundings * x.unit * x.most), roundings)


def largest(a: Bounded, b: Bounded) -> Bounded:
    """Returns the larger of two."""
    return Bounded(np.maximum(a.value, b.value), np.maximum(a.error, b.error) + 0 * a.value * b.value, a.unit)


def total(x: Bounded, axes: tuple[int, ...]) -> Bounded:
    """Returns sums; the axes stay, with length 1."""
    count = math.prod(x.value.shape[a] for a in axes)
    error = x.error.sum(axes, keepdims=True) + count * x.unit * x.most.sum(axes, keepdims=True)
    return x.rounded(x.value.sum(axes, keepdims=True), error)


def mean(x: Bounded, axes: tuple[int, ...]) -> Bounded:
    """Returns means; the axes stay, with length 1."""
    count, sums = math.prod(x.value.shape[a] for a in axes), total(x, axes)
    return sums.rounded(sums.value / count, sums.error / count, 2)


def peak(x: Bounded, axes: tuple[int, ...]) -> Bounded:
    """Returns maxima; the axes stay, with length 1."""
    return Bounded(x.value.max(axes, keepdims=True), x.error.max(axes, keepdims=True), x.unit)


def softmax(x: Bounded, axis: int) -> Bounded:
    """Returns the softmax; what moves all exponents alike moves nothing."""
    shifted = x.value - x.value.max(axis, keepdims=True)
    power = np.exp(shifted)
    value = power / power.sum(axis, keepdims=True)
    moved = 2 * (x.error.max(axis, keepdims=True) + x.unit * np.abs(shifted).max(axis, keepdims=True))
    roundings = (x.value.shape[axis] + 2 * FUNCTION_ROUNDINGS) * x.unit
    return x.rounded(value, value * np.expm1(moved + roundings))


def layer_norm(x: Bounded, epsilon: float) -> Bounded:
    """Returns rows without their mean, over their spread."""
    centred = x - mean(x, (x.value.ndim - 1,))
    spread = mean(centred * centred, (x.value.ndim - 1,))
    root = monotone(lambda v: np.sqrt(np.maximum(v, 0) + epsilon), spread, 4)
    return centred / root


def erf(x: Numbers) -> Numbers:
    """Returns the error function."""
    return np.asarray(_erf(x))


def sigmoid(x: Numbers) -> Numbers:
    """Returns 1 / (1 + exp(-x)), without cancellation below 0."""
    power = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, power, 1) / (1 + power))


ELEMENTWISE: dict[str, Callable[[Bounded], Bounded]] = {
    "Relu": partial(monotone, lambda v: np.maximum(v, 0), roundings=0),
    "Neg": partial(monotone, np.negative, roundings=0),
    "Tanh": partial(monotone, np.tanh),
    "Sigmoid": partial(monotone, sigmoid),
    "Erf": partial(monotone, erf),
    "Softplus": partial(monotone, lambda v: np.logaddexp(v, 0)),
    "Softsign": partial(monotone, lambda v: v / (1 + np.abs(v)), roundings=4),
    "Atan": partial(monotone, np.arctan),
    "Abs": partial(sloped, np.abs, 1.0, roundings=0),
    "Sin": partial(sloped, np.sin, 1.0),
    "Cos": partial(sloped, np.cos, 1.0),
    "Gelu": partial(sloped, lambda v: v * 0.5 * (1 + erf(v / math.sqrt(2))), 1.2),
    "HardSwish": partial(sloped, lambda v: v * np.clip(v / 6 + 0.5, 0, 1), 1.5),
    "Mish": partial(sloped, lambda v: v * np.tanh(np.logaddexp(v, 0)), 1.2),
}
"""ONNX's functions of one variable."""
