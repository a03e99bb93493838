"""Convolutions against onnxruntime, and what their kernels must keep."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.convolution.conv import CONV
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.schema.schema import Binding, OpSchema, Signature
from ops.schema.workspace import carve
from ops.tensor.errors import AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import check_no_allocation, check_results, check_strides, kernels, run, sign
from tests.helpers.ops.sample_arrays import normal

BUFFERS = 128 << 10
"""numpy takes up to three buffers of 32 KiB for a moment where it broadcasts; no array is that small here."""


@st.composite
def conv_attrs(draw: Any, ndim: int, sizes: list[int], kernel: list[int]) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "strides": draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim)),
        "dilations": draw(st.lists(st.integers(1, 2), min_size=ndim, max_size=ndim)),
    }
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, attrs["dilations"], strict=True)]
    tight = any(s < e for s, e in zip(sizes, extents, strict=True))
    if auto == "NOTSET" or tight:
        attrs["pads"] = draw(st.lists(st.integers(0, 2), min_size=2 * ndim, max_size=2 * ndim))
        for a in range(ndim):
            attrs["pads"][a] = max(attrs["pads"][a], extents[a] - sizes[a])
    else:
        attrs["auto_pad"] = auto
        if auto.startswith("SAME"):  # onnxruntime takes no dilations here
            attrs["dilations"] = [1] * ndim
    return attrs


@st.composite
def convolutions(draw: Any) -> tuple[list[Array], dict[str, Any]]:
    ndim = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2, 3]))
    inside, out = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(2, 7), min_size=ndim, max_size=ndim))
    kernel = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    attrs = draw(conv_attrs(ndim, sizes, kernel)) | {"group": group}
    x, w = (draw(st.integers(1, 2)), group * inside, *sizes), (group * out, inside, *kernel)
    shapes = [x, w] + ([(group * out,)] if draw(st.booleans()) else [])
    return normal(draw(st.integers(0, 99)), *shapes), attrs


@settings(max_examples=50)
@given(convolutions())
def test_conv_gives_what_onnxruntime_gives(case: tuple[list[Array], dict[str, Any]]) -> None:
    arrays, attrs = case
    check_results(CONV, arrays, onnxruntime_node("Conv", arrays, **attrs), rtol=1e-4, atol=1e-4, **attrs)


@st.composite
def transposed(draw: Any) -> tuple[list[Array], dict[str, Any]]:
    ndim = draw(st.integers(1, 3))
    group, inside, out = draw(st.sampled_from([1, 1, 2])), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sizes = draw(st.lists(st.integers(1, 5), min_size=ndim, max_size=ndim))
    kernel = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    strides = draw(st.lists(st.integers(1, 3), min_size=ndim, max_size=ndim))
    attrs: dict[str, Any] = {"strides": strides, "group": group}
    attrs["dilations"] = draw(st.lists(st.integers(1, 2), min_size=ndim, max_size=ndim))
    attrs["output_padding"] = [draw(st.integers(0, s - 1)) for s in strides]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, attrs["dilations"], strict=True)]
    attrs["pads"] = [draw(st.integers(0, (e - 1) // 2)) for e in extents] * 2
    shapes: list[tuple[int, ...]] = [(draw(st.integers(1, 2)), group * inside, *sizes), (group * inside, out, *kernel)]
    if draw(st.booleans()):
        shapes.append((group * out,))
    return normal(draw(st.integers(0, 99)), *shapes), attrs


@settings(max_examples=40)
@given(transposed())
def test_conv_transpose_gives_what_onnxruntime_gives(case: tuple[list[Array], dict[str, Any]]) -> None:
    arrays, attrs = case
    wanted = onnxruntime_node("ConvTranspose", arrays, **attrs)
    check_results(CONV_TRANSPOSE, arrays, wanted, rtol=1e-4, atol=1e-4, **attrs)


LARGE: list[tuple[OpSchema, list[tuple[int, ...]], dict[str, Any]]] = [
    (CONV, [(2, 16, 128, 96), (24, 16, 3, 3), (24,)], {"pads": (1, 1, 1, 1)}),
    (CONV, [(1, 16, 390, 97), (24, 16, 3, 5), (24,)], {"strides": (2, 1), "pads": (1, 2, 0, 2), "dilations": (2, 1)}),
    (CONV, [(1, 32, 128, 128), (32, 8, 3, 3)], {"group": 4, "pads": (1, 1, 1, 1)}),
    (CONV, [(1, 64, 96, 96), (16, 64, 1, 1), (16,)], {}),
    (CONV, [(1, 64, 96, 96), (64, 1, 3, 3), (64,)], {"group": 64, "pads": (1, 1, 1, 1), "strides": (2, 2)}),
    (CONV, [(1, 16, 40000), (16, 16, 9)], {"pads": (8, 0)}),
    (CONV, [(1, 8, 20, 40, 90), (8, 8, 3, 3, 3)], {"pads": (1, 1, 1, 1, 1, 1)}),
    (CONV_TRANSPOSE, [(1, 32, 96, 96), (32, 16, 4, 4), (16,)], {"strides": (2, 2), "pads": (1, 1, 1, 1)}),
]


@pytest.mark.parametrize(("schema", "shapes", "attrs"), LARGE)
def test_large_convolutions_work_in_blocks_and_allocate_nothing(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any]
) -> None:
    arrays = normal(1, *shapes)
    name = {"conv": "Conv", "conv_transpose": "ConvTranspose"}[schema.name]
    check_results(schema, arrays, onnxruntime_node(name, arrays, **attrs), rtol=1e-3, atol=1e-3, **attrs)
    check_no_allocation(schema, arrays, scratch_limit=BUFFERS, **attrs)


SMALL: list[tuple[OpSchema, list[tuple[int, ...]], dict[str, Any]]] = [
    (CONV, [(2, 3, 7, 6), (4, 3, 3, 2), (4,)], {"pads": (1, 0, 1, 1), "strides": (2, 1)}),
    (CONV, [(2, 4, 5, 6), (6, 2, 1, 1), (6,)], {"group": 2}),
    (CONV, [(2, 4, 5, 6), (8, 1, 3, 3), (8,)], {"group": 4, "pads": (1, 1, 1, 1)}),
    (CONV, [(2, 4, 9), (4, 1, 3)], {"group": 4, "dilations": (2,)}),
    (CONV_TRANSPOSE, [(2, 3, 4, 5), (3, 2, 3, 3), (2,)], {"strides": (2, 3), "output_padding": (1, 0)}),
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("schema", "shapes", "attrs"), SMALL)
def test_conv_takes_any_strides_and_float_type(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any], dtype: str
) -> None:
    arrays = normal(2, *shapes, dtype=dtype)
    close = {"float16": 5e-3, "float32": 1e-5, "float64": 1e-12}[dtype]
    check_strides(schema, arrays, rtol=close, atol=close, **attrs)
    wide = [a.astype("float64") for a in arrays]
    signature = sign(schema, wide, attrs)
    wanted = run(schema.kernel(signature), signature, wide)
    check_results(schema, arrays, [w.astype(dtype) for w in wanted], rtol=close, atol=close, **attrs)


@pytest.mark.parametrize(("schema", "shapes", "attrs"), SMALL)
def test_conv_with_packed_constants_equals_conv_without(
    schema: OpSchema, shapes: list[tuple[int, ...]], attrs: dict[str, Any]
) -> None:
    arrays = normal(3, *shapes, dtype="float16")
    signature = sign(schema, arrays, attrs)
    fixed = Signature(signature.inputs, signature.outputs, signature.attrs, frozenset(range(1, len(arrays))))
    (kernel,) = kernels(schema, signature)
    for got, wanted in zip(run(kernel, fixed, arrays), run(kernel, signature, arrays), strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert kernel.workspace(fixed) < kernel.workspace(signature)


@pytest.mark.parametrize("group", [1, 4])
def test_conv_windows_may_lie_wholly_in_the_padding(group: int) -> None:
    arrays = normal(6, (1, 4, 2, 1), (4, 4 // group, 2, 5))
    attrs: dict[str, Any] = {"pads": (3, 0, 2, 12), "group": group}
    check_results(CONV, arrays, onnxruntime_node("Conv", arrays, **attrs), rtol=1e-5, atol=1e-5, **attrs)


def test_a_large_vgg_layer_needs_little_workspace() -> None:
    x, w = TensorSpec((1, 64, 224, 224), np.dtype("float32")), TensorSpec((64, 64, 3, 3), np.dtype("float32"))
    signature = CONV.sign((x, w), {"pads": (1, 1, 1, 1)})
    assert CONV.kernel(signature).workspace(signature) < 1.5 * 2**20


def test_conv_of_empty_batches_and_outputs() -> None:
    for schema, shapes in ((CONV, [(0, 2, 4, 4), (3, 2, 3, 3)]), (CONV_TRANSPOSE, [(0, 2, 4, 4), (2, 3, 3, 3)])):
        signature = schema.sign([TensorSpec(s, np.dtype("float32")) for s in shapes], {})
        for kernel in kernels(schema, signature):
            (y,) = run(kernel, signature, normal(0, *shapes))
            assert y.shape == signature.y.shape
            assert y.size == 0


def test_conv_results_do_not_depend_on_where_memory_lies() -> None:
    arrays = normal(5, (1, 8, 30, 31), (8, 8, 3, 3), (8,))
    signature = sign(CONV, arrays, {"pads": (1, 1, 1, 1)})
    kernel = CONV.kernel(signature)
    results = []
    for shift in (0, 4, 20):
        buffer = np.empty(kernel.workspace(signature) + 64, np.uint8)[shift:]
        y = np.empty(signature.y.nbytes + 64, np.uint8)[shift : shift + signature.y.nbytes]
        y = y.view("float32").reshape(signature.y.shape)
        kernel.bind(Binding(signature, tuple(arrays), (y,), carve(buffer, *kernel.temporaries(signature))))()
        results.append(y.tobytes())
    assert results[0] == results[1] == results[2]


def test_conv_refuses_shapes_that_do_not_fit_with_their_numbers() -> None:
    x, w = TensorSpec((1, 4, 5, 5), np.dtype("float32")), TensorSpec((4, 3, 3, 3), np.dtype("float32"))
    with pytest.raises(ShapeError, match="do not fit 4 channels"):
        CONV.sign((x, w), {})
    with pytest.raises(ShapeError, match="window of 9 does not fit"):
        CONV.sign((x, w.with_shape((4, 4, 5, 5))), {"dilations": (2, 2)})
    with pytest.raises(DtypeError, match="float32, float64"):
        CONV.sign((x, w.with_shape((4, 4, 3, 3)).with_dtype("float64")), {})
    with pytest.raises(AttributeValueError, match="'strides' has 1 entries"):
        CONV.sign((x, w.with_shape((4, 4, 3, 3))), {"strides": (2,)})
    with pytest.raises(ShapeError, match="bias"):
        CONV.sign((x, w.with_shape((4, 4, 3, 3)), w.with_shape((3,))), {})
    with pytest.raises(ShapeError, match="leave nothing"):
        CONV_TRANSPOSE.sign((x, w.with_shape((4, 1, 3, 3))), {"pads": (9, 9, 9, 9)})
