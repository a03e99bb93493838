"""Casts, against numpy's, and for types of 8 bits and fewer against a search among all of their numbers."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.elementwise.cast import CAST
from ops.schema.schema import evaluate
from ops.tensor.errors import AttributeValueError
from ops.tensor.layout import Layout
from ops.tensor.spec import DTYPES, NARROW, NARROW_FLOATS, POWERS, TensorSpec
from tests.helpers.ops.kernel_checks import (
    check_kernels,
    check_no_allocation,
    check_overwrites,
    check_results,
    check_strides,
    run,
    same,
    sign,
)

NAMES = sorted(d.name for d in DTYPES)
_BOUNDS = {"bool": (0, 1), "int2": (0, 1), "uint2": (0, 1), "float4_e2m1fn": (0, 6), POWERS.name: (1, 1)}
"""Bounds of the integers from 0 to 7 that a type can hold."""


@pytest.mark.parametrize(("source", "to"), list(product(NAMES, NAMES)))
def test_small_numbers_survive_every_cast(source: str, to: str) -> None:
    least, most = _BOUNDS.get(source, (0, 7)), _BOUNDS.get(to, (0, 7))
    x = np.array([[0, 1, 7], [7, 0, 1]]).clip(max(least[0], most[0]), min(least[1], most[1]))
    check_kernels(CAST, [x.astype(source)], [x.astype(to)], to=to)


@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("to", sorted(d.name for d in NARROW_FLOATS))
def test_narrow_floats_are_the_nearest_ones(to: str, saturate: bool) -> None:
    """The oracle looks among all numbers of the type; the middle between two belongs to the one with an even code."""
    codes = np.arange(16 if to.startswith("float4") else 256, dtype=np.uint8)
    numbers = codes.view(to).astype(np.float64)
    codes, numbers = codes[numbers > 0], numbers[numbers > 0]
    codes, numbers = codes[np.isfinite(numbers)], numbers[np.isfinite(numbers)]
    middles = (np.append(0, numbers[:-1]) + numbers) / 2
    beyond = 2 * numbers[-1] - middles[-1]
    exact = np.concatenate([numbers, middles, [beyond, np.nextafter(beyond, 0), 1e30]]).astype(np.float32)
    x = np.concatenate([exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))])
    grid = np.append(0, numbers)
    below = (np.searchsorted(grid, x, "right") - 1).clip(0, len(grid) - 2)
    low, high = grid[below], grid[below + 1]
    up = (x - low > high - x) | ((x - low == high - x) & (np.append(0, codes)[below] % 2 == 1))
    wanted = np.where(up, high, low)
    lost = (x > beyond) | ((x == beyond) & (codes[-1] % 2 == 1))
    if not saturate and not to.startswith("float4"):
        wanted[lost] = np.inf if to == "float8_e5m2" else np.nan
    x, wanted = np.concatenate([x, -x, [np.nan]]), np.concatenate([wanted, -wanted, [np.nan]])
    if to.startswith("float4"):
        x, wanted = x[:-1], wanted[:-1]  # it has no NaN
    signature = sign(CAST, [x.astype(np.float32)], {"to": to, "saturate": saturate})
    (y,) = run(CAST.kernel(signature), signature, [x.astype(np.float32)])
    same(y.astype(np.float64), wanted)


@given(st.lists(st.floats(width=32, min_value=0), min_size=1, max_size=9), st.sampled_from(["up", "down"]))
def test_powers_of_two_are_rounded_up_or_down(numbers: list[float], way: str) -> None:
    fractions = [math.frexp(n) for n in numbers]
    powers = [e - 1 + (f > 0.5 and way == "up") if n else -127 for n, (f, e) in zip(numbers, fractions, strict=True)]
    powers = [127 if math.isinf(n) else min(max(p, -127), 127) for n, p in zip(numbers, powers, strict=True)]
    check_results(CAST, [np.asarray(numbers, "f4")], [np.exp2(powers).astype(POWERS)], to=POWERS, round_mode=way)


def test_powers_of_two_know_neither_0_nor_what_is_beyond_them() -> None:
    x = np.asarray([0, 1, 1.4, 1.6, 3e38, math.inf, math.nan], np.float32)
    nearest = np.asarray([math.nan, 1, 1, 2, math.nan, math.nan, math.nan], np.float32).astype(POWERS)
    check_results(CAST, [x], [nearest], to=POWERS, round_mode="nearest", saturate=False)
    least, most = 2.0**-127, 2.0**127
    up = np.asarray([least, 1, 2, 2, most, most, math.nan]).astype(POWERS)
    check_results(CAST, [x], [up], to=POWERS)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1), st.sampled_from(["int2", "uint2", "int4", "uint4"]))
def test_integers_lose_their_higher_bits(numbers: list[int], to: str) -> None:
    bits = int(to[-1])
    low = [n % 2**bits for n in numbers]
    wanted = low if to.startswith("u") else [n - 2**bits * (n >= 2 ** (bits - 1)) for n in low]
    check_results(CAST, [np.asarray(numbers)], [np.asarray(wanted, np.int64).astype(to)], to=to)


@given(st.lists(st.integers(0, 255), min_size=1, max_size=40), st.sampled_from(sorted(d.name for d in NARROW)))
def test_casts_of_narrow_numbers_do_not_depend_on_strides(codes: list[int], source: str) -> None:
    x = np.asarray([codes, codes], np.uint8).view(source)
    for to in ("float32", "int4", "float8_e5m2", "float4_e2m1fn", "float8_e8m0fnu"):
        check_strides(CAST, [x], to=to)
        check_overwrites(CAST, [x], to=to)


def test_cast_truncates_floats_toward_zero() -> None:
    x = np.array([-1.9, -0.5, 0.5, 1.9], np.float32)
    check_kernels(CAST, [x], [np.array([-1, 0, 0, 1], np.int32)], to="int32")


def test_cast_to_bool_makes_everything_but_zero_true() -> None:
    x = np.array([0.0, -0.0, 0.1, np.nan, np.inf], np.float32)
    check_kernels(CAST, [x], [np.array([False, False, True, True, True])], to="bool")
    check_kernels(CAST, [np.array([0, 2, 256])], [np.array([False, True, True])], to="bool")


def test_float16_overflows_to_infinity() -> None:
    with np.errstate(all="ignore"):
        (y,) = evaluate(CAST, np.array([1e6, -1e6], np.float32), to="float16")
    same(y, np.array([np.inf, -np.inf], np.float16))


@pytest.mark.parametrize(
    ("source", "to"), [("float32", "int32"), ("int64", "int32"), ("float64", "float16"), ("int64", "bool")]
)
def test_a_cast_to_elements_that_are_not_larger_overwrites_its_input(source: str, to: str) -> None:
    x = np.random.default_rng(0).integers(0, 2000, (7, 3001)).astype(source)
    assert check_overwrites(CAST, [x], to=to) == 1
    signature = CAST.sign([TensorSpec(x.shape, x.dtype)], {"to": to})
    assert CAST.kernel(signature).workspace(signature) <= 16 << 10


def test_a_cast_to_larger_elements_needs_bytes_of_its_own() -> None:
    assert check_overwrites(CAST, [np.ones(3, np.float32)], to="float64") == 0


def test_a_cast_to_the_same_dtype_is_a_view() -> None:
    spec = TensorSpec((2, 3), np.dtype("float32"))
    layout = Layout.dense(spec).transpose((1, 0))
    same_dtype = CAST.sign([spec.with_shape((3, 2))], {"to": "float32"})
    assert CAST.views(layout, same_dtype) == (layout,)
    assert CAST.views(layout, CAST.sign([spec.with_shape((3, 2))], {"to": "float16"})) == (None,)


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_cast_takes_scalars_and_empty_tensors(shape: tuple[int, ...]) -> None:
    same(evaluate(CAST, np.full(shape, 2.5), to="int8")[0], np.full(shape, 2, np.int8))
    check_overwrites(CAST, [np.full(shape, 2.5)], to="int8")


@pytest.mark.parametrize("to", ["float16", "float64", "int32", "bool", "int4", "float8_e5m2", "float8_e8m0fnu"])
def test_cast_allocates_nothing(to: str) -> None:
    x = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    check_no_allocation(CAST, [x], to=to)
    check_no_allocation(CAST, [x.T], to=to)


def test_cast_refuses_a_dtype_that_no_tensor_has() -> None:
    with pytest.raises(AttributeValueError, match="complex64"):
        evaluate(CAST, np.zeros(2), to="complex64")
