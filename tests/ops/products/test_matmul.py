"""Matrix products against einsum in float64 or, for integers, against exact sums."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.products.fused import FUSED_MATMUL
from ops.products.gemm import GEMM
from ops.products.matmul import MATMUL
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_strides, sign

TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    if dtype in TOLERANCE:
        return random.uniform(0.5, 1.5, shape).astype(dtype)
    return random.integers(0, 9, shape).astype(dtype)


def product(a: Array, b: Array) -> Array:
    """Sums rows times columns by hand."""
    wide: Any = np.float64 if a.dtype.kind == "f" else np.int64
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    terms = left[..., :, :, None].astype(wide) * right[..., None, :, :].astype(wide)
    summed = terms.sum(axis=-2)
    summed = summed[..., 0] if b.ndim == 1 else summed
    summed = summed[..., 0, :] if a.ndim == 1 and b.ndim > 1 else summed[..., 0] if a.ndim == 1 else summed
    return np.asarray(summed).astype(a.dtype)


SIZES = st.integers(0, 4)


@given(SIZES, SIZES, SIZES, st.sampled_from(["float16", "float32", "float64", "int8", "uint32", "int64"]))
def test_matmul_of_matrices(m: int, k: int, n: int, dtype: str) -> None:
    a, b = drawn((m, k), dtype, 1), drawn((k, n), dtype, 2)
    check_kernels(MATMUL, [a, b], [product(a, b)], rtol=TOLERANCE.get(dtype, 0))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 2)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((0, 2, 3), (3, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_batches_broadcast_and_vectors_are_rows_or_columns(
    left: tuple[int, ...], right: tuple[int, ...], dtype: str
) -> None:
    a, b = drawn(left, dtype, 1), drawn(right, dtype, 2)
    wanted = product(a, b)
    assert wanted.shape == np.matmul(np.ones(left), np.ones(right)).shape
    check_kernels(MATMUL, [a, b], [wanted], rtol=TOLERANCE.get(dtype, 0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_matmul_of_heads_and_transposes_allocates_nothing(dtype: str) -> None:
    heads = drawn((2, 128, 12, 64), dtype).transpose(0, 2, 1, 3)
    keys = drawn((2, 128, 12, 64), dtype).transpose(0, 2, 3, 1)
    check_no_allocation(MATMUL, [heads, keys])
    check_no_allocation(MATMUL, [drawn((2, 12, 128, 128), dtype), np.ascontiguousarray(heads)])
    check_no_allocation(MATMUL, [drawn((16, 128), dtype), drawn((2048, 128), dtype).T])
    check_no_allocation(MATMUL, [drawn((1024,), dtype), drawn((1024, 512), dtype)])


def test_matmul_refuses_operands_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"3 columns of \(2, 3\) against 2 rows"):
        evaluate(MATMUL, np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ShapeError, match="vectors and matrices"):
        evaluate(MATMUL, np.ones(()), np.ones(3))
    with pytest.raises(ShapeError, match="do not broadcast"):
        evaluate(MATMUL, np.ones((2, 1, 3)), np.ones((4, 3, 1)).repeat(2, 0).reshape(8, 3, 1))
    with pytest.raises(DtypeError, match="one element type"):
        evaluate(MATMUL, np.ones((2, 3)), np.ones((3, 2), np.float32))
    with pytest.raises(DtypeError, match="not bool"):
        evaluate(MATMUL, np.ones((2, 2), bool), np.ones((2, 2), bool))


def test_the_cost_of_matmul_counts_multiplications_and_additions() -> None:
    signature = sign(MATMUL, [np.ones((5, 2, 3)), np.ones((3, 4))], {})
    assert MATMUL.cost(signature).flops == 2 * 5 * 2 * 3 * 4


@pytest.mark.parametrize(
    ("schema", "flips"), [(MATMUL, ()), (GEMM, ("trans_a", "trans_b")), (FUSED_MATMUL, ("transpose_b",))]
)
@given(st.data())
def test_bits_of_vector_products_do_not_depend_on_gaps_between_rows(
    schema: OpSchema, flips: tuple[str, ...], data: st.DataObject
) -> None:
    lengths, flip = st.integers(1, 70), {name: data.draw(st.booleans()) for name in flips}
    m, k, n = data.draw(st.permutations([1, data.draw(lengths), data.draw(lengths)]))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    a, b = (
        ((k, m) if flip.get("trans_a") else (m, k)),
        ((n, k) if True in (flip.get("trans_b"), flip.get("transpose_b")) else (k, n)),
    )
    check_strides(schema, [drawn(a, dtype, 1), drawn(b, dtype, 2)], rtol=TOLERANCE[dtype], **flip)
