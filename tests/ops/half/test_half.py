"""Operators on tensors stored in 16 bits: conversions to the bit, parts equal the whole, bounded scratch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ops.common.tiling import elementwise_stripes
from ops.convolution.conv import CONV
from ops.convolution.fused import FUSED_CONV
from ops.convolution.nhwc import NHWC_CONV
from ops.elementwise.binary import ADD
from ops.half import ops as single
from ops.half.convert import native_copy, plain_copy
from ops.half.ops import IN_SINGLE, Inner
from ops.norm.batch_norm import BATCH_NORM
from ops.norm.lrn import LRN
from ops.norm.norm import LAYER_NORM
from ops.pool.nhwc import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, MAX_POOL
from ops.products.matmul import MATMUL
from ops.reduce.softmax import SOFTMAX
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import AttributeValueError, OpError
from ops.tensor.spec import BFLOAT16, HALVES, Array, TensorSpec
from tests.helpers.ops.kernel_checks import garbage, kernels, run

TYPES = sorted(HALVES, key=str)
Seeds = st.integers(0, 2**32 - 1)
EDGES = (
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-7,
    -3e-8,
    6.1e-5,
    65504.0,
    65519.9,
    65520.0,
    1e30,
    -3e38,
    1e-40,
    1 + 2**-8,
)


def _places(slices: list[slice]) -> Any:
    return (*slices, ...)


def _every_float(dtype: np.dtype[Any]) -> Array:
    return np.arange(2**16, dtype=np.uint16).view(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_16_bit_number_is_converted_and_back(dtype: np.dtype[Any]) -> None:
    numbers = _every_float(dtype)
    wide = np.empty(numbers.shape, np.float32)
    native_copy(numbers, wide)()
    np.testing.assert_array_equal(wide, numbers.astype(np.float32))
    back = np.empty_like(numbers)
    native_copy(wide, back)()
    is_number = ~np.isnan(wide)
    assert back.view(np.uint16)[is_number].tobytes() == numbers.view(np.uint16)[is_number].tobytes()
    assert np.isnan(back.astype(np.float32)[~is_number]).all()


@settings(max_examples=30, deadline=None)
@given(Seeds, st.sampled_from(TYPES), st.lists(st.integers(0, 5), max_size=5), st.booleans())
@example(seed=78531568, dtype=BFLOAT16, shape=[], wide=False)  # a signalling NaN
def test_half_rounding_equals_numpy_in_any_place(seed: int, dtype: np.dtype[Any], shape: list[int], wide: bool) -> None:
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**32, shape, np.uint32).view(np.float32)
    numbers = np.where(rng.random(shape) < 0.3, rng.choice(np.array(EDGES, np.float32), shape), bits)
    axes = rng.permutation(len(shape))
    source = garbage(TensorSpec(tuple(2 * n + 1 for n in shape), numbers.dtype))[
        _places([slice(1, None, 2)] * len(shape))
    ]
    source[...] = numbers
    buffer = garbage(TensorSpec(tuple(n + 3 for n in np.array(shape, int)[axes]), dtype))
    target = buffer[_places([slice(2, 2 + n) for n in np.array(shape, int)[axes]])].transpose(np.argsort(axes))
    with np.errstate(all="ignore"):
        wanted = numbers.astype(dtype)
    native_copy(source, target)()
    is_number = ~np.isnan(numbers)
    assert target.view(np.uint16)[is_number].tolist() == wanted.view(np.uint16)[is_number].tolist()
    assert np.isnan(target.astype(np.float32)[~is_number]).all()
    if wide:
        again = garbage(TensorSpec(numbers.shape, numbers.dtype))
        native_copy(target, again)()
        np.testing.assert_array_equal(again, target.astype(np.float32))


def _case(seed: int) -> tuple[OpSchema, list[tuple[int, ...]], dict[str, Any]]:
    """Returns an operator with the shapes of its inputs, and attributes."""
    rng = np.random.default_rng(seed)
    n, c, o, h, w, k = (int(v) for v in rng.integers(1, (3, 6, 6, 30, 30, 4)))
    stride, dilation, *pads = (int(v) for v in rng.integers((1, 1, 0, 0, 0, 0), (4, 3, 3, 3, 3, 3)))
    reach = (k - 1) * dilation + 1
    h, w = h + reach, w + reach
    windows = {"strides": (stride, 1), "dilations": (dilation, dilation), "pads": tuple(pads)}
    pooled = {"strides": (stride, 1), "pads": (0, 0, 0, 0), "kernel_shape": (k, k)}
    out = ((h + pads[0] + pads[2] - reach) // stride + 1, w + pads[1] + pads[3] - reach + 1)
    cases: list[tuple[OpSchema, list[tuple[int, ...]], dict[str, Any]]] = [
        (CONV, [(n, c, h, w), (o, c, k, k), (o,)], windows),
        (FUSED_CONV, [(n, c, h, w), (o, c, k, k), (o,), (n, o, *out)], windows | {"activation": "clip", "low": 0.0}),
        (NHWC_CONV, [(n, h, w, c), (o, c, k, k), (o,), (n, *out, o)], windows),
        (MAX_POOL, [(n, c, h, w)], pooled),
        (AVERAGE_POOL, [(n, c, h, w)], pooled),
        (NHWC_MAX_POOL, [(n, h, w, c)], pooled),
        (NHWC_AVERAGE_POOL, [(n, h, w, c)], pooled),
        (MATMUL, [(n, h, c), (c, w)], {}),
        (MATMUL, [(n, o, h, c), (o, c, w)], {}),
        (SOFTMAX, [(n, h, w)], {"axis": -1}),
        (LAYER_NORM, [(n, h, w), (w,), (w,)], {}),
        (BATCH_NORM, [(n, c, h, w), (c,), (c,), (c,), (c,)], {}),
        (LRN, [(n, c, h, w)], {"size": 3}),
        (ADD, [(n, 1, h, w), (c, 1, w)], {}),
        (ADD, [(n * h * w,), ()], {}),
    ]
    return cases[int(rng.integers(len(cases)))]


@settings(max_examples=50, deadline=None)
@given(Seeds, st.sampled_from(TYPES), st.integers(1, 400), st.booleans())
def test_half_operators_in_tiles_equal_the_whole(seed: int, dtype: np.dtype[Any], most: int, fixed: bool) -> None:
    schema, shapes, attrs = _case(seed)
    rng = np.random.default_rng(seed + 1)
    arrays = [np.abs(rng.standard_normal(s)).astype(dtype) for s in shapes]
    constants = frozenset(range(1, len(arrays))) if fixed else frozenset[int]()
    inner = Inner(schema, attrs)
    wanted = evaluate(schema, *(a.astype(np.float32) for a in arrays), **attrs)[0]
    specs = [TensorSpec(a.shape, dtype) for a in arrays]
    kept, single.MOST = single.MOST, most
    try:
        signature = IN_SINGLE.sign(specs, {"operator": inner, "to": dtype}, constants)
        for kernel in kernels(IN_SINGLE, signature):
            (result,) = run(kernel, signature, arrays)
            assert result.dtype == dtype
            eps = float(2**-10 if dtype == np.float16 else 2**-7)
            np.testing.assert_allclose(result.astype(np.float32), wanted, rtol=1.1 * eps, atol=1e-5)
    finally:
        single.MOST = kept


def test_half_workspaces_are_small_beside_the_tensors() -> None:
    half = np.dtype("float16")
    specs = [TensorSpec((1, 64, 112, 112), half), TensorSpec((64, 64, 3, 3), half), TensorSpec((64,), half)]
    inner = Inner(NHWC_CONV, {"pads": (1, 1, 1, 1)})
    nhwc = [TensorSpec((1, 112, 112, 64), half), *specs[1:]]
    signature = IN_SINGLE.sign(nhwc, {"operator": inner, "to": half}, frozenset({1, 2}))
    for kernel in kernels(IN_SINGLE, signature):
        if kernel.backend == "numba":
            assert kernel.workspace(signature) < 0.75 * specs[0].nbytes


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from((-3, -2, -1, 1, 2))), max_size=4), st.sampled_from(TYPES))
def test_half_operators_read_negative_strides(axes: list[tuple[int, int]], dtype: np.dtype[Any]) -> None:
    count = int(np.prod([3 * n + 2 for n, _ in axes], dtype=int))
    source = (np.arange(count) % 2039).astype(dtype)  # a prime, below what float16 rounds
    buffer = source.reshape([3 * n + 2 for n, _ in axes])
    view = buffer[_places([slice(1, 1 + 3 * n) if step > 0 else slice(3 * n, 0, -1) for n, step in axes])]
    view = view[_places([slice(None, None, abs(step)) for _, step in axes])]
    target = garbage(TensorSpec(view.shape, np.dtype("float32")))
    native_copy(view, target)()
    np.testing.assert_array_equal(target, view.astype(np.float32))
    guarded = np.full([n + 2 for n in buffer.shape], 7, dtype)
    inner = guarded[_places([slice(1, -1)] * buffer.ndim)]
    back = inner[_places([slice(1, 1 + 3 * n) if step > 0 else slice(3 * n, 0, -1) for n, step in axes])]
    back = back[_places([slice(None, None, abs(step)) for _, step in axes])]
    wanted = guarded.copy()
    wanted_back = wanted[_places([slice(1, -1)] * buffer.ndim)]
    wanted_back = wanted_back[_places([slice(1, 1 + 3 * n) if s > 0 else slice(3 * n, 0, -1) for n, s in axes])]
    wanted_back[_places([slice(None, None, abs(step)) for _, step in axes])][...] = target.astype(dtype)
    native_copy(target, back)()
    assert guarded.tobytes() == wanted.tobytes()


def test_half_operators_keep_scalars() -> None:
    arrays = [np.array(1.5, BFLOAT16), np.array(2.0, BFLOAT16)]
    signature = IN_SINGLE.sign(
        [TensorSpec((), BFLOAT16)] * 2, {"operator": Inner(ADD, {}), "to": BFLOAT16}, frozenset({1})
    )
    for kernel in kernels(IN_SINGLE, signature):
        assert float(run(kernel, signature, arrays)[0]) == 3.5


def test_stripes_cover_the_output_once() -> None:
    for length in range(1, 40):
        signature = ADD.sign([TensorSpec((3, length), np.dtype("float32"))] * 2, {})
        for most in (1, 2, 7, 60, 10_000):
            count = np.zeros((3, length), int)
            for stripe in elementwise_stripes(signature, most):
                count[stripe.output] += 1
            assert (count == 1).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 70), st.integers(1, 9), st.integers(1, 3), st.integers(0, 12), st.integers(1, 500))
def test_stripes_of_one_kind_are_alike(rows: int, kernel: int, stride: int, pad: int, most: int) -> None:
    x, single = TensorSpec((1, 2, rows, 3), np.dtype("float32")), np.dtype("float32")
    assume(rows + 2 * pad >= kernel and pad < kernel)
    attrs = {"pads": (pad, 0, pad, 0), "strides": (stride, 1)}
    convolution = CONV.sign([x, TensorSpec((2, 2, kernel, 1), single)], attrs)
    for schema, signature in ((CONV, convolution), (ADD, ADD.sign([x, x], {}))):
        stripes = (elementwise_stripes if schema is ADD else schema.stripes)(signature, most)
        read, written = np.empty(x.shape), np.empty(signature.y.shape)
        for i, stripe in enumerate(stripes):
            alike = stripes.at(stripes.kinds[stripes.kind(i)])
            assert stripe.attrs == alike.attrs
            assert read[stripe.inputs[0]].shape == read[alike.inputs[0]].shape
            assert written[stripe.output].shape == written[alike.output].shape


def test_in_single_refuses_other_storage_types() -> None:
    x = TensorSpec((2,), BFLOAT16)
    with pytest.raises(AttributeValueError, match="stores in float16 or bfloat16, not in float32"):
        IN_SINGLE.sign([x, x], {"operator": Inner(ADD, {}), "to": np.dtype("float32")})
    with pytest.raises(AttributeValueError, match="it must be an operator with its attributes"):
        IN_SINGLE.sign([x, x], {"operator": ADD, "to": BFLOAT16})
    with pytest.raises(OpError, match="in_single"):
        IN_SINGLE.sign([x, TensorSpec((3,), BFLOAT16)], {"operator": Inner(ADD, {}), "to": BFLOAT16})


def test_numpy_converts_what_compiled_code_does_not() -> None:
    x, y = np.arange(5), np.empty(5, np.float16)
    native_copy(x, y)()
    np.testing.assert_array_equal(x, y)
    plain_copy(y, x)()
