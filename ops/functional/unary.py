"""Elementwise functions of one var; the output has the shape of x."""

from ops.elementwise.unary import (
    ABS,
    ACOS,
    ACOSH,
    ASIN,
    ASINH,
    ATAN,
    ATANH,
    BITWISE_NOT,
    CEIL,
    COS,
    COSH,
    ERF,
    EXP,
    FLOOR,
    IS_INF,
    IS_NAN,
    LOG,
    NEG,
    NOT,
    RECIPROCAL,
    ROUND,
    SIGN,
    SIN,
    SINH,
    SQRT,
    TAN,
)
from ops.functional.apply import V, apply1


def abs(x: V) -> V:
    """|x|"""
    return apply1(ABS, x)


def neg(x: V) -> V:
    """-x"""
    return apply1(NEG, x)


def sign(x: V) -> V:
    """-1, 0 or 1."""
    return apply1(SIGN, x)


def logical_not(x: V) -> V:
    """Logical complement of bools."""
    return apply1(NOT, x)


def bitwise_not(x: V) -> V:
    """Complement of each bit of integers."""
    return apply1(BITWISE_NOT, x)


def exp(x: V) -> V:
    """e to the power of x."""
    return apply1(EXP, x)


def log(x: V) -> V:
    """Natural logarithm."""
    return apply1(LOG, x)


def sqrt(x: V) -> V:
    """Square root."""
    return apply1(SQRT, x)


def reciprocal(x: V) -> V:
    """1 / x"""
    return apply1(RECIPROCAL, x)


def floor(x: V) -> V:
    """Largest integer not above x, in x's dtype."""
    return apply1(FLOOR, x)


def ceil(x: V) -> V:
    """Smallest integer not below x, in x's dtype."""
    return apply1(CEIL, x)


def round(x: V) -> V:
    """Nearest integer, in x's dtype; halves go to the even one."""
    return apply1(ROUND, x)


def erf(x: V) -> V:
    """The error function."""
    return apply1(ERF, x)


def is_nan(x: V) -> V:
    """Whether x is NaN; bool."""
    return apply1(IS_NAN, x)


def is_inf(x: V, detect_negative: bool = True, detect_positive: bool = True) -> V:
    """Whether x is infinite, of a sign that is to be detected; bool."""
    return apply1(IS_INF, x, detect_negative=detect_negative, detect_positive=detect_positive)


def sin(x: V) -> V:
    """Sine of x radians."""
    return apply1(SIN, x)


def cos(x: V) -> V:
    """Cosine of x radians."""
    return apply1(COS, x)


def tan(x: V) -> V:
    """Tangent of x radians."""
    return apply1(TAN, x)


def asin(x: V) -> V:
    """Inverse sine, in radians."""
    return apply1(ASIN, x)


def acos(x: V) -> V:
    """Inverse cosine, in radians."""
    return apply1(ACOS, x)


def atan(x: V) -> V:
    """Inverse tangent, in radians."""
    return apply1(ATAN, x)


def sinh(x: V) -> V:
    """Hyperbolic sine."""
    return apply1(SINH, x)


def cosh(x: V) -> V:
    """Hyperbolic cosine."""
    return apply1(COSH, x)


def asinh(x: V) -> V:
    """Inverse hyperbolic sine."""
    return apply1(ASINH, x)


def acosh(x: V) -> V:
    """Inverse hyperbolic cosine."""
    return apply1(ACOSH, x)


def atanh(x: V) -> V:
    """Inverse hyperbolic tangent."""
    return apply1(ATANH, x)
