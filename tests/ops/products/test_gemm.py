"""General matrix products against the formula in float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.products.gemm import GEMM
from ops.schema.schema import evaluate
from ops.tensor.errors import AttributeValueError, DtypeError, OpError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_no_allocation, check_results, check_strides

TOLERANCE = {"float16": 2e-3, "float32": 1e-5}
SIZES = st.integers(0, 4)


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    return np.random.default_rng(seed).integers(1, 5, shape).astype(dtype)


def formula(operands: list[Array], *, alpha: float, beta: float, trans_a: bool, trans_b: bool) -> Array:
    a, b, *c = (o.astype(np.float64) for o in operands)
    y = alpha * np.einsum("ki,kj->ij" if trans_a else "ik,kj->ij", a, b.T if trans_b else b)
    return np.asarray(y + beta * c[0] if c else y).astype(operands[0].dtype)


@given(
    st.tuples(SIZES, SIZES, SIZES),
    st.sampled_from(["float16", "float32", "int32", "uint8"]),
    st.sampled_from(["none", "()", "(n)", "(1,n)", "(m,1)", "(m,n)"]),
    st.fixed_dictionaries(
        {
            "alpha": st.sampled_from([1.0, 0.5, 2.0]),
            "beta": st.sampled_from([1.0, 0.0, 3.0]),
            "trans_a": st.booleans(),
            "trans_b": st.booleans(),
        }
    ),
)
def test_gemm_follows_its_formula(sizes: tuple[int, int, int], dtype: str, c: str, attrs: dict[str, Any]) -> None:
    m, k, n = sizes
    if dtype not in TOLERANCE:
        attrs = {**attrs, "alpha": 2.0}
    shapes = {"()": (), "(n)": (n,), "(1,n)": (1, n), "(m,1)": (m, 1), "(m,n)": (m, n)}
    operands = [
        drawn((k, m) if attrs["trans_a"] else (m, k), dtype, 1),
        drawn((n, k) if attrs["trans_b"] else (k, n), dtype, 2),
        *([drawn(shapes[c], dtype, 3)] if c in shapes else []),
    ]
    check_results(GEMM, operands, [formula(operands, **attrs)], rtol=TOLERANCE.get(dtype, 0), **attrs)
    if c != "()":
        check_strides(GEMM, operands, rtol=TOLERANCE.get(dtype, 0), **attrs)


@pytest.mark.parametrize("shape", [(600,), (1, 600), (300, 1), (300, 600), ()])
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_a_product_longer_than_a_block_gets_all_of_c(shape: tuple[int, ...], beta: float) -> None:
    operands = [drawn((300, 3), "float32", 1), drawn((600, 3), "float32", 2), drawn(shape, "float32", 3)]
    wanted = formula(operands, alpha=1, beta=beta, trans_a=False, trans_b=True)
    check_results(GEMM, operands, [wanted], rtol=1e-5, beta=beta, trans_b=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("shape", [(512,), (64, 1), (64, 512)])
@pytest.mark.parametrize("beta", [1, 2])
def test_gemm_allocates_nothing(dtype: str, shape: tuple[int, ...], beta: float) -> None:
    operands = [drawn((64, 256), dtype, 1), drawn((512, 256), dtype, 2), drawn(shape, dtype, 3)]
    check_no_allocation(GEMM, operands, alpha=3, beta=beta, trans_b=True)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 3), (2, 3)], "3 columns against 2 rows"),
        ([(2, 3), (3,)], "takes matrices"),
        ([(2, 3), (3, 4), (3, 4)], "do not broadcast"),
        ([(2, 3), (3, 4), (2, 2, 4)], "does not broadcast to"),
        ([(1, 3), (3, 4), (2, 4)], "does not broadcast to"),
    ],
)
def test_gemm_refuses_shapes_that_do_not_fit(shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        evaluate(GEMM, *(np.ones(s) for s in shapes))


def test_gemm_refuses_element_types_that_do_not_fit() -> None:
    ones: list[Array] = [np.ones((2, 2), "float32"), np.ones((2, 2), "float32"), np.ones(2)]
    with pytest.raises(DtypeError, match="c is float64"):
        evaluate(GEMM, *ones)
    with pytest.raises(OpError, match="one element type"):
        evaluate(GEMM, ones[0], ones[2].reshape(2, 1))


def test_gemm_of_integers_takes_whole_factors_only() -> None:
    ones = np.ones((2, 2), "int32")
    with pytest.raises(AttributeValueError, match="must be whole"):
        evaluate(GEMM, ones, ones, alpha=0.5)
