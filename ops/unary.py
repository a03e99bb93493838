"""Elementwise operators of one input that are one function each (ONNX Abs, Neg, Exp ... IsInf, BitwiseNot)."""

from functools import partial

import numpy as np

from ops.attributes import Attribute, flag
from ops.blocks import Block, blocked
from ops.compiled import erf
from ops.elementwise import require_dtype, ufunc_kernel, unary
from ops.limits import constant
from ops.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.spec import BOOL, FLOATS, INTEGERS, NUMBERS, SIGNED

_BOOLS = frozenset({BOOL})


def _float_function(name: str, function: np.ufunc, summary: str) -> OpSchema:
    return unary(name, FLOATS, ufunc_kernel(function), summary)


def _erf(block: Block) -> tuple[Thunk, ...]:
    return (partial(erf(block.y.dtype), block.x, block.y),)


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


ABS = unary("abs", NUMBERS, ufunc_kernel(np.absolute), "|x|; the lowest signed integer stays as it is.")
NEG = unary("neg", FLOATS | SIGNED, ufunc_kernel(np.negative), "-x")
SIGN = unary("sign", NUMBERS, ufunc_kernel(np.sign), "-1, 0 or 1; NaN stays NaN.")
NOT = unary("not", _BOOLS, ufunc_kernel(np.logical_not), "Logical complement.")
BITWISE_NOT = unary("bitwise_not", INTEGERS, ufunc_kernel(np.invert), "Complement of each bit.")
EXP = _float_function("exp", np.exp, "e to the power of x.")
LOG = _float_function("log", np.log, "Natural logarithm.")
SQRT = _float_function("sqrt", np.sqrt, "Square root; NaN below 0.")
RECIPROCAL = _float_function("reciprocal", np.reciprocal, "1 / x")
FLOOR = _float_function("floor", np.floor, "Largest integer not above x.")
CEIL = _float_function("ceil", np.ceil, "Smallest integer not below x.")
ROUND = _float_function("round", np.rint, "Nearest integer; halves go to the even one.")
SIN = _float_function("sin", np.sin, "Sine of x radians.")
COS = _float_function("cos", np.cos, "Cosine of x radians.")
TAN = _float_function("tan", np.tan, "Tangent of x radians.")
ASIN = _float_function("asin", np.arcsin, "Inverse sine, in radians.")
ACOS = _float_function("acos", np.arccos, "Inverse cosine, in radians.")
ATAN = _float_function("atan", np.arctan, "Inverse tangent, in radians.")
SINH = _float_function("sinh", np.sinh, "Hyperbolic sine.")
COSH = _float_function("cosh", np.cosh, "Hyperbolic cosine.")
ASINH = _float_function("asinh", np.arcsinh, "Inverse hyperbolic sine.")
ACOSH = _float_function("acosh", np.arccosh, "Inverse hyperbolic cosine.")
ATANH = _float_function("atanh", np.arctanh, "Inverse hyperbolic tangent.")
ERF = unary("erf", FLOATS, blocked(_erf), "The error function.", flops=24)
IS_NAN = OpSchema("is_nan", _to_bool, (ufunc_kernel(np.isnan),), summary="Whether x is NaN.")
IS_INF = OpSchema(
    "is_inf",
    _to_bool,
    (Kernel("numpy", _is_inf),),
    attributes=(Attribute("detect_negative", flag, True), Attribute("detect_positive", flag, True)),
    summary="Whether x is infinite, of a sign that is to be detected.",
)
OPS = (
    *(ABS, NEG, SIGN, NOT, BITWISE_NOT, EXP, LOG, SQRT, RECIPROCAL, FLOOR, CEIL, ROUND, ERF, IS_NAN, IS_INF),
    *(SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, ASINH, ACOSH, ATANH),
)
