import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.elementwise.binary import ADD, BIT_SHIFT, BITWISE_AND, BITWISE_OR, BITWISE_XOR, DIV, MOD, MUL, OPS, SUB
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites

SHAPES = [
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((3, 1), (1, 4)),
    ((), (3, 4)),
    ((2, 3, 4), (3, 1)),
    ((0, 4), (1, 4)),
    ((), ()),
]
ints = st.integers(-128, 127)


def ramp(shape: tuple[int, ...], dtype: str, start: int = 1) -> Array:
    """Returns small numbers that differ."""
    return (np.arange(math.prod(shape)).reshape(shape) + start).astype(dtype)


def elementwise(function: object, a: Array, b: Array) -> Array:
    """Applies a Python function to each pair of broadcast elements."""
    pairs = np.broadcast(a, b)
    values = [function(x.item(), y.item()) for x, y in pairs]  # type: ignore[operator]
    return np.array(values, a.dtype).reshape(pairs.shape)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_arithmetic_broadcasts(left: tuple[int, ...], right: tuple[int, ...], dtype: str) -> None:
    a, b = ramp(left, dtype, start=30), ramp(right, dtype)
    check_kernels(ADD, [a, b], [elementwise(lambda x, y: x + y, a, b)])
    check_kernels(SUB, [a, b], [elementwise(lambda x, y: x - y, a, b)])
    small = a // np.asarray(20, dtype)
    check_kernels(MUL, [small, b], [elementwise(lambda x, y: x * y, small, b)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_division_of_floats(dtype: str) -> None:
    a, b = ramp((3, 4), dtype), ramp((4,), dtype)
    check_kernels(DIV, [a, b], [elementwise(lambda x, y: x / y, a, b)])


@given(a=ints, b=ints.filter(bool))
def test_integers_are_divided_toward_zero(a: int, b: int) -> None:
    for dtype in (np.int16, np.int64):
        (y,) = evaluate(DIV, np.array([[a]], dtype), np.array([b], dtype))
        assert y.tolist() == [[int(a / b)]]


def test_integer_division_overwrites_either_operand() -> None:
    a, b = np.array([[-7, 7], [-8, 9]], np.int32), np.array([[2, -2], [3, 3]], np.int32)
    check_kernels(DIV, [a, b], [np.array([[-3, -3], [-2, 3]], np.int32)])
    assert check_overwrites(DIV, [a, b]) == 2
    unsigned = np.array([[200, 7]], np.uint8)
    check_kernels(DIV, [unsigned, unsigned // np.uint8(3)], [np.array([[3, 3]], np.uint8)])


def test_division_of_integers_by_zero_gives_zero() -> None:
    with np.errstate(all="ignore"):
        for dtype in (np.int8, np.uint8):
            (y,) = evaluate(DIV, np.array([5], dtype), np.array([0], dtype))
            assert y.tolist() == [0]


@given(a=ints, b=ints.filter(bool))
def test_mod_has_the_sign_of_the_divisor_and_fmod_that_of_the_dividend(a: int, b: int) -> None:
    for dtype in (np.int32, np.float32):
        operands = np.array([a], dtype), np.array([b], dtype)
        assert evaluate(MOD, *operands)[0].tolist() == [a % b]
        assert evaluate(MOD, *operands, fmod=1)[0].tolist() == [math.fmod(a, b)]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_are_shifted_out_in_both_directions(dtype: str) -> None:
    a, b = np.array([[1, 200, 255]], dtype), np.array([[3, 1, 0]], dtype)
    mask = np.iinfo(dtype).max
    left = elementwise(lambda x, y: (x << y) & mask, a, b)
    check_kernels(BIT_SHIFT, [a, b], [left], direction="LEFT")
    check_kernels(BIT_SHIFT, [a, b], [elementwise(lambda x, y: x >> y, a, b)], direction="RIGHT")
    signed = np.array([[-9, 64]], np.int8), np.array([1], np.int8)
    check_kernels(BIT_SHIFT, signed, [np.array([[-18, -128]], np.int8)], direction="LEFT")
    check_kernels(BIT_SHIFT, signed, [np.array([[-5, 32]], np.int8)], direction="RIGHT")
    with pytest.raises(AttributeValueError, match="UP"):
        evaluate(BIT_SHIFT, a, b, direction="UP")


@pytest.mark.parametrize("dtype", ["int8", "uint64"])
def test_bitwise_operators_work_on_each_bit(dtype: str) -> None:
    a, b = np.array([[12, 10], [1, 127]], dtype), np.array([[10, 3]], dtype)
    check_kernels(BITWISE_AND, [a, b], [elementwise(lambda x, y: x & y, a, b)])
    check_kernels(BITWISE_OR, [a, b], [elementwise(lambda x, y: x | y, a, b)])
    check_kernels(BITWISE_XOR, [a, b], [elementwise(lambda x, y: x ^ y, a, b)])


def test_arithmetic_overwrites_only_inputs_that_are_like_the_output() -> None:
    wide, row = np.ones((3, 4), np.float32), np.ones((1, 4), np.float32)
    assert check_overwrites(ADD, [wide, row]) == 1
    assert check_overwrites(ADD, [row, wide]) == 1
    assert check_overwrites(ADD, [wide, wide]) == 2
    assert check_overwrites(ADD, [row, np.ones((3, 1), np.float32)]) == 0


def test_arithmetic_refuses_operands_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"add.*\(2,\), \(3,\)"):
        evaluate(ADD, np.zeros(2), np.zeros(3))
    with pytest.raises(DtypeError, match="float64, int64"):
        evaluate(MUL, np.zeros(2), np.zeros(2, np.int64))
    with pytest.raises(DtypeError, match="bit_shift"):
        evaluate(BIT_SHIFT, np.zeros(2), np.zeros(2), direction="LEFT")


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
@pytest.mark.parametrize("schema", OPS, ids=lambda s: s.name)
def test_arithmetic_kernels_allocate_nothing(schema: OpSchema, dtype: str) -> None:
    attrs: dict[str, Any] = {"direction": "LEFT"} if schema is BIT_SHIFT else {}
    takes_ints_only = schema in (BIT_SHIFT, BITWISE_AND, BITWISE_OR, BITWISE_XOR)
    if takes_ints_only:
        dtype = "uint32"
    x = np.random.default_rng(0).integers(1, 9, (300, 200)).astype(dtype)
    for operands in ([x, x], [x, x[:1]], [x[:, :1], x.T[:, :1].T], [x[:, ::-1], x]):
        check_no_allocation(schema, operands, **attrs)
