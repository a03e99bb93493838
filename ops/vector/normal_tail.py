"""The tail of the normal distribution in float32: a polynomial that compiled code and numpy's passes share.

With s >= 0 and t = (s - CENTRE) / (s + CENTRE):

    erfc(s / sqrt(2)) / 2 = e ** (-s * s / 2) * POLYNOMIAL(t) / (s + CENTRE)

within 6e-8 of it up to EDGE, from where on it is 0 in float32.
"""

EDGE, CENTRE = 14.5, 3.0
POLYNOMIAL = (
    *(-2.6224792e-4, -8.9669006e-4, 1.0744500e-3, 6.9192341e-3, -1.0480112e-2, -4.7255121e-2),
    *(2.3001941e-1, -5.0933236e-1, 7.2908366e-1),
)
"""The factor of the highest power first."""
