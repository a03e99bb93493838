"""Functions of 16 float32 at a time, right for NaN, infinities and denormal numbers.

exp, log, tanh: polynomials of Cephes (Moshier 1989, expf.c, logf.c, tanhf.c); erf: those of N. Juffa ("Vectorizable
implementation of erff", Stack Overflow 35148198); how errors of such are bounded: Muller, Elementary Functions (2016).
"""

import math
from collections.abc import Sequence

from ops.vector import normal_tail
from ops.vector.lanes import Floats, Truth, either

_LOG2_E = 1.44269504088896341
_LN_2 = 0.693359375, -2.12194440e-4
"""The first has few bits: its product with a small integer is exact. Their sum is log(2)."""
_MAGIC = 12582912.0
"""1.5 * 2 ** 23: a small number added to it is rounded to an integer, which is found in its lowest bits."""
_MAGIC_BITS = 0x4B400000
_EXP = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1
_LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
_TANH_SPLIT = 0.625
_TANH = -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1
_ERF_SPLIT, _ERF_EDGE = 0.921875, 3.925
_ERF_NEAR = -5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1, -3.76124859e-1, 1.28379151e-1
_ERF_FAR = (
    *(1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2),
    *(1.06777847e-1, 6.34846687e-1, 1.28717512e-1),
)
_PLAIN = 86.5
"""Up to it, e ** x and its reciprocal are normal numbers."""
_DEEP = 174.0
"""From minus this on, e ** x is a product of two powers of 2 and a number near 1, all of them normal numbers."""
_SATURATED = 20.0
"""The hyperbolic tangent of log(1 + e ** x) is 1 in float32 from here on."""
_SLOPE = math.sqrt(2 / math.pi)
_SMALLEST = 2.0**-126
_ROOT_HALF = math.sqrt(0.5)


def polynomial(x: Floats, factors: Sequence[float]) -> Floats:
    """Computes a polynomial of two factors or more, that of the highest power first (Horner)."""
    total = x.times(factors[0], factors[1])
    for factor in factors[2:]:
        total = total.times(x, factor)
    return total


def _reduced(x: Floats, lowest: float, highest: float) -> tuple[Floats, Floats, Floats]:
    """Splits x, held between bounds, into n * log(2) + r; returns r, and two powers of 2 with the product 2 ** n."""
    x = x.at_least(lowest).at_most(highest)
    shifted = x.times(_LOG2_E, _MAGIC)
    n = shifted - _MAGIC
    r = n.times(-_LN_2[1], n.times(-_LN_2[0], x))
    whole = shifted.bits() - _MAGIC_BITS
    half = whole >> 1
    first, second = (((k + 127) << 23).as_bits() for k in (half, whole - half))
    return r, first, second


def _exp_near(r: Floats) -> Floats:
    """Computes e ** r for |r| <= log(2) / 2, by pairs of powers (Estrin): a chain of products has a longer latency."""
    square, (a, b, c, d, e, f) = r * r, _EXP
    return r.times(a, b).times(square, r.times(c, d)).times(square, r.times(e, f)).times(square, r + 1.0)


def exp(x: Floats) -> Floats:
    """Computes e ** x, with care where one of 16 results is infinite or denormal."""
    return either(x.apply("fabs") > _PLAIN, lambda: _exp_anywhere(x), lambda: _exp_plain(x))


def _exp_anywhere(x: Floats) -> Floats:
    """Computes e ** x with two factors: one power of 2 cannot represent the least and the largest results."""
    r, first, second = _reduced(x, -104.0, 89.0)
    return _exp_near(r) * first * second


def _exp_plain(x: Floats) -> Floats:
    """Computes e ** x for -87 < x < 87; NaN for NaN. The same bits as `_exp_anywhere`."""
    shifted = x.times(_LOG2_E, _MAGIC)
    n = shifted - _MAGIC
    r = n.times(-_LN_2[1], n.times(-_LN_2[0], x))
    return _exp_near(r) * ((shifted.bits() + (127 - _MAGIC_BITS)) << 23).as_bits()


def _exp_inside(x: Floats) -> Floats:
    """Computes e ** x for -87 < x < 88; NaN for NaN. 126 times log(2) in one piece has an error below 2e-7."""
    shifted = x.times(_LOG2_E, _MAGIC)
    r = (shifted - _MAGIC).times(-sum(_LN_2), x)
    power = ((shifted.bits() + (127 - _MAGIC_BITS)) << 23).as_bits()
    return _exp_near(r) * power


def exp_below(x: Floats) -> Floats:
    """Computes e ** x for x <= 0; 0 where it is less than 2 ** -125."""
    return (x < -86.5).choose(0.0, _exp_inside(x))


def expm1(x: Floats) -> Floats:
    """Computes e ** x - 1 for x <= 0 without loss where it is small."""
    r, first, second = _reduced(x, -80.0, 89.0)
    power = first * second
    return polynomial(r, _EXP).times(r * r, r).times(power, power - 1.0)


def log(x: Floats) -> Floats:
    """Computes the natural logarithm; -infinity for 0, NaN below."""
    small = x < _SMALLEST
    scaled = small.choose(x * 2.0**23, x)
    exponent = ((scaled.bits() >> 23) - 126).as_numbers() - small.choose(23.0, 0.0)
    m = ((scaled.bits() & 0x007FFFFF) | 0x3F000000).as_bits()
    low = m < _ROOT_HALF
    exponent = exponent - low.choose(1.0, 0.0)
    m = m + low.choose(m, 0.0) - 1.0
    square = m * m
    rest = polynomial(m, _LOG) * m * square
    rest = square.times(-0.5, exponent.times(_LN_2[1], rest))
    result = exponent.times(_LN_2[0], m + rest)
    result = x.equals(math.inf).choose(math.inf, result)
    result = x.equals(0.0).choose(-math.inf, result)
    return (x < 0.0).choose(math.nan, x.is_nan().choose(x, result))


def log1p(x: Floats) -> Floats:
    """Computes log(1 + x) for 0 <= x <= 1: what is lost in the sum is added again (Kahan)."""
    total = x + 1.0
    return log(total) + (x - (total - 1.0)) / total


def tanh(x: Floats) -> Floats:
    """Computes the hyperbolic tangent."""
    size, square = x.apply("fabs"), x * x
    far = 1.0 - 2.0 / (_exp_inside((size + size).at_most(20.0)) + 1.0)
    near = (polynomial(square, _TANH) * square).times(x, x)
    return (size > _TANH_SPLIT).choose((x < 0.0).choose(-far, far), near)


def erf(x: Floats) -> Floats:
    """Computes the error function."""
    size = x.apply("fabs")
    held = size.at_most(_ERF_EDGE)
    near = polynomial(x * x, _ERF_NEAR).times(x, x)
    rest = _exp_inside(-polynomial(held, _ERF_FAR).times(held, held))
    far = (size >= _ERF_EDGE).choose(1.0, 1.0 - rest)
    return (size > _ERF_SPLIT).choose((x < 0.0).choose(-far, far), near)


def gelu(x: Floats) -> Floats:
    """Computes x times the normal distribution function of x, whose tail is erfc(s / sqrt(2)) / 2 with s = |x|.

    What rounding takes from s * s is given back to the exponent, where it would be a relative error of the result.
    """
    s = x.apply("fabs").at_most(normal_tail.EDGE)
    square = s * s
    lost = s.times(s, -square)
    inverse = 1.0 / (s + normal_tail.CENTRE)
    r, first, second = _reduced(square * -0.5, -106.0, 0.0)
    factor = polynomial(inverse.times(-2 * normal_tail.CENTRE, 1.0), normal_tail.POLYNOMIAL) * inverse
    tail = factor * _exp_near(lost.times(-0.5, r)) * first * second
    return x * (x < 0.0).choose(tail, 1.0 - tail)


def gelu_tanh(x: Floats) -> Floats:
    """Computes x * (1 + tanh(u)) / 2 = x / (1 + e ** (-2 u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3)."""
    return gated(x, (x * x).times(2 * 0.044715 * _SLOPE, 2 * _SLOPE) * x)


def _times_exp(x: Floats | float, t: Floats) -> Floats:
    """Computes x * e ** t for -174 < t < 0, rounded once where that is denormal, whatever e ** t is."""
    r, first, second = _reduced(t, -_DEEP, 0.0)
    return _exp_near(r) * x * first * second


def _is_deep(t: Floats) -> Truth:
    """Returns where e ** t may be denormal; not where x * e ** t is 0 for any x."""
    return (t < -_PLAIN) & (t > -_DEEP)


def gated(x: Floats | float, t: Floats) -> Floats:
    """Computes x / (1 + e ** -t), with care where e ** -t is infinite, and the result may not be 0."""

    def careful() -> Floats:
        return _is_deep(t).choose(_times_exp(x, t), x / (_exp_anywhere(-t) + 1.0))

    return either(t.apply("fabs") > _PLAIN, careful, lambda: x / (_exp_plain(-t) + 1.0))


def sigmoid(x: Floats) -> Floats:
    """Computes 1 / (1 + exp(-x))."""
    return gated(1.0, x)


def mish(x: Floats) -> Floats:
    """Computes x * tanh(log(1 + e)), which is x * n / (n + 2) with n = e * (e + 2) and e = exp(x)."""

    def of(e: Floats) -> Floats:
        n = (e + 2.0) * e
        return x * (n / (n + 2.0))

    held = x.at_most(_SATURATED)
    return either(
        x < -_PLAIN,
        lambda: _is_deep(x).choose(_times_exp(x, x), of(_exp_anywhere(held))),
        lambda: of(_exp_plain(held)),
    )


def maximum(a: Floats, b: Floats) -> Floats:
    """Returns the larger; NaN where either is NaN."""
    return a.is_nan().choose(a, (a > b).choose(a, b))


def minimum(a: Floats, b: Floats) -> Floats:
    """Returns the smaller; NaN where either is NaN."""
    return a.is_nan().choose(a, (a < b).choose(a, b))
