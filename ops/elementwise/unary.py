"""Elementwise operators of one input that are one function each (ONNX Abs, Neg, Exp ... IsInf, BitwiseNot).

Kernels of `negative` and `isnan` write dense outputs only: numpy (2.4 at least) forgets the input's strides in both
where those of the output have holes, and gives wrong numbers (`negative` where 4-byte elements lie 16 bytes apart,
8-byte ones 64).
"""

import math
from functools import partial

import numpy as np

from ops.common.apply import V, apply1
from ops.common.blocks import Block, blocked
from ops.common.elementwise import require_dtype, ufunc_kernel, unary
from ops.elementwise import erf_compiled
from ops.elementwise.erf import MASKS, TEMPORARIES, erf_passes
from ops.schema.attributes import Attribute, flag
from ops.schema.backends import NUMBA
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, GradientRule, Kernel, OpSchema, Specs, Thunk, dense_only, zero_gradient
from ops.tensor.limits import constant
from ops.tensor.spec import BOOL, FLOATS, INTEGERS, NUMBERS, SIGNED
from ops.vector.kernel import opcode

_BOOLS = frozenset({BOOL})


def _float_function(name: str, function: np.ufunc, summary: str, gradient: GradientRule, code: str = "") -> OpSchema:
    return unary(name, FLOATS, ufunc_kernel(function), summary, gradient=gradient, code=code)


def _erf(block: Block) -> tuple[Thunk, ...]:
    return erf_passes(block.x, block.y, block.temporaries, block.masks[0])


def _erf_compiled(block: Block) -> tuple[Thunk, ...]:
    """Calls the compiled function, in a temporary where an operand is not dense."""
    (temporary,), x, y = block.temporaries, block.x, block.y
    if x.flags.c_contiguous and y.flags.c_contiguous:
        return (erf_compiled.erf(x, y),)
    return (partial(np.copyto, temporary, x), erf_compiled.erf(temporary, temporary), partial(np.copyto, y, temporary))


def _to_bool(inputs: Specs, _: Attrs) -> Specs:
    require_dtype(inputs[0], FLOATS)
    return (inputs[0].with_dtype(BOOL),)


def _is_inf(call: Binding) -> Thunk:
    negative, positive = call.attrs["detect_negative"], call.attrs["detect_positive"]
    if negative and positive:
        return partial(np.isinf, call.x, call.y)
    if not negative and not positive:
        return partial(call.y.fill, False)
    return partial(np.equal, call.x, constant(np.inf if positive else -np.inf, call.x.dtype), call.y)


def _abs_gradient(b: Backward) -> Terms:
    """Returns the gradient dy * sign(x), which is 0 where x is 0."""
    return (b.dy * b.sign(b.x),)


def _neg_gradient(b: Backward) -> Terms:
    return (-b.dy,)


def _exp_gradient(b: Backward) -> Terms:
    return (b.dy * b.y,)


def _log_gradient(b: Backward) -> Terms:
    return (b.dy / b.x,)


def _sqrt_gradient(b: Backward) -> Terms:
    return (b.dy / b.y * 0.5,)


def _reciprocal_gradient(b: Backward) -> Terms:
    return (-(b.dy * b.y) * b.y,)


def _erf_gradient(b: Backward) -> Terms:
    return (b.exp(-(b.x * b.x)) * (2 / math.sqrt(math.pi)) * b.dy,)


def _sin_gradient(b: Backward) -> Terms:
    return (b.apply1(COS, b.x) * b.dy,)


def _cos_gradient(b: Backward) -> Terms:
    return (-(b.apply1(SIN, b.x) * b.dy),)


def _tan_gradient(b: Backward) -> Terms:
    return ((b.y * b.y + 1.0) * b.dy,)


def _asin_gradient(b: Backward) -> Terms:
    return (b.dy / b.sqrt(1.0 - b.x * b.x),)


def _acos_gradient(b: Backward) -> Terms:
    return (-(b.dy / b.sqrt(1.0 - b.x * b.x)),)


def _atan_gradient(b: Backward) -> Terms:
    return (b.dy / (b.x * b.x + 1.0),)


def _sinh_gradient(b: Backward) -> Terms:
    return (b.apply1(COSH, b.x) * b.dy,)


def _cosh_gradient(b: Backward) -> Terms:
    return (b.apply1(SINH, b.x) * b.dy,)


def _asinh_gradient(b: Backward) -> Terms:
    return (b.dy / b.sqrt(b.x * b.x + 1.0),)


def _acosh_gradient(b: Backward) -> Terms:
    return (b.dy / b.sqrt(b.x * b.x - 1.0),)


def _atanh_gradient(b: Backward) -> Terms:
    return (b.dy / (1.0 - b.x * b.x),)


ABS = unary(
    "abs",
    NUMBERS,
    ufunc_kernel(np.absolute),
    "|x|; the lowest signed integer stays as it is.",
    gradient=_abs_gradient,
    code="abs",
)
NEG = unary("neg", FLOATS | SIGNED, ufunc_kernel(np.negative, dense_only), "-x", gradient=_neg_gradient, code="neg")
SIGN = unary("sign", NUMBERS, ufunc_kernel(np.sign), "-1, 0 or 1; NaN stays NaN.", gradient=zero_gradient, code="sign")
NOT = unary("not", _BOOLS, ufunc_kernel(np.logical_not), "Logical complement.", code="not")
BITWISE_NOT = unary("bitwise_not", INTEGERS, ufunc_kernel(np.invert), "Complement of each bit.")
EXP = _float_function("exp", np.exp, "e to the power of x.", _exp_gradient, code="exp")
LOG = _float_function("log", np.log, "Natural logarithm.", _log_gradient, code="log")
SQRT = _float_function("sqrt", np.sqrt, "Square root; NaN below 0.", _sqrt_gradient, code="sqrt")
RECIPROCAL = _float_function("reciprocal", np.reciprocal, "1 / x", _reciprocal_gradient, code="reciprocal")
FLOOR = _float_function("floor", np.floor, "Largest integer not above x.", zero_gradient, code="floor")
CEIL = _float_function("ceil", np.ceil, "Smallest integer not below x.", zero_gradient, code="ceil")
ROUND = _float_function("round", np.rint, "Nearest integer; halves go to the even one.", zero_gradient, code="round")
SIN = _float_function("sin", np.sin, "Sine of x radians.", _sin_gradient)
COS = _float_function("cos", np.cos, "Cosine of x radians.", _cos_gradient)
TAN = _float_function("tan", np.tan, "Tangent of x radians.", _tan_gradient)
ASIN = _float_function("asin", np.arcsin, "Inverse sine, in radians.", _asin_gradient)
ACOS = _float_function("acos", np.arccos, "Inverse cosine, in radians.", _acos_gradient)
ATAN = _float_function("atan", np.arctan, "Inverse tangent, in radians.", _atan_gradient)
SINH = _float_function("sinh", np.sinh, "Hyperbolic sine.", _sinh_gradient)
COSH = _float_function("cosh", np.cosh, "Hyperbolic cosine.", _cosh_gradient)
ASINH = _float_function("asinh", np.arcsinh, "Inverse hyperbolic sine.", _asinh_gradient)
ACOSH = _float_function("acosh", np.arccosh, "Inverse hyperbolic cosine.", _acosh_gradient)
ATANH = _float_function("atanh", np.arctanh, "Inverse hyperbolic tangent.", _atanh_gradient)
ERF = unary(
    "erf",
    FLOATS,
    blocked(_erf, temporaries=TEMPORARIES, masks=MASKS, name="passes"),
    "The error function.",
    flops=24,
    gradient=_erf_gradient,
    code="erf",
    compiled=(blocked(_erf_compiled, temporaries=1, backend=NUMBA),),
)
IS_NAN = OpSchema(
    "is_nan",
    _to_bool,
    (opcode("is_nan"), ufunc_kernel(np.isnan, dense_only)),
    summary="Whether x is NaN.",
    elementwise=True,
)
IS_INF = OpSchema(
    "is_inf",
    _to_bool,
    (Kernel("numpy", _is_inf),),
    attributes=(Attribute("detect_negative", flag, True), Attribute("detect_positive", flag, True)),
    summary="Whether x is infinite, of a sign that is to be detected.",
    elementwise=True,
)
OPS = (
    *(ABS, NEG, SIGN, NOT, BITWISE_NOT, EXP, LOG, SQRT, RECIPROCAL, FLOOR, CEIL, ROUND, ERF, IS_NAN, IS_INF),
    *(SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, ASINH, ACOSH, ATANH),
)


def abs(x: V) -> V:
    """Returns |x|."""
    return apply1(ABS, x)


def neg(x: V) -> V:
    """Returns -x."""
    return apply1(NEG, x)


def sign(x: V) -> V:
    """Returns -1, 0 or 1."""
    return apply1(SIGN, x)


def logical_not(x: V) -> V:
    """Returns the logical complement of bools."""
    return apply1(NOT, x)


def bitwise_not(x: V) -> V:
    """Returns the complement of each bit of integers."""
    return apply1(BITWISE_NOT, x)


def reciprocal(x: V) -> V:
    """Returns 1 / x."""
    return apply1(RECIPROCAL, x)


def exp(x: V) -> V:
    """Returns e to the power of x."""
    return apply1(EXP, x)


def log(x: V) -> V:
    """Returns the natural logarithm."""
    return apply1(LOG, x)


def sqrt(x: V) -> V:
    """Returns the square root."""
    return apply1(SQRT, x)


def sin(x: V) -> V:
    """Returns the sine of x radians."""
    return apply1(SIN, x)


def cos(x: V) -> V:
    """Returns the cosine of x radians."""
    return apply1(COS, x)


def tan(x: V) -> V:
    """Returns the tangent of x radians."""
    return apply1(TAN, x)


def asin(x: V) -> V:
    """Returns the inverse sine, in radians."""
    return apply1(ASIN, x)


def acos(x: V) -> V:
    """Returns the inverse cosine, in radians."""
    return apply1(ACOS, x)


def atan(x: V) -> V:
    """Returns the inverse tangent, in radians."""
    return apply1(ATAN, x)


def sinh(x: V) -> V:
    """Returns the hyperbolic sine."""
    return apply1(SINH, x)


def cosh(x: V) -> V:
    """Returns the hyperbolic cosine."""
    return apply1(COSH, x)


def asinh(x: V) -> V:
    """Returns the inverse hyperbolic sine."""
    return apply1(ASINH, x)


def acosh(x: V) -> V:
    """Returns the inverse hyperbolic cosine."""
    return apply1(ACOSH, x)


def atanh(x: V) -> V:
    """Returns the inverse hyperbolic tangent."""
    return apply1(ATANH, x)


def ceil(x: V) -> V:
    """Returns the smallest integer not below x, in x's dtype."""
    return apply1(CEIL, x)


def floor(x: V) -> V:
    """Returns the largest integer not above x, in x's dtype."""
    return apply1(FLOOR, x)


def round(x: V) -> V:
    """Returns the nearest integer, in x's dtype; halves go to the even one."""
    return apply1(ROUND, x)


def erf(x: V) -> V:
    """Returns the error function."""
    return apply1(ERF, x)


def is_nan(x: V) -> V:
    """Returns whether x is NaN, as bool."""
    return apply1(IS_NAN, x)


def is_inf(x: V, detect_negative: bool = True, detect_positive: bool = True) -> V:
    """Returns whether x is infinite, with a sign that is to be detected, as bool."""
    return apply1(IS_INF, x, detect_negative=detect_negative, detect_positive=detect_positive)
