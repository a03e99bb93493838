from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.elementwise.power import POW
from ops.schema.schema import Binding, evaluate
from ops.tensor.errors import DtypeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, garbage, same, sign

BASE = np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 1.5]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_are_raised_to_broadcast_powers(dtype: str) -> None:
    exponent = np.array([2.0, -1.0, 0.5], dtype)
    wanted = np.array([[b**e for b, e in zip(row, (2.0, -1.0, 0.5), strict=True)] for row in BASE.tolist()], dtype)
    check_kernels(POW, [BASE.astype(dtype), exponent], [wanted], rtol=4 * float(np.finfo(dtype).eps))


@given(base=st.integers(-6, 6), exponent=st.integers(0, 5))
def test_integers_are_raised_exactly(base: int, exponent: int) -> None:
    for left, right in ((np.int64, np.int64), (np.int16, np.int64), (np.int32, np.uint8)):
        (y,) = evaluate(POW, np.array([[base]], left), np.array([exponent], right))
        assert y.dtype == left
        assert y.tolist() == [[base**exponent]]


def test_integers_to_negative_powers_are_truncated() -> None:
    base = np.array([[1, -1, -1, 2, -3]], np.int32)
    exponent = np.array([[-3, -3, -2, -1, -2]], np.int32)
    check_kernels(POW, [base, exponent], [np.array([[1, -1, 1, 0, 0]], np.int32)])
    assert check_overwrites(POW, [base, exponent]) == 2


@pytest.mark.parametrize(
    ("base", "exponent", "wanted"),
    [
        (np.array([[4, 9]], np.int32), np.array([0.5], np.float32), np.array([[2, 3]], np.int32)),
        (np.array([[1.5, 2.0]], np.float32), np.array([2], np.int64), np.array([[2.25, 4.0]], np.float32)),
        (np.array([[1.5, 2.0]], np.float16), np.array([2.0], np.float32), np.array([[2.25, 4.0]], np.float16)),
    ],
)
def test_power_has_the_dtype_of_the_base(base: Array, exponent: Array, wanted: Array) -> None:
    check_kernels(POW, [base, exponent], [wanted])


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, -1.0, 3.0, 0.0])
def test_a_constant_exponent_gives_the_same_as_an_unknown_one(exponent: float) -> None:
    base, power = BASE.astype(np.float32), np.array([exponent], np.float32)
    signature = sign(POW, [base, power], {}, {1})
    kernel = POW.kernel(signature)
    y = garbage(signature.y)
    binding: Any = Binding(signature, (base, power), (y,), (), kernel.pack(signature, {1: power}))
    kernel.bind(binding)()
    same(y, evaluate(POW, base, power)[0], rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_power_takes_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    for left, right in ((np.float32, np.float32), (np.int32, np.int32), (np.float32, np.int32)):
        (y,) = evaluate(POW, np.full(shape, 3, left), np.full(shape, 2, right))
        same(y, np.full(shape, 9, left))


def test_power_of_many_blocks_equals_one_formula() -> None:
    base = np.random.default_rng(0).integers(-3, 4, (50, 1000)).astype(np.int64)
    exponent = np.arange(1000) % 5
    (y,) = evaluate(POW, base, exponent)
    same(y, base**exponent)


@pytest.mark.parametrize(("left", "right"), [("float32", "float32"), ("int32", "int32"), ("float32", "int64")])
def test_power_allocates_nothing(left: str, right: str) -> None:
    base = np.random.default_rng(0).integers(1, 4, (300, 200)).astype(left)
    check_no_allocation(POW, [base, np.array(2, right)])
    check_no_allocation(POW, [base.T, base.T.astype(right)])


def test_bools_have_no_powers() -> None:
    with pytest.raises(DtypeError, match="bool"):
        evaluate(POW, np.array([True]), np.array([2]))
