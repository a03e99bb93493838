"""Smooth activations (ONNX Sigmoid, Swish, Gelu, Elu, Selu, Celu, Softplus, Mish): exp, log1p, tanh, erf."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.blocks import Block, blocked
from ops.common.costs import flops_per_element
from ops.common.elementwise import like_input
from ops.elementwise.activation import activation
from ops.elementwise.comparison import GREATER
from ops.elementwise.erf import MASKS, TEMPORARIES, erf_passes, polynomial
from ops.elementwise.erf_compiled import erf
from ops.elementwise.smooth_gradients import (
    ELU_GRADIENT,
    GELU_GRADIENT,
    MISH_GRADIENT,
    SIGMOID_GRADIENT,
    SOFTPLUS_GRADIENT,
    SWISH_GRADIENT,
    not_erf,
    not_tanh,
)
from ops.schema.attributes import Attribute, one_of
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Tensor, Terms
from ops.schema.schema import OpSchema, Signature, Thunk, overwrites_from, unless
from ops.tensor.spec import FLOATS, Array
from ops.vector import normal_tail
from ops.vector.bytecode import Script
from ops.vector.kernel import opcode, vector_kernel

_SATURATED = 20.0
"""tanh(softplus(x)) is 1 in float64 from here on."""


def _sigmoid(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute 1 / (1 + exp(-x)).

    exp overflows to infinity for very negative x, and 1 / infinity is right: 0.
    """
    y = block.y
    return (
        partial(np.negative, block.x, y),
        partial(np.exp, y, y),
        partial(np.add, y, block.number(1), y),
        partial(np.reciprocal, y, y),
    )


def _swish(block: Block) -> tuple[Thunk, ...]:
    (scale,) = block.temporaries
    return (
        partial(np.multiply, block.x, block.number(-block.attrs["alpha"]), scale),
        partial(np.exp, scale, scale),
        partial(np.add, scale, block.number(1), scale),
        partial(np.divide, block.x, scale, block.y),
    )


def _gelu(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute with the gate erf(x / sqrt(2)), or without loss in float32."""
    if block.y.dtype == np.float32:
        return _gelu_single(block)
    gate, scaled, *others = block.temporaries
    passes = erf_passes(scaled, gate, (scaled, *others), block.masks[0])
    return (partial(np.multiply, block.x, block.number(math.sqrt(0.5)), scaled), *passes, *_gated(block, gate))


def _gelu_single(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute with the tail erfc(|x| / sqrt(2)) / 2 of the gate, without loss where it is small."""
    s, inverse, power, tail, _ = block.temporaries
    return (
        partial(np.absolute, block.x, s),
        partial(np.minimum, s, block.number(normal_tail.EDGE), out=s),
        partial(np.add, s, block.number(normal_tail.CENTRE), inverse),
        partial(np.reciprocal, inverse, inverse),
        partial(np.multiply, inverse, block.number(-2 * normal_tail.CENTRE), power),
        partial(np.add, power, block.number(1), power),
        *polynomial(normal_tail.POLYNOMIAL, power, tail),
        partial(np.multiply, tail, inverse, tail),
        partial(np.square, s, power),
        partial(np.multiply, power, block.number(-0.5), power),
        partial(np.exp, power, power),
        partial(np.multiply, tail, power, tail),
        partial(np.copysign, block.number(0.5), block.x, s),
        partial(np.add, s, block.number(0.5), s),
        partial(np.subtract, block.number(1), tail, power),
        partial(np.multiply, power, s, power),
        partial(np.maximum, tail, power, out=power),
        partial(np.multiply, block.x, power, block.y),
    )


def _gelu_compiled(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute with the compiled erf, in float64."""
    gate, scaled = block.temporaries
    scale = partial(np.multiply, block.x, block.number(math.sqrt(0.5)), scaled)
    return (scale, erf(scaled, gate), *_gated(block, gate))


def _gelu_tanh(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute x * (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)): u = sqrt(2 / pi) * (x + 0.044715 x^3)."""
    (scale,), slope = block.temporaries, -2 * math.sqrt(2 / math.pi)
    return (
        partial(np.square, block.x, scale),
        partial(np.multiply, scale, block.number(0.044715 * slope), scale),
        partial(np.add, scale, block.number(slope), scale),
        partial(np.multiply, scale, block.x, scale),
        partial(np.exp, scale, scale),
        partial(np.add, scale, block.number(1), scale),
        partial(np.divide, block.x, scale, block.y),
    )


def _gated(block: Block, gate: Array) -> tuple[Thunk, ...]:
    """Returns the steps of y = x * (gate + 1) / 2."""
    return (
        partial(np.add, gate, block.number(1), gate),
        partial(np.multiply, gate, block.number(0.5), gate),
        partial(np.multiply, block.x, gate, block.y),
    )


def _exponential_below(block: Block, alpha: float, width: float = 1.0) -> tuple[Thunk, ...]:
    """Returns the steps of y = max(x, 0) + alpha * (exp(min(x, 0) / width) - 1)."""
    (low,), zero = block.temporaries, block.number(0)
    stretch = (partial(np.divide, low, block.number(width), low),) if width != 1.0 else ()
    return (
        partial(np.minimum, block.x, zero, out=low),
        *stretch,
        partial(np.expm1, low, low),
        partial(np.multiply, low, block.number(alpha), low),
        partial(np.maximum, block.x, zero, out=block.y),
        partial(np.add, block.y, low, block.y),
    )


def _elu(block: Block) -> tuple[Thunk, ...]:
    return _exponential_below(block, block.attrs["alpha"])


def _selu(block: Block) -> tuple[Thunk, ...]:
    scale = partial(np.multiply, block.y, block.number(block.attrs["gamma"]), block.y)
    return (*_exponential_below(block, block.attrs["alpha"]), scale)


def _celu(block: Block) -> tuple[Thunk, ...]:
    return _exponential_below(block, block.attrs["alpha"], width=block.attrs["alpha"])


def _softplus(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute max(x, 0) + log1p(exp(-|x|)): nothing overflows."""
    (rest,) = block.temporaries
    return (
        partial(np.absolute, block.x, rest),
        partial(np.negative, rest, rest),
        partial(np.exp, rest, rest),
        partial(np.log1p, rest, rest),
        partial(np.maximum, block.x, block.number(0), out=block.y),
        partial(np.add, block.y, rest, block.y),
    )


def _mish(block: Block) -> tuple[Thunk, ...]:
    """Returns steps that compute tanh(log(1 + e)) as n / (n + 2) with n = e * (e + 2) and e = exp(x)."""
    (n, scale), two = block.temporaries, block.number(2)
    return (
        partial(np.minimum, block.x, block.number(_SATURATED), out=n),
        partial(np.exp, n, n),
        partial(np.add, n, two, scale),
        partial(np.multiply, n, scale, n),
        partial(np.add, n, two, scale),
        partial(np.divide, n, scale, n),
        partial(np.multiply, block.x, n, block.y),
    )


def _is_double(signature: Signature) -> bool:
    return signature.x.dtype == np.float64 and not not_erf(signature)


_not_double = unless(_is_double, "not float64, or the approximation through tanh")


def _encode_elu(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
    alpha, gamma = signature.attrs["alpha"], signature.attrs.get("gamma", 1.0)
    y = script.append("elu", *values, numbers=(alpha, 1.0))
    return y if gamma == 1.0 else script.append("scale", y, numbers=(gamma,))


def _encode_celu(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
    alpha = signature.attrs["alpha"]
    return script.append("elu", *values, numbers=(alpha, alpha))


def _encode_gelu(script: Script, signature: Signature, values: Sequence[int], _: tuple[Array, ...]) -> int:
    return script.append("gelu_tanh" if signature.attrs["approximate"] == "tanh" else "gelu", *values)


def _sigmoid_gradient(b: Backward) -> Terms:
    return (b.apply1(SIGMOID_GRADIENT, b.dy, b.y),)


def _softplus_gradient(b: Backward) -> Terms:
    return (b.apply1(SOFTPLUS_GRADIENT, b.dy, b.y),)


def _swish_gradient(b: Backward) -> Terms:
    return (b.apply1(SWISH_GRADIENT, b.dy, b.x, **b.attrs),)


def _gelu_gradient(b: Backward) -> Terms:
    return (b.apply1(GELU_GRADIENT, b.dy, b.x, **b.attrs),)


def _mish_gradient(b: Backward) -> Terms:
    return (b.apply1(MISH_GRADIENT, b.dy, b.x),)


def _elu_gradient(b: Backward) -> Terms:
    """Returns the gradient; it reads y, which has the sign of x, unless alpha or gamma is below 0."""
    alpha, gamma = b.attrs["alpha"], b.attrs.get("gamma", 1.0)
    if alpha >= 0 and gamma > 0:
        return (b.apply1(ELU_GRADIENT, b.dy, b.y, alpha=alpha, gamma=gamma),)

    def tail(x: Tensor) -> Tensor:
        return b.exp(b.where(above, b.constant(0.0, b.signature.x), x)) * (alpha * gamma)

    above = b.apply1(GREATER, b.x, 0.0)
    return (b.where(above, b.constant(gamma, b.signature.x), tail(b.x)) * b.dy,)


def _celu_gradient(b: Backward) -> Terms:
    alpha = b.attrs["alpha"]
    return (b.apply1(ELU_GRADIENT, b.dy, b.y, alpha=alpha, width=alpha),)


SIGMOID = activation("sigmoid", _sigmoid, "1 / (1 + exp(-x))", gradient=_sigmoid_gradient, vector=(opcode("sigmoid"),))
SWISH = activation(
    "swish",
    _swish,
    "x * sigmoid(alpha * x)",
    gradient=_swish_gradient,
    vector=(opcode("swish", "alpha"),),
    temporaries=1,
    flops=5,
    alpha=1.0,
)
ELU = activation(
    "elu",
    _elu,
    "x where x > 0, else alpha * (exp(x) - 1).",
    gradient=_elu_gradient,
    vector=(vector_kernel(_encode_elu),),
    temporaries=1,
    alpha=1.0,
)
SELU = activation(
    "selu",
    _selu,
    "gamma * elu(x, alpha)",
    gradient=_elu_gradient,
    vector=(vector_kernel(_encode_elu),),
    temporaries=1,
    flops=5,
    alpha=1.67326319217681884765625,
    gamma=1.05070102214813232421875,
)
CELU = activation(
    "celu",
    _celu,
    "max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)",
    gradient=_celu_gradient,
    vector=(vector_kernel(_encode_celu),),
    temporaries=1,
    flops=5,
    alpha=1.0,
)
SOFTPLUS = activation(
    "softplus",
    _softplus,
    "log(1 + exp(x))",
    gradient=_softplus_gradient,
    vector=(opcode("softplus"),),
    temporaries=1,
    flops=5,
)
MISH = activation(
    "mish", _mish, "x * tanh(softplus(x))", gradient=_mish_gradient, vector=(opcode("mish"),), temporaries=2, flops=7
)
GELU = OpSchema(
    "gelu",
    like_input(FLOATS),
    (
        vector_kernel(_encode_gelu),
        blocked(_gelu_compiled, temporaries=2, unsupported=_not_double, backend=NUMBA),
        blocked(_gelu, temporaries=1 + TEMPORARIES, masks=MASKS, name="passes", unsupported=not_erf),
        blocked(_gelu_tanh, temporaries=1, name="blocks, tanh", unsupported=not_tanh),
    ),
    attributes=(Attribute("approximate", one_of("none", "tanh"), "none"),),
    overwrites=overwrites_from(0),
    cost=flops_per_element(28),
    summary="x times the normal distribution function of x, or its approximation through tanh.",
    gradient=_gelu_gradient,
    elementwise=True,
)
OPS = (SIGMOID, SWISH, GELU, ELU, SELU, CELU, SOFTPLUS, MISH)


def sigmoid(x: V) -> V:
    """Returns 1 / (1 + exp(-x))."""
    return apply1(SIGMOID, x)


def swish(x: V, alpha: float = 1.0) -> V:
    """Returns x * sigmoid(alpha * x); SiLU where alpha is 1."""
    return apply1(SWISH, x, alpha=alpha)


def gelu(x: V, approximate: str = "none") -> V:
    """Returns x times the normal distribution function of x; `approximate` is none or tanh."""
    return apply1(GELU, x, approximate=approximate)


def elu(x: V, alpha: float = 1.0) -> V:
    """Returns x where x > 0, else alpha * (exp(x) - 1)."""
    return apply1(ELU, x, alpha=alpha)


def selu(x: V, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> V:
    """Returns gamma * elu(x, alpha)."""
    return apply1(SELU, x, alpha=alpha, gamma=gamma)


def celu(x: V, alpha: float = 1.0) -> V:
    """Returns max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return apply1(CELU, x, alpha=alpha)


def softplus(x: V) -> V:
    """Returns log(1 + exp(x))."""
    return apply1(SOFTPLUS, x)


def mish(x: V) -> V:
    """Returns x * tanh(softplus(x))."""
    return apply1(MISH, x)
