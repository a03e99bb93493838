"""MobileNetV2 and an encoder as ONNX models, in the nodes that PyTorch's exporter writes; their weights are zero.

Sandler et al. 2018 (batch norms folded into convolutions, as exported in inference mode), and a BERT encoder layer
(Devlin et al. 2018) of MiniLM's size (Wang et al. 2020). `engine.onnx.seeded.seed_weights` gives weights.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field
from onnx import TensorProto, helper, numpy_helper

from engine.onnx.library import ModelProto
from ops.tensor.spec import Array

OPSET, IR_VERSION = 17, 8
INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and stride: table 2 of the paper."""
STEM, LAST, CLASSES, IMAGE = 32, 1280, 1000, 224
LAYERS, WIDTH, INNER, HEADS, SEQUENCE = 6, 384, 1536, 12, 128


@define(eq=False)
class Writer:
    """Nodes and initializers in the order in which they are made."""

    nodes: list[Any] = field(factory=list)
    tensors: list[Any] = field(factory=list)

    def node(self, op_type: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None) -> str:
        """Adds a node. Returns the name of its output."""
        name = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"{name}_node", **(attributes or {})))
        return name

    def array(self, array: Array) -> str:
        """Adds an initializer. Returns its name."""
        name = f"weight_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(array, name))
        return name

    def zeros(self, *shape: int) -> str:
        """Adds a float32 initializer whose values are given later. Returns its name."""
        return self.array(np.zeros(shape, np.float32))

    def number(self, value: float) -> str:
        """Adds a float32 initializer without axes. Returns its name."""
        return self.array(np.array(value, np.float32))

    def model(self, name: str, shape: Sequence[int], y: str, y_shape: Sequence[int]) -> ModelProto:
        """Returns the model with the input "x" and the output `y`, both float32."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        out = helper.make_tensor_value_info(y, TensorProto.FLOAT, y_shape)
        graph = helper.make_graph(self.nodes, name, [x], [out], self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def mobilenet_v2() -> ModelProto:
    """Builds MobileNetV2: x [1, 3, 224, 224] to 1000 classes, without a softmax."""
    to = Writer()
    x, channels = _conv(to, "x", (3, STEM), 3, 2), STEM
    for expansion, wide, blocks, first in INVERTED:
        for block in range(blocks):
            x = _block(to, x, (channels, wide), expansion, first if block == 0 else 1)
            channels = wide
    x = _conv(to, x, (channels, LAST), 1)
    x = to.node("Flatten", [to.node("GlobalAveragePool", [x])], {"axis": 1})
    y = to.node("Gemm", [x, to.zeros(CLASSES, LAST), to.zeros(CLASSES)], {"transB": 1})
    return to.model("mobilenet_v2", (1, 3, IMAGE, IMAGE), y, (1, CLASSES))


def _block(to: Writer, x: str, channels: tuple[int, int], expansion: int, stride: int) -> str:
    inner = channels[0] * expansion
    y = _conv(to, x, (channels[0], inner), 1) if expansion > 1 else x
    y = _conv(to, y, (inner, inner), 3, stride, groups=inner)
    y = _conv(to, y, (inner, channels[1]), 1, clipped=False)
    return to.node("Add", [x, y]) if stride == 1 and channels[0] == channels[1] else y


def _conv(
    to: Writer,
    x: str,
    channels: tuple[int, int],
    kernel: int,
    stride: int = 1,
    *,
    groups: int = 1,
    clipped: bool = True,
) -> str:
    before, after = channels
    attributes = {
        "kernel_shape": [kernel] * 2,
        "strides": [stride] * 2,
        "pads": [kernel // 2] * 4,
        "group": groups,
        "dilations": [1, 1],
    }
    y = to.node("Conv", [x, to.zeros(after, before // groups, kernel, kernel), to.zeros(after)], attributes)
    return to.node("Clip", [y, to.number(0), to.number(6)]) if clipped else y


def encoder() -> ModelProto:
    """Builds an encoder of x [1, 128, 384] with 6 layers of 12 heads; post-norm, GELU by the error function."""
    to, x = Writer(), "x"
    for _ in range(LAYERS):
        x = _norm(to, to.node("Add", [_attention(to, x), x]))
        x = _norm(to, to.node("Add", [_dense(to, _gelu(to, _dense(to, x, WIDTH, INNER)), INNER, WIDTH), x]))
    return to.model("encoder", (1, SEQUENCE, WIDTH), x, (1, SEQUENCE, WIDTH))


def _attention(to: Writer, x: str) -> str:
    q, k, v = (_heads(to, _dense(to, x, WIDTH, WIDTH), perm) for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    scores = to.node("Div", [to.node("MatMul", [q, k]), to.number(math.sqrt(WIDTH // HEADS))])
    mixed = to.node("MatMul", [to.node("Softmax", [scores], {"axis": -1}), v])
    joined = to.node("Transpose", [mixed], {"perm": [0, 2, 1, 3]})
    whole = to.node("Reshape", [joined, to.array(np.array([1, SEQUENCE, WIDTH], np.int64))])
    return _dense(to, whole, WIDTH, WIDTH)


def _heads(to: Writer, x: str, perm: tuple[int, ...]) -> str:
    parts = to.node("Reshape", [x, to.array(np.array([1, SEQUENCE, HEADS, WIDTH // HEADS], np.int64))])
    return to.node("Transpose", [parts], {"perm": list(perm)})


def _dense(to: Writer, x: str, inputs: int, outputs: int) -> str:
    return to.node("Add", [to.zeros(outputs), to.node("MatMul", [x, to.zeros(inputs, outputs)])])


def _gelu(to: Writer, x: str) -> str:
    erf = to.node("Erf", [to.node("Div", [x, to.number(math.sqrt(2))])])
    return to.node("Mul", [to.node("Mul", [x, to.node("Add", [erf, to.number(1)])]), to.number(0.5)])


def _norm(to: Writer, x: str) -> str:
    return to.node("LayerNormalization", [x, to.zeros(WIDTH), to.zeros(WIDTH)], {"axis": -1, "epsilon": 1e-12})
