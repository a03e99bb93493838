"""Numbers by which reductions are told apart."""

SUM, ABS, SQUARE, MAX, MIN = range(5)
"""What is folded: x, |x|, its square, the larger, the smaller. Those before MAX are sums."""
AS_IS, DIVIDED, ROOT = range(3)
"""What becomes of it: nothing, a mean, its root."""
