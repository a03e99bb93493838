"""Sweeps functions of one variable over float32, and compares what kernels compute with float64.

`python -m tools.write_figures functions` writes the table of docs/kernels.md. Every `STEP`-th pattern of bits is a
number: both signs, all exponents, denormal numbers, infinities and NaN. Numbers around `SPECIAL` are added.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from allocator.progress import each
from ops.registry import find
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import Binding, Kernel
from ops.tensor.spec import Array, TensorSpec, new_arrays

STEP = 61
"""Odd, so that the low bits of patterns differ, too."""
SPECIAL = (
    0.0,
    0.352,
    0.625,
    0.921875,
    1.0,
    2.5,
    3.0,
    5.55,
    6.0,
    13.1,
    14.5,
    20.0,
    86.5,
    87.34,
    88.73,
    103.28,
    104.0,
    174.0,
)
"""Numbers near which a function is 0, or changes its formula; opposites count, too."""
_AROUND = 200
"""Patterns on either side of each of these."""
_CHUNK = 1 << 18
_HIGHEST = 2.0**128
"""In the place of infinity, so that what is rounded to it has a small error."""
LEAST = 2.0**-126
"""The least normal number."""
Function = Callable[[Array], Array]


@frozen(eq=False)
class Case:
    """An operator with attributes, and the function of float64 that it stands for."""

    name: str
    function: Function
    attrs: dict[str, Any] = field(factory=dict)

    @property
    def label(self) -> str:
        """Returns the operator and its attributes."""
        return self.name + "".join(f", {value}" for value in self.attrs.values())


@frozen
class Worst:
    """The largest relative error of a kernel, and the number that has it."""

    error: float = 0.0
    x: float = 0.0


def _of_each(function: Callable[[float], float]) -> Function:
    return np.vectorize(function, otypes=[np.float64])


_erf, _erfc = _of_each(math.erf), _of_each(math.erfc)
_SLOPE = math.sqrt(2 / math.pi)
_ALPHA, _GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
_LEAK, _FIFTH = (float(np.float32(number)) for number in (0.01, 0.2))


def _logistic(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, e, 1.0) / (1.0 + e))


def _gated(x: Array, t: Array) -> Array:
    """Returns x / (1 + e ** -t)."""
    return np.asarray(x / (1.0 + np.exp(-t)))


def _mish(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0.0, x)))


def _elu(x: Array) -> Array:
    return np.asarray(np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))))


CASES = (
    Case("abs", np.abs),
    Case("neg", np.negative),
    Case("sign", np.sign),
    Case("floor", np.floor),
    Case("ceil", np.ceil),
    Case("round", np.rint),
    Case("relu", lambda x: np.maximum(x, 0.0)),
    Case("thresholded_relu", lambda x: np.where(x > 1.0, x, 0.0)),
    Case("shrink", lambda x: np.where(np.abs(x) > 0.5, x, 0.0)),
    Case("leaky_relu", lambda x: np.where(x < 0, x * _LEAK, x)),
    Case("sqrt", np.sqrt),
    Case("reciprocal", np.reciprocal),
    Case("exp", np.exp),
    Case("log", np.log),
    Case("erf", _erf),
    Case("tanh", np.tanh),
    Case("sigmoid", _logistic),
    Case("swish", lambda x: _gated(x, x)),
    Case("gelu", lambda x: x * _erfc(-x * math.sqrt(0.5)) / 2),
    Case("gelu", lambda x: _gated(x, 2 * _SLOPE * (x + 0.044715 * x**3)), {"approximate": "tanh"}),
    Case("mish", _mish),
    Case("softplus", lambda x: np.logaddexp(0.0, x)),
    Case("softsign", lambda x: x / (1.0 + np.abs(x))),
    Case("elu", _elu),
    Case("selu", lambda x: _GAMMA * np.where(x > 0, x, _ALPHA * _elu(np.minimum(x, 0.0)))),
    Case("celu", _elu),
    Case("hard_sigmoid", lambda x: np.clip(_FIFTH * x + 0.5, 0.0, 1.0)),
    Case("hard_swish", lambda x: x * np.clip(x + 3.0, 0.0, 6.0) / 6),
    Case("sin", np.sin),
    Case("cos", np.cos),
    Case("tan", np.tan),
    Case("asin", np.arcsin),
    Case("acos", np.arccos),
    Case("atan", np.arctan),
    Case("sinh", np.sinh),
    Case("cosh", np.cosh),
    Case("asinh", np.arcsinh),
    Case("acosh", np.arccosh),
    Case("atanh", np.arctanh),
)
"""All operators of one float32 tensor that are a function of each element."""


def sweep(case: Case, backend: str, step: int = STEP, least: float = LEAST) -> Worst:
    """Returns the largest relative error of the kernel that computes an operator with a back-end first.

    It is |y - f(x)| / |f(x)|; where |f(x)| is below `least`, errors are divided by that. It is infinite where
    one of both is NaN, and the other is not.
    """
    worst = Worst()
    for x in _numbers(step):
        with np.errstate(all="ignore"):
            errors = _errors(_computed(case, backend, x).astype(float), case.function(x.astype(float)), least)
        at = int(errors.argmax())
        if errors[at] > worst.error:
            worst = Worst(float(errors[at]), float(x[at]))
    return worst


def _numbers(step: int) -> Iterator[Array]:
    near = np.array([s * n for n in SPECIAL for s in (-1.0, 1.0)], np.float32).view(np.uint32)
    offsets = np.arange(-_AROUND, _AROUND + 1)
    yield (near[:, np.newaxis].astype(np.int64) + offsets).astype(np.uint32).reshape(-1).view(np.float32)
    for first in range(0, 2**32, step * _CHUNK):
        yield np.arange(first, min(first + step * _CHUNK, 2**32), step, dtype=np.uint32).view(np.float32)


def _computed(case: Case, backend: str, x: Array) -> Array:
    kernel, signature = kernel_of(case, backend, x.size)
    (y,) = new_arrays(signature.outputs)
    kernel.bind(Binding(signature, (x,), (y,), new_arrays(kernel.temporaries(signature))))()
    return y


def kernel_of(case: Case, backend: str, size: int = _CHUNK) -> tuple[Kernel, Any]:
    """Returns the kernel of a case, of a back-end if that has one, else numpy's; and the signature."""
    schema = find(case.name)
    signature = schema.sign([TensorSpec((size,), np.dtype(np.float32))], case.attrs)
    return schema.kernel(signature, (backend, NUMPY)), signature


def _errors(y: Array, wanted: Array, least: float) -> Array:
    y, wanted = (np.clip(a, -_HIGHEST, _HIGHEST) for a in (y, wanted))
    errors = np.abs(y - wanted) / np.maximum(np.abs(wanted), least)
    return np.where(np.isnan(wanted), np.where(np.isnan(y), 0.0, np.inf), np.where(np.isnan(y), np.inf, errors))


def rows(cases: Sequence[Case] = CASES, step: int = STEP) -> Iterable[Sequence[str]]:
    """Yields a line for each case of which a kernel is not exact: the largest error of compiled code, and of numpy."""
    yield ["function", "compiled", "at", "numpy", "at"]
    for case in each("function", cases, lambda case: case.label):
        compiled = kernel_of(case, NUMBA)[0].backend == NUMBA
        cells = [_cell(sweep(case, NUMBA, step)) if compiled else ("", ""), _cell(sweep(case, NUMPY, step))]
        yield [f"`{case.label}`", *cells[0], *cells[1]]


def _cell(worst: Worst) -> tuple[str, str]:
    return (f"{worst.error:.1e}", f"{worst.x:.4g}") if worst.error else ("0", "")
