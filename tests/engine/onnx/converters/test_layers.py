"""Quantised, recurrent and Einsum nodes in models, with operands and outputs left out, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from engine.onnx.load import load_onnx
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, run_onnxruntime, run_ours, value

RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, (1, 2, 6, 6)).astype(np.uint8)
WEIGHTS = RNG.integers(0, 256, (3, 2, 2, 2)).astype(np.uint8)
MATRIX = RNG.integers(0, 256, (4, 6)).astype(np.uint8)
REALS = RNG.uniform(-2, 2, (5, 3, 4)).astype(np.float32)


def uniform(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


RECURRENT = {
    "w": uniform(1, 24, 4),
    "r": uniform(1, 24, 6),
    "bias": uniform(1, 48),
    "h": uniform(1, 3, 6),
    "p": uniform(1, 18),
    "wg": uniform(2, 18, 4),
    "rg": uniform(2, 18, 6),
    "lengths": np.asarray([5, 1, 3], np.int32),
}
SCALES = {"s": np.asarray(0.03, "f4"), "z": np.asarray(7, np.uint8), "t": np.asarray(0.4, "f4"), "v": np.zeros(3, "i1")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "x", "constants", "outputs"),
    [
        (node("ConvInteger", ["x", "w", "", "z"], kernel_shape=[2, 2]), BYTES, {"w": WEIGHTS, "z": SCALES["z"]}, ["y"]),
        (node("ConvInteger", ["x", "w"], pads=[1, 0, 1, 0]), BYTES, {"w": WEIGHTS}, ["y"]),
        (node("MatMulInteger", ["x", "m", "", "z"]), BYTES[:, :, :, :4], {"m": MATRIX, "z": SCALES["z"]}, ["y"]),
        (node("MatMulInteger", ["x", "m"]), BYTES[:, :, :, :4], {"m": MATRIX}, ["y"]),
        (
            node("QLinearConv", ["x", "s", "z", "w", "s", "z", "t", "z"], strides=[2, 1]),
            BYTES,
            {"w": WEIGHTS, **SCALES},
            ["y"],
        ),
        (
            node("QLinearMatMul", ["x", "s", "z", "m", "s", "z", "t", "z"]),
            BYTES[0, :, :, :4],
            {"m": MATRIX, **SCALES},
            ["y"],
        ),
        (node("QuantizeLinear", ["x", "s"]), REALS, SCALES, ["y"]),
        (node("QuantizeLinear", ["x", "s"], output_dtype=TensorProto.INT16), REALS, SCALES, ["y"]),
        (node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"]), REALS, {}, ["y", "scale", "zero"]),
        (node("LSTM", ["x", "w", "r"], ["", "h1"], hidden_size=6), REALS, RECURRENT, ["h1"]),
        (node("LSTM", ["x", "w", "r", "bias"], ["", "", "c1"], hidden_size=6), REALS, RECURRENT, ["c1"]),
        (
            node("LSTM", ["x", "w", "r", "", "lengths", "", "h", "p"], ["y", "", "c1"], hidden_size=6, clip=0.5),
            REALS,
            RECURRENT,
            ["y", "c1"],
        ),
        (
            node(
                "GRU",
                ["x", "wg", "rg", "", "lengths"],
                ["y", "h1"],
                hidden_size=6,
                direction="bidirectional",
                activations=["Sigmoid", "Relu", "HardSigmoid", "Tanh"],
                activation_alpha=[0.3],
                activation_beta=[0.4],
            ),
            REALS,
            RECURRENT,
            ["y", "h1"],
        ),
        (node("Einsum", ["x", "x"], equation=" bij , bkj -> b i k "), REALS, {}, ["y"]),
    ],
)
def test_an_onnx_layer_node_equals_onnxruntime(
    layer: Any, x: Array, constants: dict[str, Array], outputs: list[str]
) -> None:
    used = {k: v for k, v in constants.items() if k in layer.input}
    proto = model([layer], [value("x", x.shape, x.dtype)], outputs, used, opset=21)
    for got, wanted in zip(run_ours(proto, {"x": x}), run_onnxruntime(proto, {"x": x}), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_an_onnx_lstm_without_y_has_no_output_for_all_states() -> None:
    proto = model(
        [node("LSTM", ["x", "w", "r"], ["", "h1"], hidden_size=6)],
        [value("x", REALS.shape)],
        ["h1"],
        {k: RECURRENT[k] for k in "wr"},
    )
    (operator,) = load_onnx(proto).operators
    assert [v.shape for v in operator.outputs] == [(1, 3, 6), (1, 3, 6)]


def test_onnx_layer_attributes_that_contradict_weights_are_refused() -> None:
    x = [value("x", REALS.shape)]
    proto = model([node("LSTM", ["x", "w", "r"], hidden_size=5)], x, ["y"], {k: RECURRENT[k] for k in "wr"})
    with pytest.raises(ModelError, match="hidden_size is 5, and R has 6"):
        load_onnx(proto)
    layer = node("ConvInteger", ["x", "w"], kernel_shape=[3, 3])
    proto = model([layer], [value("x", BYTES.shape, np.uint8)], ["y"], {"w": WEIGHTS})
    with pytest.raises(ModelError, match=r"kernel_shape is \(3, 3\)"):
        load_onnx(proto)


def test_an_element_type_that_is_not_there_is_named() -> None:
    layer = node("QuantizeLinear", ["x", "s"], output_dtype=TensorProto.STRING)
    proto = model([layer], [value("x", REALS.shape)], ["y"], {"s": SCALES["s"]}, opset=21)
    with pytest.raises(UnsupportedError, match=r"'output_dtype' of node .* element type string"):
        load_onnx(proto)
