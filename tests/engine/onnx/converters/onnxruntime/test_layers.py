"""onnxruntime's fused products, convolutions and activations, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.contributed import check, contributed

FEW = settings(max_examples=5, deadline=None)
LENGTHS = st.integers(1, 5)
FLAGS = st.sampled_from((0, 1))
ACTIVATIONS: dict[str, dict[str, float]] = {
    "Relu": {},
    "Sigmoid": {},
    "Tanh": {},
    "Softplus": {},
    "Softsign": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.7},
    "ThresholdedRelu": {"alpha": 0.4},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "Selu": {"alpha": 1.5, "gamma": 1.2},
}


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@FEW
@given(st.tuples(*[LENGTHS] * 5), st.tuples(FLAGS, FLAGS), st.tuples(FLAGS, FLAGS), st.sampled_from((1.0, 0.3)))
def test_fused_matmul(sizes: tuple[int, ...], trans: tuple[int, int], batch: tuple[int, int], alpha: float) -> None:
    b, c, m, k, n = sizes
    arrays: list[Array] = []
    attrs: dict[str, Any] = {"alpha": alpha}
    for side, rows, columns, is_transposed, leads in zip("AB", (m, k), (k, n), trans, batch, strict=True):
        last = (columns, rows) if is_transposed else (rows, columns)
        arrays.append(normal(last[0], b, c, last[1]) if leads else normal(b, c, *last))
        attrs |= {f"trans{side}": is_transposed, f"transBatch{side}": leads}
    check(*contributed("FusedMatMul", arrays, **attrs))


def test_fused_matmul_is_one_product_behind_passes() -> None:
    arrays = [normal(2, 3, 4), normal(2, 5, 4)]
    proto, feeds = contributed("FusedMatMul", arrays, dims={0: ("b", "s", 4), 1: ("b", "t", 4)}, transB=1, alpha=0.5)
    check(proto, feeds)
    assert schema_names(engine.optimise(engine.load_onnx(proto))) == ["fused_matmul"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_gemm(activation: str) -> None:
    parameters: dict[str, Any] = {f"activation_{name}": number for name, number in ACTIVATIONS[activation].items()}
    arrays = [normal(4, 3), normal(5, 4), normal(5)]
    proto, feeds = contributed(
        "FusedGemm",
        arrays,
        dims={0: (4, "n")},
        transA=1,
        transB=1,
        alpha=0.5,
        beta=2.0,
        activation=activation,
        **parameters,
    )
    check(proto, feeds)


@FEW
@given(
    st.sampled_from(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")),
    st.booleans(),
    st.booleans(),
    st.sampled_from((1, 2)),
    st.sampled_from((1, 2)),
)
def test_fused_conv(activation: str, biased: bool, added: bool, group: int, stride: int) -> None:
    numbers = [-0.5, 0.75] if activation == "Clip" else list(ACTIVATIONS[activation].values())
    params: dict[str, Any] = {"activation_params": numbers} if numbers else {}
    side = 6 if stride == 1 else 3
    arrays = [normal(1, 4, 6, 6), normal(6, 4 // group, 3, 3), normal(6), normal(1, 6, side, side)]
    proto, feeds = contributed(
        "FusedConv",
        [a if there else None for a, there in zip(arrays, (True, True, biased, added), strict=True)],
        constants=(1, 2),
        group=group,
        kernel_shape=[3, 3],
        pads=[1, 1, 1, 1],
        strides=[stride, stride],
        activation=activation,
        **params,
    )
    check(proto, feeds, atol=1e-4)


def test_a_fused_convolution_is_one_operator_behind_passes() -> None:
    arrays = [normal(1, 4, 6, 6), normal(6, 4, 3, 3), normal(6)]
    proto, _ = contributed("FusedConv", arrays, constants=(1, 2), activation="Relu")
    assert schema_names(engine.optimise(engine.load_onnx(proto), 2)) == ["fused_conv"]


@pytest.mark.parametrize("op_type", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
@pytest.mark.parametrize("length", [1, 5])
def test_gelus(op_type: str, length: int) -> None:
    bias = [normal(6)] if op_type in ("BiasGelu", "FastGelu") else []
    attrs: dict[str, Any] = {"alpha": 1.3} if op_type == "QuickGelu" else {}
    check(*contributed(op_type, [normal(2, length, 6) * 3, *bias], dims={0: ("b", "s", 6)}, **attrs))


def test_fast_gelu_without_bias() -> None:
    check(*contributed("FastGelu", [normal(2, 3)]))


def test_what_a_layer_does_not_know_is_refused_with_its_name() -> None:
    x = normal(2, 2)
    for proto, message in (
        (contributed("FusedMatMul", [x, x], colour=1), r"\(FusedMatMul\): attribute 'colour' is not supported"),
        (contributed("FusedGemm", [x, x], activation="Frob"), r"\(FusedGemm\): activation 'Frob' is not supported"),
        (contributed("Gelu", [x, x]), r"\(Gelu\): input 1 is not supported"),
        (contributed("FusedMatMul", [x, x], outputs=("y", "z")), r"\(FusedMatMul\): output 1 is not supported"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            engine.load_onnx(proto[0])
    for proto, message in (
        (contributed("FusedGemm", [x, x]), "attribute 'activation' is missing"),
        (contributed("FusedGemm", [x, x], activation="Elu"), "attribute 'activation_alpha' is missing"),
        (contributed("FusedConv", [normal(1, 1, 2, 2)] * 2, activation="Clip"), "has 0 numbers; it must have 2"),
        (contributed("FusedMatMul", [x]), "input 1 is missing"),
    ):
        with pytest.raises(ModelError, match=message):
            engine.load_onnx(proto[0])
