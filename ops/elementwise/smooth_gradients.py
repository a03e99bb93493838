"""Gradients of smooth activations: one pass each, in place over the gradient of the output.

Sigmoid, softplus and the exponential units read their output; the others read what went in.
"""

import math
from functools import partial

import numpy as np

from ops.common.blocks import Block, blocked
from ops.elementwise.activation_gradients import choose, slope, spread
from ops.elementwise.erf import MASKS, TEMPORARIES, erf_passes
from ops.elementwise.erf_compiled import erf
from ops.schema.attributes import Attribute, one_of
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Tensor
from ops.schema.schema import Signature, Thunk, unless
from ops.tensor.spec import Array

_CUBIC = 0.044715
_SATURATED = 20.0
"""tanh(softplus(x)) and sigmoid(x) are 1 in float64 (nearly) from here on."""


def _sigmoid(block: Block) -> tuple[Thunk, ...]:
    (dy, y), (rest,) = block.inputs, block.temporaries
    return (
        partial(np.subtract, block.number(1), y, rest),
        partial(np.multiply, rest, y, rest),
        partial(np.multiply, dy, rest, block.y),
    )


def _sigmoid_curve(b: Backward) -> Tensor:
    dy, y = b.inputs
    return b.dy * dy * (1.0 - y * 2.0)


def _softplus(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute the slope sigmoid(x) = 1 - exp(-softplus(x))."""
    (dy, y), (rest,) = block.inputs, block.temporaries
    return (
        partial(np.negative, y, rest),
        partial(np.expm1, rest, rest),
        partial(np.negative, rest, rest),
        partial(np.multiply, dy, rest, block.y),
    )


def _elu(block: Block) -> tuple[Thunk, ...]:
    """Computes the slope of gamma * alpha * (exp(x / width) - 1) below 0: its height above its floor, over width."""
    (dy, y), (low, bits), (mask,) = block.inputs, block.temporaries, block.masks
    alpha, width, gamma = (block.attrs[n] for n in ("alpha", "width", "gamma"))
    return (
        partial(np.greater, y, block.number(0), mask),
        *spread(mask, bits),
        partial(np.add, y, block.number(alpha * gamma), low),
        partial(np.divide, low, block.number(width), low),
        *choose(block.number(gamma), low, bits, low),
        partial(np.multiply, dy, low, block.y),
    )


def _gate(x: Array, alpha: float, gate: Array, block: Block) -> tuple[Thunk, ...]:
    """Returns the steps of sigmoid(alpha * x)."""
    return (
        partial(np.multiply, x, block.number(-alpha), gate),
        partial(np.exp, gate, gate),
        partial(np.add, gate, block.number(1), gate),
        partial(np.reciprocal, gate, gate),
    )


def _swish(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute the slope s + alpha * x * s * (1 - s), where s = sigmoid(alpha * x)."""
    (dy, x), (gate, rest) = block.inputs, block.temporaries
    alpha = block.attrs["alpha"]
    return (
        *_gate(x, alpha, gate, block),
        partial(np.subtract, block.number(1), gate, rest),
        partial(np.multiply, rest, x, rest),
        partial(np.multiply, rest, block.number(alpha), rest),
        partial(np.add, rest, block.number(1), rest),
        partial(np.multiply, rest, gate, rest),
        partial(np.multiply, dy, rest, block.y),
    )


def _normal_slope(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute the normal distribution function of x, plus x times its density."""
    gate, scaled, *others = block.temporaries
    scale = partial(np.multiply, block.inputs[1], block.number(math.sqrt(0.5)), scaled)
    return (scale, *erf_passes(scaled, gate, (scaled, *others), block.masks[0]), *_slope_of_gate(block))


def _normal_slope_compiled(block: Block) -> tuple[Thunk, ...]:
    gate, scaled, _ = block.temporaries
    scale = partial(np.multiply, block.inputs[1], block.number(math.sqrt(0.5)), scaled)
    return (scale, erf(scaled, gate), *_slope_of_gate(block))


def _slope_of_gate(block: Block) -> tuple[Thunk, ...]:
    """Returns the passes after erf(x / sqrt(2)), which is in the first temporary."""
    (dy, x), (gate, rest, *_), half = block.inputs, block.temporaries, block.number(0.5)
    return (
        partial(np.add, gate, block.number(1), gate),
        partial(np.multiply, gate, half, gate),
        partial(np.square, x, rest),
        partial(np.multiply, rest, block.number(-0.5), rest),
        partial(np.exp, rest, rest),
        partial(np.multiply, rest, block.number(1 / math.sqrt(2 * math.pi)), rest),
        partial(np.multiply, rest, x, rest),
        partial(np.add, gate, rest, gate),
        partial(np.multiply, dy, gate, block.y),
    )


def _tanh_slope(block: Block) -> tuple[Thunk, ...]:
    """Computes (1 + t) / 2 * (1 + (1 - t) * u).

    t = tanh(c * (x + 0.044715 * x^3)), u = c * (x + 3 * 0.044715 * x^3).
    """
    (dy, x), (gate, rest, slopes), c = block.inputs, block.temporaries, math.sqrt(2 / math.pi)
    one = block.number(1)
    return (
        partial(np.square, x, rest),
        partial(np.multiply, rest, block.number(_CUBIC * c), gate),
        partial(np.add, gate, block.number(c), gate),
        partial(np.multiply, gate, x, gate),
        partial(np.tanh, gate, gate),
        partial(np.multiply, rest, block.number(3 * _CUBIC * c), rest),
        partial(np.add, rest, block.number(c), rest),
        partial(np.multiply, rest, x, rest),
        partial(np.subtract, one, gate, slopes),
        partial(np.multiply, slopes, rest, slopes),
        partial(np.add, slopes, one, slopes),
        partial(np.add, gate, one, gate),
        partial(np.multiply, gate, block.number(0.5), gate),
        partial(np.multiply, gate, slopes, gate),
        partial(np.multiply, dy, gate, block.y),
    )


def _has_erf(signature: Signature) -> bool:
    return bool(signature.attrs["approximate"] == "none")


def _has_tanh(signature: Signature) -> bool:
    return not _has_erf(signature)


not_erf = unless(_has_erf, "the approximation through tanh")
not_tanh = unless(_has_tanh, "not the approximation through tanh")
"""The reasons against kernels of GELU and of its gradient that compute one of both formulas only."""


def _mish(block: Block) -> tuple[Thunk, ...]:
    """Computes n / (n + 2) + 4 * x * e * (e + 1) / (n + 2)^2 with n = e * (e + 2) and e = exp(x)."""
    (dy, x), (e, n, q, w) = block.inputs, block.temporaries
    one, two = block.number(1), block.number(2)
    return (
        partial(np.minimum, x, block.number(_SATURATED), out=e),
        partial(np.exp, e, e),
        partial(np.add, e, two, n),
        partial(np.multiply, n, e, n),
        partial(np.add, n, two, q),
        partial(np.divide, n, q, n),
        partial(np.reciprocal, q, q),
        partial(np.multiply, q, e, w),
        partial(np.add, e, one, e),
        partial(np.multiply, q, e, q),
        partial(np.multiply, q, w, q),
        partial(np.multiply, q, x, q),
        partial(np.multiply, q, block.number(4), q),
        partial(np.add, n, q, n),
        partial(np.multiply, dy, n, block.y),
    )


_APPROXIMATE = Attribute("approximate", one_of("none", "tanh"), "none")
SIGMOID_GRADIENT = slope("sigmoid_gradient", _sigmoid, "dy * y * (1 - y)", flops=3, curve=_sigmoid_curve)
SOFTPLUS_GRADIENT = slope("softplus_gradient", _softplus, "dy * (1 - exp(-y))", flops=4)
ELU_GRADIENT = slope(
    "elu_gradient",
    _elu,
    "gamma * dy where y > 0, else dy * (y + alpha * gamma) / width.",
    temporaries=2,
    masks=1,
    flops=5,
    alpha=1.0,
    width=1.0,
    gamma=1.0,
)
SWISH_GRADIENT = slope(
    "swish_gradient", _swish, "dy times the slope of x * sigmoid(alpha * x).", temporaries=2, flops=10, alpha=1.0
)
GELU_GRADIENT = slope(
    "gelu_gradient",
    _tanh_slope,
    "dy times the slope of gelu at x.",
    temporaries=3,
    flops=36,
    words=(_APPROXIMATE,),
    kernels=(
        blocked(_normal_slope_compiled, temporaries=3, unsupported=not_erf, backend=NUMBA),
        blocked(_normal_slope, temporaries=1 + TEMPORARIES, masks=MASKS, name="passes", unsupported=not_erf),
        blocked(_tanh_slope, temporaries=3, name="blocks, tanh", unsupported=not_tanh),
    ),
)
MISH_GRADIENT = slope("mish_gradient", _mish, "dy times the slope of mish at x.", temporaries=4, flops=16)
OPS = (SIGMOID_GRADIENT, SOFTPLUS_GRADIENT, ELU_GRADIENT, SWISH_GRADIENT, GELU_GRADIENT, MISH_GRADIENT)
