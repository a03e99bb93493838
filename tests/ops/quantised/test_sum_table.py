"""Quantised sums, means and look-up tables, against the same in float32 of numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.elementwise.program import Step
from ops.quantised.sum import QUANTISED_ADD, QUANTISED_MEAN
from ops.quantised.table import LOOK_UP, every_value
from ops.schema.schema import evaluate
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, run, sign
from tests.helpers.ops.sample_arrays import full_range

TYPES = st.sampled_from(["uint8", "int8"])
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


def held(real: Array, zero: int, to: str, attrs: dict[str, Any]) -> Array:
    ends = np.iinfo(to)
    low, high = max(attrs.get("low", ends.min), ends.min), min(attrs.get("high", ends.max), ends.max)
    with np.errstate(all="ignore"):
        moved = np.rint(real) + np.float32(zero)
        return np.asarray(np.fmin(np.fmax(moved, np.float32(low)), np.float32(high))).astype(to)


def shifted(array: Array, zero: int) -> Array:
    return array.astype(np.float32) - np.float32(zero)


def grid(rng: np.random.Generator, to: str) -> dict[str, Any]:
    attrs = {"y_zero": int(full_range(rng, (), to)), "to": to}
    if rng.random() < 0.5:
        low, high = sorted(full_range(rng, (2,), to).tolist())
        attrs |= {"low": low, "high": high}
    return attrs


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.lists(st.booleans(), min_size=4, max_size=4), TYPES, TYPES, TYPES, st.integers(0, 99))
def test_quantised_sum_equals_numpy(shape: Any, thin: list[bool], left: str, right: str, to: str, seed: int) -> None:  # noqa: PLR0917
    rng = np.random.default_rng(seed)
    other = tuple(1 if t else n for n, t in zip(shape, thin, strict=False))
    a, b = full_range(rng, shape, left), full_range(rng, other, right)
    factors = [float(np.float32(f)) for f in rng.random(2) * 3]
    if seed % 9 == 0:
        factors[0] = float(rng.choice([np.nan, np.inf, -np.inf]))
    zeros = int(full_range(rng, (), left)), int(full_range(rng, (), right))
    attrs = {"a_zero": zeros[0], "b_zero": zeros[1], "a_factor": factors[0], "b_factor": factors[1], **grid(rng, to)}
    with np.errstate(all="ignore"):
        real = shifted(a, zeros[0]) * np.float32(factors[0]) + shifted(b, zeros[1]) * np.float32(factors[1])
    check_kernels(QUANTISED_ADD, [a, b], [held(real, attrs["y_zero"], to, attrs)], **attrs)


@settings(max_examples=30, deadline=None)
@given(SHAPES.filter(len), TYPES, TYPES, st.integers(0, 99))
def test_quantised_mean_equals_numpy(shape: Any, dtype: str, to: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = full_range(rng, shape, dtype)
    axes = tuple(int(a) for a in np.flatnonzero(rng.random(len(shape)) < 0.5)) or (0,)
    zero, factor = int(full_range(rng, (), dtype)), float(np.float32(rng.random() / 4))
    attrs = {"axes": axes, "x_zero": zero, "factor": factor, **grid(rng, to)}
    sums = (x.astype(np.int32) - zero).sum(axes, dtype=np.int32, keepdims=True).astype(np.float32)
    check_kernels(QUANTISED_MEAN, [x], [held(sums * np.float32(factor), attrs["y_zero"], to, attrs)], **attrs)


@settings(max_examples=30, deadline=None)
@given(SHAPES, TYPES, TYPES, st.integers(0, 99))
def test_quantised_table_equals_numpy(shape: Any, dtype: str, to: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, table = full_range(rng, shape, dtype), full_range(rng, (256,), to)
    wanted = np.asarray(table[x.view(np.uint8)])
    check_kernels(LOOK_UP, [x], [wanted], table=table.tolist(), to=to)


@pytest.mark.parametrize("shape", [(1, 1), (1,), (), (2, 3)])
def test_quantised_tables_are_steps_of_an_elementwise_chain(shape: tuple[int, ...]) -> None:
    table = tuple(range(255, -1, -1))
    steps = tuple(Step(LOOK_UP, {"table": table, "to": np.dtype("uint8")}, (i,)) for i in range(2))
    x = np.full(shape, 7, np.uint8)
    np.testing.assert_array_equal(evaluate(FUSED_ELEMENTWISE, x, program=steps)[0], x)


@settings(max_examples=20, deadline=None)
@given(SHAPES.filter(lambda s: len(s) > 1), st.integers(0, 9), st.integers(1, 3), st.integers(0, 99))
def test_quantised_tables_of_wide_pixels_equal_numpy(shape: Any, extra: int, parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, table = full_range(rng, shape, "uint8"), full_range(rng, (256,), "int8")
    signature = sign(LOOK_UP, [x], {"table": table.tolist(), "to": "int8"})
    (got,) = run_native(LOOK_UP.kernels[0], signature, [placed(x, extra)], parts, extra)
    np.testing.assert_array_equal(got, table[x])


@settings(max_examples=20, deadline=None)
@given(SHAPES.filter(lambda s: len(s) > 1), st.integers(0, 9), st.integers(1, 3), TYPES, st.integers(0, 99))
def test_quantised_sums_of_wide_pixels_equal_numpy(shape: Any, extra: int, parts: int, right: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [full_range(rng, shape, "uint8"), full_range(rng, shape, right)]
    attrs = {"a_zero": 3, "a_factor": 0.75, "b_zero": -5, "b_factor": 1.25, **grid(rng, "uint8")}
    signature = sign(QUANTISED_ADD, arrays, attrs)
    native, plain = QUANTISED_ADD.kernels
    if native.supports(signature):
        (wanted,) = run(plain, signature, arrays)
        inputs = [placed(a, extra + i) for i, a in enumerate(arrays)]
        (got,) = run_native(native, signature, inputs, parts, extra)
        np.testing.assert_array_equal(got, wanted)
        (over,) = run_native(native, signature, inputs, parts, extra, over=0)
        np.testing.assert_array_equal(over, wanted)


def test_quantised_values_of_a_table_are_in_order_of_their_bytes() -> None:
    assert every_value(np.dtype("int8"))[[0, 127, 128, 255]].tolist() == [0, 127, -128, -1]


def test_quantised_sums_and_tables_allocate_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = (full_range(rng, (1, 64, 64, 40), "uint8") for _ in range(2))
    check_no_allocation(QUANTISED_ADD, [a, b], a_factor=0.5, b_factor=0.5)
    check_no_allocation(QUANTISED_MEAN, [a], axes=(1, 2), factor=0.01)
    check_no_allocation(LOOK_UP, [a], table=range(256))


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        (LOOK_UP, {"table": range(255)}),
        (LOOK_UP, {"table": range(1, 257)}),
        (LOOK_UP, {"table": range(256), "to": "int8"}),
        (LOOK_UP, {"table": range(256), "to": "int32"}),
        (QUANTISED_MEAN, {"axes": (0,), "factor": 1.0, "to": "float32"}),
        (QUANTISED_MEAN, {"axes": (0,), "factor": 1.0, "y_zero": -1}),
        (QUANTISED_MEAN, {"axes": (0,), "factor": 1.0, "low": 9, "high": 8}),
    ],
)
def test_quantised_sums_and_tables_refuse_operands_that_do_not_fit(schema: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(OpError):
        evaluate(schema, np.zeros(3, np.uint8), **wrong)
