"""Matrix products on vars."""

import math
from typing import cast

from ops.functional.apply import Operand, V, apply, apply1
from ops.functional.views import reshape
from ops.products.einsum import EINSUM
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.tensor.spec import Array


def matmul(a: V | Array, b: V | Array) -> V:
    """numpy.matmul: products of the last two axes, leading axes broadcast, a vector is a single row or column."""
    return cast(V, apply(MATMUL, (a, b))[0])


def gemm(
    a: V,
    b: Operand,
    c: Operand | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    trans_a: bool = False,
    trans_b: bool = False,
) -> V:
    """alpha * a @ b + beta * c; `a` is (M, K) or, where transposed, (K, M), `b` likewise, `c` broadcasts to (M, N)."""
    more = (b,) if c is None else (b, c)
    return apply1(GEMM, a, *more, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b)


def einsum(equation: str, *operands: V | Array) -> V:
    """numpy.einsum: products of all operands, summed over the labels that the result of the equation does not have."""
    return cast(V, apply(EINSUM, operands, equation=equation)[0])


def linear(x: V, weight: Operand, bias: Operand | None = None) -> V:
    """x @ weight.T + bias; `x` is (..., K), `weight` (N, K), `bias` (N,)."""
    shape = x.spec.shape
    if len(shape) == 2:
        return gemm(x, weight, bias, trans_b=True)
    rows = gemm(reshape(x, (math.prod(shape[:-1]), shape[-1])), weight, bias, trans_b=True)
    return reshape(rows, (*shape[:-1], rows.spec.shape[1]))
