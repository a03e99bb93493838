"""The error function in numpy, which has none: rational approximations, as passes over temporaries.

float32 takes that of Eigen (generic_erf_float), within 5 units in the last place. float64 takes those of Cody
("Rational Chebyshev approximations for the error function", 1969), one near 0 and one for the rest, within 4 units.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ops.schema.schema import Thunk
from ops.tensor.limits import constant
from ops.tensor.spec import Array

TEMPORARIES, MASKS = 4, 1
"""Arrays of the dtype, and boolean ones, that the passes need."""
SINGLE_EDGE = 3.832506856900711
"""The error function is 1 in float32 from here on."""
SINGLE_P = (2.2905065861e-4, 3.4082910107e-3, 5.0955695062e-2, 1.8520832239e-1, 1.128379143519084)
SINGLE_Q = (-1.1791602954e-7, 2.3547966471e-5, 1.0179625278e-3, 1.4070470171e-2, 1.1098505178e-1, 4.9746925110e-1, 1.0)
"""Coefficients of the numerator and the denominator in x * x, the highest power first."""

_EDGE = 6.0
"""The error function is 1 in float64 from here on."""
_NEAR = 0.46875
"""Up to here the first approximation holds: x * P(x * x) / Q(x * x); beyond it 1 - exp(-x * x) * P(|x|) / Q(|x|)."""
_NEAR_P = (
    *(1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2),
    3.20937758913846947e3,
)
_NEAR_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_FAR_P = (
    *(2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1),
    *(2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3),
    1.23033935479799725e3,
)
_FAR_Q = (
    *(1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3),
    *(3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)


def erf_passes(x: Array, y: Array, temporaries: Sequence[Array], mask: Array) -> tuple[Thunk, ...]:
    """Returns the passes that write erf(x) into y, of float32 or float64.

    `y` and the first temporary may each be the very memory of x.
    """
    passes = _single_passes if y.dtype == np.float32 else _double_passes
    return tuple(passes(x, y, temporaries, mask))


def polynomial(coefficients: Sequence[float], x: Array, out: Array) -> Iterator[Thunk]:
    """Yields steps that evaluate a polynomial by Horner's rule."""
    highest, second, *others = (constant(c, out.dtype) for c in coefficients)
    yield partial(np.multiply, x, highest, out)
    yield partial(np.add, out, second, out)
    for coefficient in others:
        yield partial(np.multiply, out, x, out)
        yield partial(np.add, out, coefficient, out)


def _single_passes(x: Array, y: Array, temporaries: Sequence[Array], _: Array) -> Iterator[Thunk]:
    t, square, numerator, _ = temporaries
    edge, one = constant(SINGLE_EDGE, y.dtype), constant(1, y.dtype)
    yield partial(np.clip, x, -edge, edge, t)
    yield partial(np.multiply, t, t, square)
    yield from polynomial(SINGLE_P, square, numerator)
    yield from polynomial(SINGLE_Q, square, y)
    yield partial(np.multiply, t, numerator, t)
    yield partial(np.divide, t, y, y)
    yield partial(np.clip, y, -one, one, y)


def _double_passes(x: Array, y: Array, temporaries: Sequence[Array], mask: Array) -> Iterator[Thunk]:
    t, u, far, denominator = temporaries
    edge, one = constant(_EDGE, y.dtype), constant(1, y.dtype)
    yield partial(np.clip, x, -edge, edge, t)
    yield partial(np.absolute, t, u)
    yield partial(np.greater, u, constant(_NEAR, y.dtype), mask)
    yield from polynomial(_FAR_P, u, far)
    yield from polynomial(_FAR_Q, u, denominator)
    yield partial(np.divide, far, denominator, far)
    yield partial(np.multiply, t, t, u)
    yield partial(np.negative, u, y)
    yield partial(np.exp, y, y)
    yield partial(np.multiply, far, y, far)
    yield partial(np.subtract, one, far, far)
    yield partial(np.copysign, far, t, far)
    yield from polynomial(_NEAR_P, u, y)
    yield from polynomial(_NEAR_Q, u, denominator)
    yield partial(np.multiply, y, t, y)
    yield partial(np.divide, y, denominator, y)
    yield partial(np.copyto, y, far, where=mask)
