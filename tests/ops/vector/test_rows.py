"""Softmax, normalizations and reductions in compiled code equal numpy, for any layout of rows and number of parts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.norm.batch_norm import BATCH_NORM
from ops.norm.norm import GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM
from ops.reduce.softmax import LOG_SOFTMAX, SOFTMAX
from ops.registry import find
from ops.schema.backends import NUMBA, NUMPY
from ops.schema.schema import OpSchema, Signature
from ops.tensor.layout import Layout
from ops.tensor.spec import Array, Shape, spec_of
from ops.vector.rows import neighbours
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import check_overwrites, run, run_without_allocation, sign

_SHAPES: tuple[Shape, ...] = (
    *((), (1,), (5,), (3, 1), (2, 17), (4, 1, 9), (2, 5, 33), (3, 2, 2, 20), (2, 1100), (40, 3), (2, 70, 2), (1, 300)),
)
_PARTS = st.sampled_from([1, 2, 3])
REDUCTIONS = ("sum", "mean", "max", "min", "l1", "l2", "sum_square")


def _numbers(seed: int, shape: Shape, odd: float = 0.0) -> Array:
    """Returns normal numbers, some of them NaN or infinite."""
    rng = np.random.default_rng(seed)
    x = 3 * rng.standard_normal(shape)
    return np.asarray(np.where(rng.random(shape) < odd, rng.choice([np.nan, np.inf, -np.inf], shape), x), np.float32)


def _laid(x: Array, extra: int) -> Array:
    return placed(x, extra) if x.ndim else x


def _check(schema: OpSchema, arrays: list[Array], parts: int, extra: int = 0, rtol: float = 1e-5, **attrs: Any) -> None:
    """Checks against numpy's kernel; the first input and outputs of its shape have `extra` elements between pixels."""
    signature = sign(schema, arrays, attrs)
    kernel = schema.kernel(signature, (NUMBA,))
    assert kernel.backend == NUMBA
    wanted = run(schema.kernel(signature, (NUMPY,)), signature, arrays)
    laid = [_laid(arrays[0], extra if kernel.accepts(signature, 0, _wide(arrays[0], extra)) else 0), *arrays[1:]]
    if all(y.shape for y in signature.outputs) and arrays[0].ndim:
        between = extra if extra and kernel.writes(_wide(np.empty(signature.y.shape, np.float32), extra)) else 0
        outputs = run_native(kernel, signature, laid, parts, between)
    else:
        outputs = run(kernel, signature, arrays)
    for got, want in zip(outputs, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-5)


def _wide(x: Array, extra: int) -> Layout:
    return Layout.of(placed(np.empty(x.shape, x.dtype), extra) if x.ndim else x)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(_SHAPES[1:]), _PARTS, st.integers(0, 99), st.sampled_from([0, 3]))
def test_compiled_softmax_equals_numpy(data: st.DataObject, shape: Shape, parts: int, seed: int, extra: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = _numbers(seed, shape, data.draw(st.sampled_from([0.0, 0.02])))
    for schema in (SOFTMAX, LOG_SOFTMAX):
        _check(schema, [x], parts, extra, axis=axis)


@pytest.mark.parametrize("schema", [SOFTMAX, LOG_SOFTMAX])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_may_lie_over_its_input(schema: OpSchema, axis: int) -> None:
    assert check_overwrites(schema, [_numbers(0, (5, 17, 40))], axis=axis) == 1


def test_compiled_softmax_is_zero_far_below_the_largest() -> None:
    x = np.array([[0, -1e9, -np.inf, -200], [-np.inf] * 4, [np.inf, 0, 0, 0]], np.float32)
    signature = sign(SOFTMAX, [x], {})
    (y,) = run(SOFTMAX.kernel(signature, (NUMBA,)), signature, [x])
    assert y[0].tolist() == [1, 0, 0, 0]
    assert np.isnan(y[1:]).all()


@settings(max_examples=40)
@given(st.data(), st.sampled_from(_SHAPES[1:]), _PARTS, st.integers(0, 99), st.booleans())
def test_compiled_layer_and_rms_norm_equal_numpy(
    data: st.DataObject, shape: Shape, parts: int, seed: int, with_stats: bool
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    tail = shape[axis % len(shape) :]
    x, scale, bias = _numbers(seed, shape), _numbers(seed + 1, tail), _numbers(seed + 2, tail)
    _check(LAYER_NORM, [x, scale, bias], parts, axis=axis, with_stats=with_stats)
    _check(LAYER_NORM, [x, scale], parts, axis=axis, epsilon=0.1)
    _check(RMS_NORM, [x, scale], parts, axis=axis)


@settings(max_examples=30)
@given(st.sampled_from([(1, 4, 9), (2, 6, 5, 4), (3, 2, 1), (1, 8, 40, 30)]), _PARTS, st.integers(0, 99))
def test_compiled_instance_and_group_norm_equal_numpy(shape: Shape, parts: int, seed: int) -> None:
    arrays = [_numbers(seed, shape), _numbers(seed + 1, shape[1:2]), _numbers(seed + 2, shape[1:2])]
    _check(INSTANCE_NORM, arrays, parts, rtol=1e-4)
    _check(GROUP_NORM, arrays, parts, rtol=1e-4, num_groups=2)


def test_norms_may_lie_over_their_input() -> None:
    x, row, channel = _numbers(0, (3, 4, 50)), _numbers(1, (50,)), _numbers(2, (4,))
    assert check_overwrites(LAYER_NORM, [x, row, row]) == check_overwrites(RMS_NORM, [x, row]) == 1
    assert check_overwrites(INSTANCE_NORM, [x, channel, channel]) == 1
    assert check_overwrites(GROUP_NORM, [x, channel, channel], num_groups=2) == 1


@settings(max_examples=80)
@given(st.data(), st.sampled_from(_SHAPES), st.sampled_from(REDUCTIONS), _PARTS, st.integers(0, 99))
def test_compiled_reductions_equal_numpy(data: st.DataObject, shape: Shape, name: str, parts: int, seed: int) -> None:
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1))) if shape else ()
    x = _numbers(seed, shape, data.draw(st.sampled_from([0.0, 0.02])))
    extra = data.draw(st.sampled_from([0, 3]))
    with np.errstate(all="ignore"):
        _check(find(f"reduce_{name}"), [x], parts, extra, axes=tuple(axes), keepdims=data.draw(st.booleans()))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_compiled_sums_of_many_numbers_lose_little(axes: tuple[int, ...]) -> None:
    x = np.full((3000, 1000), 0.1, np.float32)
    schema = find("reduce_mean")
    signature = sign(schema, [x], {"axes": axes})
    (y,) = run(schema.kernel(signature, (NUMBA,)), signature, [x])
    np.testing.assert_allclose(y, np.float32(0.1), rtol=3e-6)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_compiled_row_kernels_leave_no_case_to_numpy(name: str) -> None:
    schema = find(f"reduce_{name}")
    signature = schema.sign([spec_of(np.ones((3, 0), np.float32))], {"axes": (1,)})
    assert schema.kernel(signature).backend == NUMPY


def test_batch_norm_with_known_statistics_is_a_program() -> None:
    x = _numbers(0, (2, 5, 7, 3))
    arrays = [x, *(_numbers(i, (5,)) for i in (1, 2, 3)), np.abs(_numbers(4, (5,)))]
    signature = sign(BATCH_NORM, arrays, {}, {1, 2, 3, 4})
    kernel = BATCH_NORM.kernel(signature)
    assert kernel.backend == NUMBA
    for parts, extra in ((1, 0), (3, 2)):
        (got,) = run_native(kernel, signature, [placed(x, extra), *arrays[1:]], parts, extra)
        (wanted,) = run(BATCH_NORM.kernel(signature, (NUMPY,)), signature, arrays)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


def test_layouts_whose_rows_have_neighbours() -> None:
    x = np.empty((4, 6, 1), np.float32)
    assert neighbours(Layout.of(x))
    assert neighbours(Layout.of(x[:, :3]))
    assert neighbours(Layout.of(np.empty((), np.float32)))
    assert not neighbours(Layout.of(x.transpose(1, 0, 2)))
    assert not neighbours(Layout.of(x[:, ::2]))


def _signed(name: str, *arrays: Array, **attrs: Any) -> tuple[OpSchema, Signature]:
    schema = find(name)
    return schema, sign(schema, arrays, attrs)


@pytest.mark.parametrize(
    ("name", "more", "attrs"),
    [("softmax", 0, {"axis": 1}), ("softmax", 0, {}), ("layer_norm", 2, {}), ("reduce_mean", 0, {"axes": (1,)})],
)
def test_compiled_row_kernels_allocate_nothing(name: str, more: int, attrs: dict[str, Any]) -> None:
    arrays = [_numbers(0, (64, 30, 64)), *[_numbers(1, (64,))] * more]
    schema, signature = _signed(name, *arrays, **attrs)
    kernel = schema.kernel(signature)
    assert (kernel.backend, kernel.workspace(signature)) == (NUMBA, 0)
    run_without_allocation(kernel, signature, arrays)
