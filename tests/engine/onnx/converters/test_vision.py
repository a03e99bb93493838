"""Unpooling, against onnxruntime and the reference evaluator of onnx."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

import engine
from engine.text.errors import ModelError
from ops.tensor.spec import BFLOAT16, Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value
from tests.helpers.ops.sample_arrays import SEEDS


def _pooled_and_back(shape: Any, attrs: dict[str, Any], **options: Any) -> Any:
    nodes = [node("MaxPool", ["x"], ["p", "i"], **attrs), node("MaxUnpool", ["p", "i", *options], **attrs)]
    return model(nodes, [value("x", shape)], initializers=options)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), SEEDS)
def test_unpooling_is_that_of_onnxruntime(axes: int, kernel: int, stride: int, windows: int, seed: int) -> None:
    length = windows * stride + kernel
    x = np.random.default_rng(seed).standard_normal((2, 3, *[length] * axes)).astype(np.float32)
    attrs = {"kernel_shape": [kernel] * axes, "strides": [stride] * axes}
    proto = _pooled_and_back(x.shape, attrs)
    (ours,), (theirs,) = (run(proto, {"x": x}) for run in (run_ours, run_onnxruntime))
    assert ours.tobytes() == theirs.tobytes()


@given(st.integers(0, 2), st.integers(0, 2))
def test_a_larger_shape_has_zeros_behind(rows: int, columns: int) -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    shape = np.array([1, 1, 4 + rows, 4 + columns])
    proto = _pooled_and_back(x.shape, {"kernel_shape": [2, 2], "strides": [2, 2]}, s=shape)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    assert run_ours(proto, {"x": x})[0].tobytes() == np.asarray(wanted).tobytes()


def test_images_of_open_lengths() -> None:
    proto = _pooled_and_back(("n", 2, "h", "w"), {"kernel_shape": [2, 2], "strides": [2, 2]})
    executable = engine.compile(engine.load_onnx(proto))
    for shape in ((1, 2, 4, 6), (3, 2, 8, 2)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        assert executable.run({"x": x})["y"].tobytes() == run_onnxruntime(proto, {"x": x})[0].tobytes()


@pytest.mark.parametrize(
    ("attrs", "options", "message"),
    [
        ({"kernel_shape": [2]}, {}, "kernel_shape"),
        ({"kernel_shape": [2, 2], "strides": [0, 1]}, {}, "strides"),
        ({"kernel_shape": [2, 2]}, {"s": np.array([1, 1, 4])}, "output_shape"),
        ({"kernel_shape": [2, 2]}, {"s": np.array([1, 1, 1, 1])}, "is smaller than"),
    ],
)
def test_windows_that_do_not_fit_are_refused(attrs: dict[str, Any], options: dict[str, Any], message: str) -> None:
    inputs = [value("p", (1, 1, 3, 3)), value("i", (1, 1, 3, 3), np.int64)]
    proto = model([node("MaxUnpool", ["p", "i", *options], **attrs)], inputs, initializers=options)
    with pytest.raises(ModelError, match=message):
        engine.load_onnx(proto)


def _regions() -> dict[str, Array]:
    return {"r": np.array([[0, 1, 5, 4], [2, 2, 6, 7.5]]), "i": np.array([0, 1])}


def _windows() -> dict[str, Array]:
    random = np.random.default_rng(1)
    return {n: random.standard_normal(s) for n, s in (("w", (2, 3, 1, 2)), ("o", (2, 4, 8, 7)))}


SMALL: dict[str, tuple[dict[str, Array], dict[str, Any]]] = {
    "RoiAlign": (_regions(), {"output_height": 2, "sampling_ratio": 2}),
    "MaxRoiPool": ({"r": np.concatenate([[[0], [1]], _regions()["r"]], 1)}, {"pooled_shape": [2, 2]}),
    "DeformConv": (_windows(), {}),
    "Det": ({}, {}),
    "GridSample": ({"g": np.random.default_rng(2).uniform(-1, 1, (2, 3, 4, 2))}, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float64"], ids=str)
@pytest.mark.parametrize("op_type", SMALL)
def test_other_floats_are_computed_as_float32_is(op_type: str, dtype: Any) -> None:
    operands, attrs = SMALL[op_type]
    arrays = {"x": np.random.default_rng(0).standard_normal((2, 3, 8, 8)), **operands}
    results = []
    for each in (dtype, "float32"):
        feeds = {n: a.astype(dtype).astype(each) if a.dtype == np.float64 else a for n, a in arrays.items()}
        inputs = [value(n, a.shape, a.dtype) for n, a in feeds.items()]
        results.append(run_ours(model([node(op_type, list(feeds), **attrs)], inputs, opset=22), feeds)[0])
    assert results[0].dtype == np.dtype(dtype)
    step = {"float64": 1e-6, "float16": 2e-3}.get(str(dtype), 2e-2)
    np.testing.assert_allclose(results[0].astype(np.float64), results[1], step, step * float(np.abs(results[1]).max()))
