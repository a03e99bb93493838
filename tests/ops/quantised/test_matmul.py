"""Products of bytes, against exact sums in int64 and against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.quantised.matmul import MATMUL_INTEGER, QLINEAR_MATMUL
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results
from tests.helpers.ops.sample_arrays import exact_factors, full_range

Shape = tuple[int, ...]


def row(a: Array, parameter: Array) -> Array:
    """Returns the parameter of a so that it broadcasts: a vector has one number for each row."""
    return parameter[:, None] if parameter.ndim == 1 and a.ndim > 1 else parameter


def shaped(a: Array, b: Array, matrices: Array) -> Array:
    """Returns matrices without the rows and columns that were added to vectors."""
    return matrices.reshape(np.matmul(np.ones(a.shape), np.ones(b.shape)).shape)


def exact(a: Array, b: Array, a_zero: Array, b_zero: Array) -> Array:
    """Computes the sums as matrices in int64."""
    left, right = a.astype(np.int64) - row(a, a_zero), b.astype(np.int64)
    right = (right[:, None] if b.ndim == 1 else right) - b_zero
    return np.asarray((left[None] if a.ndim == 1 else left) @ right)


@st.composite
def factors(draw: Any) -> tuple[Shape, Shape]:
    m, k, n = (draw(st.integers(0, 4)) for _ in range(3))
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    kinds = [((*batch, m, k), (k, n)), ((m, k), (*batch, k, n)), ((*batch, m, k), (*batch, k, n))]
    kinds += [((k,), (*batch, k, n)), ((*batch, m, k), (k,)), ((k,), (k,))]
    return draw(st.sampled_from(kinds))  # type: ignore[no-any-return]


BYTE = st.sampled_from(["uint8", "int8"])


def parameters(draw: Any, a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """Draws the shapes of the parameters of a and of b: one number, a vector, or an axis of length one."""
    rows = [(), (1,)] + ([(a[-2],), (*a[:-1], 1)] if len(a) > 1 else [])
    columns = [(), (1,)] + ([(b[-1],), (*b[:-2], 1, b[-1])] if len(b) > 1 else [])
    return draw(st.sampled_from(rows)), draw(st.sampled_from(columns))


@settings(max_examples=60)
@given(factors(), st.tuples(BYTE, BYTE), st.integers(0, 2), st.integers(0, 99), st.data())
def test_products_of_bytes_are_exact(
    shapes: tuple[Shape, Shape], dtypes: tuple[str, str], zeros: int, seed: int, data: st.DataObject
) -> None:
    (left, right), rng = dtypes, np.random.default_rng(seed)
    a, b = full_range(rng, shapes[0], left), full_range(rng, shapes[1], right)
    rows, columns = parameters(data.draw, *shapes)
    given_zeros = [full_range(rng, rows, left), full_range(rng, columns, right)][:zeros]
    sums = exact(a, b, *[*given_zeros, np.zeros((), "i8"), np.zeros((), "i8")][:2])
    check_kernels(MATMUL_INTEGER, [a, b, *given_zeros], [shaped(a, b, sums).astype(np.int32)])


@settings(max_examples=40)
@given(factors(), st.tuples(BYTE, BYTE, BYTE), st.integers(0, 99), st.data())
def test_quantised_products_are_scaled_and_rounded(
    shapes: tuple[Shape, Shape], dtypes: tuple[str, str, str], seed: int, data: st.DataObject
) -> None:
    (left, right, out), rng = dtypes, np.random.default_rng(seed)
    a, b = full_range(rng, shapes[0], left), full_range(rng, shapes[1], right)
    rows, columns = parameters(data.draw, *shapes)
    a_zero, b_zero, y_zero = full_range(rng, rows, left), full_range(rng, columns, right), full_range(rng, (), out)
    # Powers of two make every product exact, so that halves are met and must go to even.
    a_scale, b_scale = (np.exp2(rng.integers(-3, 0, s)).astype(np.float32) for s in (rows, columns))
    y_scale = np.asarray(64, np.float32)
    real = exact(a, b, a_zero, b_zero) * row(a, a_scale).astype(np.float64) * b_scale / 64
    ends = np.iinfo(out)
    wanted = shaped(a, b, np.clip(np.rint(real) + int(y_zero), ends.min, ends.max).astype(out))
    check_kernels(QLINEAR_MATMUL, [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero], [wanted])


@pytest.mark.parametrize(("m", "k", "n"), [(3, 258, 5), (300, 259, 520), (1, 1000, 1030), (257, 2000, 3)])
def test_long_sums_of_the_largest_products_stay_exact(m: int, k: int, n: int) -> None:
    zero, top = np.zeros((), np.uint8), np.asarray(255, np.uint8)
    a, b = np.full((m, k), 255, np.uint8), np.full((k, n), 255, np.uint8)
    b[::3] = 254
    check_results(MATMUL_INTEGER, [a, b, zero, zero], [exact(a, b, zero, zero).astype(np.int32)])
    check_results(MATMUL_INTEGER, [a, b, zero, top], [exact(a, b, zero, top).astype(np.int32)])


def test_sums_beyond_32_bits_wrap_as_int32_does() -> None:
    a, b = np.full((1, 40000), 255, np.uint8), np.full((40000, 1), 255, np.uint8)
    check_results(MATMUL_INTEGER, [a, b], [np.asarray([[40000 * 255 * 255 - 2**32]], np.int32)])


@pytest.mark.parametrize(("left", "right"), [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
@pytest.mark.parametrize("by_column", [False, True])
def test_large_quantised_matmul_equals_onnxruntime(left: str, right: str, by_column: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = full_range(rng, (2, 70, 600), left), exact_factors(rng, (600, 90), right)
    shape: Shape = (90,) if by_column else ()
    a_zero, b_zero, y_zero = full_range(rng, (), left), full_range(rng, shape, right), full_range(rng, (), left)
    a_scale, y_scale = np.asarray(0.02, np.float32), np.asarray(1.7, np.float32)
    b_scale = rng.uniform(0.01, 0.03, shape).astype(np.float32)
    if left == "uint8":
        operands: list[Array] = [a, b, a_zero, b_zero]
        check_results(MATMUL_INTEGER, operands, onnxruntime_node("MatMulInteger", operands))
    operands = [a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero]
    check_results(QLINEAR_MATMUL, operands, onnxruntime_node("QLinearMatMul", operands))


def test_quantised_matmul_allocates_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = full_range(rng, (2, 300, 600), "uint8"), full_range(rng, (600, 700), "int8")
    a_zero, b_zero = full_range(rng, (2, 300, 1), "uint8"), full_range(rng, (700,), "int8")
    check_no_allocation(MATMUL_INTEGER, [a, b, a_zero, b_zero])
    check_no_allocation(MATMUL_INTEGER, [a, b])
    a_scale, b_scale = np.full((2, 300, 1), 0.1, np.float32), np.full(700, 0.1, np.float32)
    check_no_allocation(QLINEAR_MATMUL, [a, a_scale, a_zero, b, b_scale, b_zero, np.ones(300, "f4"), a_zero[0, :, 0]])


ONE, ZERO = np.ones((), np.float32), np.zeros((), np.uint8)
BYTES = np.ones((2, 3), np.uint8)


@pytest.mark.parametrize(
    ("schema", "operands", "message"),
    [
        (MATMUL_INTEGER, [BYTES, BYTES], r"3 columns of \(2, 3\) against 2 rows"),
        (MATMUL_INTEGER, [BYTES, BYTES.astype("i4").T], "takes int8 and uint8, not uint8 and int32"),
        (MATMUL_INTEGER, [ZERO, BYTES], "vectors and matrices"),
        (MATMUL_INTEGER, [BYTES, BYTES.T, np.zeros(3, "u1")], "3 numbers; it must have 1 or 2"),
        (MATMUL_INTEGER, [BYTES, BYTES.T, np.zeros((2, 3), "u1")], "does not broadcast"),
        (MATMUL_INTEGER, [BYTES, BYTES.T, np.zeros(2, "i1")], "a zero point of int8 for uint8"),
        (
            QLINEAR_MATMUL,
            [BYTES, ONE, np.zeros(3, "u1"), BYTES.T, ONE, ZERO, ONE, ZERO],
            "3 numbers; it must have 1 or 2",
        ),
        (QLINEAR_MATMUL, [BYTES, ONE, ZERO, BYTES.T, ONE, ZERO.astype("i1"), ONE, ZERO], "zero points of uint8 and"),
        (QLINEAR_MATMUL, [BYTES, ONE, ZERO, BYTES.T, ONE, ZERO, ONE, ZERO.astype("i4")], "must be one of int8, uint8"),
        (QLINEAR_MATMUL, [BYTES, ONE, ZERO, BYTES.T, ONE.astype("f8"), ZERO, ONE, ZERO], "a scale must be"),
    ],
)
def test_quantised_matmul_refuses_operands_that_do_not_fit(
    schema: OpSchema, operands: list[Array], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, *operands)
