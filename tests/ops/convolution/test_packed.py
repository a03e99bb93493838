"""The convolution of packed constant weights against onnxruntime, beside the kernels that use BLAS."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.conv import CONV
from ops.convolution.gemm import COLUMNS, POINTWISE
from ops.convolution.packed import PACKED, has_avx512
from ops.schema.schema import Binding, Kernel, Signature
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.compiled_kernel_checks import placed
from tests.helpers.ops.kernel_checks import bind, garbage, garbage_for, run, run_without_allocation, same, sign
from tests.helpers.ops.sample_arrays import normal
from tests.helpers.ops.window_cases import least_sizes, lengths, window_attrs

needs_avx512 = pytest.mark.skipif(not has_avx512(), reason="the kernel is compiled for AVX-512, which is not here")
FLOAT = np.dtype("float32")


def _sign(arrays: list[Array], **attrs: Any) -> Signature:
    """Returns the signature with constant weights and bias, as in a network."""
    return sign(CONV, arrays, attrs, (1, 2))


def _check(arrays: list[Array], **attrs: Any) -> None:
    """Checks the packed kernel and that of BLAS against onnxruntime."""
    signature = _sign(arrays, **attrs)
    (wanted,) = onnxruntime_node("Conv", arrays, **attrs)
    for kernel in (PACKED, COLUMNS):
        (got,) = run(kernel, signature, arrays)
        same(got, wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max()))


@st.composite
def convolutions(draw: Any) -> tuple[list[Array], dict[str, Any]]:
    ndim = draw(st.integers(1, 2))
    channels, out, batch = draw(st.integers(1, 20)), draw(st.integers(16, 70)), draw(st.integers(1, 3))
    kernel, attrs = lengths(draw, ndim, 4), window_attrs(draw, ndim, 3, 3, 4)
    sizes = [draw(st.integers(n, n + 24)) for n in least_sizes(kernel, attrs)]
    shapes = [(batch, channels, *sizes), (out, channels, *kernel)] + ([(out,)] if draw(st.booleans()) else [])
    return normal(draw(st.integers(0, 99)), *shapes), attrs


@needs_avx512
@settings(max_examples=50)
@given(convolutions())
def test_packed_conv_equals_onnxruntime_in_any_shape(case: tuple[list[Array], dict[str, Any]]) -> None:
    arrays, attrs = case
    _check(arrays, **attrs)


LARGE: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(1, 64, 56, 56), (64, 64, 3, 3), (64,)], {"pads": (1, 1, 1, 1)}),
    ([(1, 256, 14, 14), (256, 256, 3, 3)], {"pads": (1, 1, 1, 1)}),
    ([(2, 512, 7, 7), (70, 512, 3, 3), (70,)], {"pads": (1, 1, 1, 1)}),
    ([(1, 3, 112, 112), (64, 3, 7, 7), (64,)], {"strides": (2, 2), "pads": (3, 3, 3, 3)}),
    ([(1, 128, 28, 28), (256, 128, 1, 1), (256,)], {"strides": (2, 2)}),
    ([(1, 300, 33, 31), (100, 300, 1, 1), (100,)], {}),
    ([(1, 40, 5000), (48, 40, 9), (48,)], {"pads": (8, 0)}),
]


@needs_avx512
@pytest.mark.parametrize(("shapes", "attrs"), LARGE)
def test_packed_conv_of_network_layers_is_right_in_bounded_workspace(
    shapes: list[tuple[int, ...]], attrs: dict[str, Any]
) -> None:
    arrays = normal(1, *shapes)
    _check(arrays, **attrs)
    assert PACKED.supports(_sign(arrays, **attrs))
    assert PACKED.workspace(_sign(arrays, **attrs)) <= 1 << 20


@needs_avx512
def test_pointwise_windows_agree_with_a_plain_product() -> None:
    arrays = normal(2, (2, 24, 9, 11), (40, 24, 1, 1), (40,))
    signature = _sign(arrays)
    (wanted,) = run(POINTWISE, signature, arrays)
    (got,) = run(PACKED, signature, arrays)
    same(got, wanted, rtol=1e-4, atol=1e-4)


@needs_avx512
def test_packed_conv_windows_may_lie_wholly_in_the_padding() -> None:
    arrays = normal(3, (1, 4, 2, 1), (16, 4, 2, 5))
    _check(arrays, pads=(3, 0, 2, 12), strides=(1, 1))
    _check(arrays, pads=(3, 7, 2, 12), strides=(2, 3))


@needs_avx512
def test_packed_conv_allocates_nothing() -> None:
    arrays = normal(4, (1, 32, 64, 64), (64, 32, 3, 3), (64,))
    signature = _sign(arrays, pads=(1, 1, 1, 1), strides=(2, 1))
    run_without_allocation(PACKED, signature, arrays)


@needs_avx512
def test_constants_may_be_read_only_and_an_image_does_not_depend_on_its_batch() -> None:
    x, w, b = normal(5, (2, 10, 12, 13), (33, 10, 3, 3), (33,))
    for array in (w, b):
        array.flags.writeable = False
    attrs = {"pads": (0, 1, 1, 0)}
    (both,) = run(PACKED, _sign([x, w, b], **attrs), [x, w, b])
    for image, wanted in zip(x, both, strict=True):
        (alone,) = run(PACKED, _sign([image[None], w, b], **attrs), [image[None], w, b])
        assert alone.tobytes() == wanted.tobytes()


def _moved(array: Array, shift: int) -> Array:
    """Returns a copy that begins `shift` bytes behind a line of the cache."""
    return placed(array, first=shift // array.itemsize)


@needs_avx512
def test_packed_conv_does_not_depend_on_where_memory_lies() -> None:
    arrays = normal(6, (1, 8, 30, 31), (40, 8, 3, 3), (40,))
    signature = _sign(arrays, pads=(1, 1, 1, 1))
    outputs = set()
    for shift in (0, 4, 20):
        x, w, b = (_moved(a, shift) for a in arrays)
        packed = tuple(_moved(a, shift) for a in PACKED.pack(signature, {1: w, 2: b}))
        y, (buffer,) = _moved(garbage(signature.y), shift), garbage_for(PACKED, signature)
        PACKED.bind(Binding(signature, (x, w, b), (y,), (_moved(buffer, shift),), packed))()
        outputs.add(y.tobytes())
    assert len(outputs) == 1


@needs_avx512
def test_packed_conv_leaves_bytes_around_the_output() -> None:
    arrays = normal(7, (1, 5, 9, 9), (37, 5, 2, 2))
    signature = _sign(arrays)
    around = np.full(signature.y.size + 64, 7, FLOAT)
    y = around[32:-32].reshape(signature.y.shape)
    bind(PACKED, signature, arrays, [y])()
    assert (around[:32] == 7).all()
    assert (around[-32:] == 7).all()
    same(y, run(COLUMNS, signature, arrays)[0], rtol=1e-4, atol=1e-4)


def _chosen(x: tuple[int, ...], w: tuple[int, ...], dtype: str = "float32", **attrs: Any) -> Kernel:
    specs = [TensorSpec(s, np.dtype(dtype)) for s in (x, w)]
    return CONV.kernel(CONV.sign(specs, attrs, frozenset({1})))


@needs_avx512
def test_packed_conv_is_chosen_only_where_its_conditions_hold() -> None:
    assert _chosen((1, 8, 9, 9), (32, 8, 3, 3)) is PACKED
    assert _chosen((1, 8, 9), (16, 8, 3)) is PACKED
    assert _chosen((1, 8, 9, 9), (50, 8, 1, 1)) is PACKED
    others = [
        _chosen((1, 8, 9, 9), (15, 8, 3, 3)),
        _chosen((1, 8, 9, 9), (48, 8, 1, 1)),
        _chosen((1, 8, 1, 1), (32, 8, 1, 1)),
        _chosen((1, 8, 9, 9), (32, 4, 3, 3), group=2),
        _chosen((1, 8, 9, 9), (32, 8, 3, 3), dtype="float64"),
        _chosen((1, 8, 9, 9, 9), (32, 8, 3, 3, 3)),
        _chosen((1, 1 << 15, 3, 3), (32, 1 << 15, 1, 1)),
        _chosen((0, 8, 9, 9), (32, 8, 3, 3)),
        _chosen((1, 0, 9, 9), (32, 0, 3, 3)),
        CONV.kernel(CONV.sign([TensorSpec((1, 32, 9, 9), FLOAT), TensorSpec((32, 32, 3, 3), FLOAT)], {})),
    ]
    assert PACKED not in others


def test_blas_does_the_work_where_there_is_no_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.convolution.packed.has_avx512", lambda: False)
    assert _chosen((1, 8, 9, 9), (32, 8, 3, 3)) is COLUMNS
    assert _chosen((1, 8, 9, 9), (64, 8, 1, 1)) is POINTWISE
