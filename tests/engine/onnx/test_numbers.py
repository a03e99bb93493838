"""Numbers that differ by design: what is computed here, and what onnxruntime and the evaluator of onnx compute."""

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import onnxruntime
import pytest
from attrs import frozen
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime import GraphOptimizationLevel as Level

import engine
from ops.elementwise.cast import CAST
from ops.schema.schema import evaluate
from ops.tensor.spec import POWERS, Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, value
from tests.helpers.paths import ROOT

NAN, INF = math.nan, math.inf


def _row(*numbers: float) -> Array:
    return np.asarray(numbers, np.float32)


def _image(*numbers: float) -> Array:
    return _row(*numbers).reshape(1, 1, -1)


@frozen(eq=False)
class Case:
    """A node on inputs, of which some are constant, and what it gives here and in onnxruntime."""

    op_type: str
    inputs: tuple[Array | None, ...]
    ours: Any
    theirs: Any
    attrs: Mapping[str, Any] = {}
    constants: tuple[int, ...] = ()
    outputs: tuple[str, ...] = ("y",)

    def model(self) -> tuple[Any, dict[str, Array]]:
        """Returns the model and its feeds."""
        names = [f"i{k}" if a is not None else "" for k, a in enumerate(self.inputs)]
        arrays = {n: a for n, a in zip(names, self.inputs, strict=True) if a is not None}
        fixed = {f"i{k}": arrays.pop(f"i{k}") for k in self.constants}
        inputs = [value(n, a.shape, a.dtype) for n, a in arrays.items()]
        return model(
            [node(self.op_type, names, self.outputs, **self.attrs)], inputs, initializers=fixed, opset=20
        ), arrays


_RESIZED: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "align_corners"}
CASES = {
    "the maximum of NaN and numbers": Case("ReduceMax", (_row(1, 2, NAN),), [NAN], [2]),
    "the minimum of NaN and numbers": Case("ReduceMin", (_row(1, NAN, 2),), [NAN], [1]),
    "a window with NaN": Case("MaxPool", (_image(NAN, 1, 2),), [[[NAN, 2]]], [[[1, 2]]], {"kernel_shape": [2]}),
    "all of a channel with NaN": Case("GlobalMaxPool", (_image(1, NAN, 3),), [[[NAN]]], [[[3]]]),
    "NaN scattered into a maximum": Case(
        "ScatterElements", (_row(1, 2), np.array([0, 0]), _row(NAN, 6)), [NAN, 2], [6, 2], {"reduction": "max"}
    ),
    "the place of the maximum beside NaN": Case("Hardmax", (_row(NAN, 2, 2)[None],), [[1, 0, 0]], [[0, 0, 0]]),
    "the best of NaN and numbers": Case(
        "TopK", (_row(1, NAN, 2, 2), np.array([2])), [NAN, 2], [1, NAN], {}, (1,), ("y", "places")
    ),
    "NaN among distinct elements": Case("Unique", (_row(NAN, NAN, 1),), [1, NAN], [NAN]),
    "a constant normalised by its deviation": Case(
        "MeanVarianceNormalization", (_image(1, 1).reshape(1, 1, 1, 2),), [[[[0, 0]]]], [[[[NAN, NAN]]]]
    ),
    "corners aligned at a scale": Case(
        "Resize", (_image(*range(7)), None, _row(1, 1, 0.5)), [[[0, 2, 5]]], [[[0, 3, 6]]], _RESIZED, (2,)
    ),
    "an element but for a rounding": Case(
        "Resize", (_image(*range(7)), None, _row(1, 1, 0.5)), [[[2, 3, 5]]], [[[1, 3, 5]]],
        {"mode": "nearest", "nearest_mode": "ceil", "coordinate_transformation_mode": "half_pixel_symmetric"}, (2,),
    ),
    "places in an output with longer rows": Case(
        "MaxUnpool", (_row(1, 2).reshape(1, 1, 2, 1), np.array([[[[1], [3]]]]), np.array([1, 1, 2, 3])),
        [[[[0, 1, 0], [0, 2, 0]]]], [[[[0, 1, 0], [2, 0, 0]]]], {"kernel_shape": [1, 2], "strides": [1, 2]}, (2,),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", CASES)
def test_what_differs_from_onnxruntime_is_known(name: str, backend: str) -> None:
    case = CASES[name]
    proto, feeds = case.model()
    ours = next(iter(engine.compile(engine.load_onnx(proto), backend=backend).run(feeds).values()))
    np.testing.assert_array_equal(ours, np.asarray(case.ours, ours.dtype))
    np.testing.assert_array_equal(run_onnxruntime(proto, feeds)[0], np.asarray(case.theirs, ours.dtype))


def test_the_page_has_all_that_differs() -> None:
    rows = [line.split(" | ") for line in (ROOT / "docs" / "numbers.md").read_text().splitlines()]
    held = [cells for cells in rows if test_what_differs_from_onnxruntime_is_known.__name__ in cells[-1]]
    assert sorted(name for cells in held for name in cells[0].removeprefix("| ").split("; ")) == sorted(CASES)


def test_gelu_far_below_0_is_not_0() -> None:
    proto = model([node("Gelu", ["x"])], [value("x", (1,))], opset=20)
    feeds = {"x": _row(-6)}
    exact = -3 * math.erfc(6 / math.sqrt(2))
    assert abs(engine.compile(engine.load_onnx(proto)).run(feeds)["y"][0] / exact - 1) < 1e-5
    assert run_onnxruntime(proto, feeds)[0][0] == 0


def _dequantised(w: Array, scale: Array) -> tuple[Any, dict[str, Array]]:
    """Returns the model of a product with weights that are dequantised in blocks of 32 rows, and its feeds."""
    nodes = [node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32), node("MatMul", ["x", "d"])]
    x = np.random.default_rng(1).standard_normal((4, len(w))).astype(np.float32)
    proto = model(nodes, [value("x", x.shape)], initializers={"w": w, "s": scale}, opset=21)
    proto.graph.output[0].CopyFrom(value("y", (4, w.shape[1])))
    return proto, {"x": x}


def _session(proto: Any, **entries: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = Level.ORT_ENABLE_EXTENDED
    for key, entry in entries.items():
        options.add_session_config_entry(f"session.{key}", entry)
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4"])
def test_products_with_dequantised_weights_are_exact_but_for_rounding(dtype: str) -> None:
    """The extended level of onnxruntime rounds the other factor to 8 bits, unless a session forbids it."""
    random = np.random.default_rng(0)
    ends = (-8, 8) if dtype == "int4" else (0, 128)
    w, scale = random.integers(*ends, (64, 16)).astype(dtype), random.uniform(0.001, 0.02, (2, 16)).astype(np.float32)
    proto, feeds = _dequantised(w, scale)
    real = [
        [Fraction(int(c)) * Fraction(float(s)) for c, s in zip(*r, strict=True)]
        for r in zip(w, scale.repeat(32, 0), strict=True)
    ]
    rows = [[Fraction(float(n)) for n in row] for row in feeds["x"]]
    exact = np.array(
        [[float(sum(a * b[j] for a, b in zip(row, real, strict=True))) for j in range(16)] for row in rows]
    )
    largest = np.abs(exact).max()
    ours = engine.compile(engine.load_onnx(proto)).run(feeds)["y"]
    rounded, plain = (_session(proto, **e).run(None, feeds)[0] for e in ({}, {"qdq_matmulnbits_accuracy_level": "0"}))
    assert np.abs(ours - exact).max() < 2e-6 * largest
    assert np.abs(plain - exact).max() < 2e-6 * largest
    assert 1e-3 * largest < np.abs(rounded - exact).max() < 2e-2 * largest


def test_softmax_of_quantised_numbers_is_the_nearest_code() -> None:
    """QLinearSoftmax of onnxruntime, which its optimiser writes, is one code away from it now and then."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (100, 8)).astype(np.uint8)
    scale, of_result = np.float32(0.02), np.float32(1 / 255)
    initializers = {"s": scale, "z": np.uint8(10), "t": of_result, "o": np.uint8(0)}
    nodes = [node("QLinearSoftmax", ["x", "s", "z", "t", "o"], domain="com.microsoft", axis=-1, opset=13)]
    proto = model(nodes, [value("x", codes.shape, np.uint8)], initializers=initializers)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.UINT8, codes.shape))
    parts = [[(Decimal(int(c)) * Decimal(float(scale))).exp() for c in row] for row in codes]
    exact = np.array([[float(p / sum(row) / Decimal(float(of_result))) for p in row] for row in parts])
    ours = engine.compile(engine.load_onnx(proto)).run({"x": codes})["y"]
    theirs = run_onnxruntime(proto, {"x": codes})[0]
    assert np.abs(ours - exact).max() < 0.5001
    assert 0.51 < np.abs(theirs - exact).max() < 1.5


def test_infinity_as_a_power_of_two_is_the_largest() -> None:
    """So says ONNX's table of casts that saturate; its evaluator gives NaN."""
    proto = model([node("Cast", ["x"], to=TensorProto.FLOAT8E8M0)], [value("x", (2,))], opset=24)
    x = _row(INF, NAN)
    (theirs,) = ReferenceEvaluator(proto).run(None, {"x": x})
    assert np.isnan(np.asarray(theirs).astype(np.float32)).all()
    (ours,) = evaluate(CAST, x, to=POWERS)
    assert ours.astype(np.float32)[0] == 2.0**127 and np.isnan(ours.astype(np.float32)[1])
