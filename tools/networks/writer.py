"""Writes ONNX models node by node, as PyTorch's exporter does in inference mode; their weights are zero.

Batch normalizations are folded into convolutions. `engine.onnx.seeded.seed_weights` gives weights.
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
CLASSES = 1000
"""Classes of ImageNet."""


@define(eq=False)
class Writer:
    """Nodes and initializers in the order in which they are made."""

    nodes: list[Any] = field(factory=list)
    tensors: list[Any] = field(factory=list)

    def node(
        self, op_type: str, inputs: Sequence[str], attributes: Mapping[str, Any] | None = None, output: str = ""
    ) -> str:
        """Adds a node with one output. Returns the name of its output, which is `output` where that is not empty."""
        return self.node_with_outputs(op_type, inputs, [output or self._name(op_type)], attributes)[0]

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Adds a split into parts of these sizes. Returns the names of the parts."""
        names = [f"{self._name('Split')}_{i}" for i in range(len(sizes))]
        return self.node_with_outputs("Split", [x, self.integers(*sizes)], names, {"axis": axis})

    def node_with_outputs(
        self, op_type: str, inputs: Sequence[str], outputs: list[str], attributes: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Adds a node with named outputs. Returns their names."""
        name = f"{self._name(op_type)}_node"
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=name, **(attributes or {})))
        return outputs

    def _name(self, op_type: str) -> str:
        return f"{op_type.lower()}_{len(self.nodes)}"

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

    def integers(self, *values: int) -> str:
        """Adds an int64 initializer of one axis, such as a shape. Returns its name."""
        return self.array(np.array(values, np.int64))

    def index(self, value: int) -> str:
        """Adds an int64 initializer without axes. Returns its name."""
        return self.array(np.array(value, np.int64))

    def conv(self, x: str, channels: tuple[int, int], kernel: int, stride: int = 1, *, groups: int = 1) -> str:
        """Adds a convolution with a bias, padded by half its kernel. Returns the name of its output."""
        before, after = channels
        weights = self.zeros(after, before // groups, kernel, kernel)
        return self.node("Conv", [x, weights, self.zeros(after)], window(kernel, stride, kernel // 2, groups=groups))

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """Adds a linear layer of the last axis of an input with three axes. Returns the name of its output."""
        return self.node("Add", [self.zeros(outputs), self.node("MatMul", [x, self.zeros(inputs, outputs)])])

    def classifier(self, x: str, inputs: int, classes: int = CLASSES) -> str:
        """Adds a linear layer of an input with two axes. Returns the name of its output."""
        return self.node("Gemm", [x, self.zeros(classes, inputs), self.zeros(classes)], {"transB": 1})

    def layer_norm(self, x: str, width: int, epsilon: float) -> str:
        """Adds a layer normalization of the last axis. Returns the name of its output."""
        attributes = {"axis": -1, "epsilon": epsilon}
        return self.node("LayerNormalization", [x, self.zeros(width), self.zeros(width)], attributes)

    def gelu(self, x: str) -> str:
        """Adds a GELU by the error function. Returns the name of its output."""
        erf = self.node("Erf", [self.node("Div", [x, self.number(math.sqrt(2))])])
        return self.node("Mul", [self.node("Mul", [x, self.node("Add", [erf, self.number(1)])]), self.number(0.5)])

    def swish(self, x: str) -> str:
        """Adds a product with the sigmoid. Returns the name of its output."""
        return self.node("Mul", [x, self.node("Sigmoid", [x])])

    def doubled(self, x: str) -> str:
        """Adds a resize to twice the height and width, by the nearest pixel. Returns the name of its output."""
        scales = self.array(np.array([1, 1, 2, 2], np.float32))
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        return self.node("Resize", [x, "", scales], attributes)

    def reshape(self, x: str, *shape: int) -> str:
        """Adds a reshape. Returns the name of its output."""
        return self.node("Reshape", [x, self.integers(*shape)])

    def transpose(self, x: str, *perm: int) -> str:
        """Adds a transpose. Returns the name of its output."""
        return self.node("Transpose", [x], {"perm": list(perm)})

    def model(
        self,
        name: str,
        shape: Sequence[int],
        outputs: Mapping[str, Sequence[int | str]],
        more_inputs: Mapping[str, Sequence[int]] | None = None,
    ) -> ModelProto:
        """Returns the model with the input "x", and with more inputs. All are float32; others than x are by name."""
        inputs = {"x": shape} | dict(more_inputs or {})
        read, written = (
            [helper.make_tensor_value_info(tensor, TensorProto.FLOAT, sizes) for tensor, sizes in each.items()]
            for each in (inputs, outputs)
        )
        graph = helper.make_graph(self.nodes, name, read, written, self.tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def window(kernel: int, stride: int, pad: int, *, groups: int = 1) -> dict[str, Any]:
    """Returns the attributes of a convolution with a square window."""
    sizes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4, "dilations": [1, 1]}
    return {**sizes, "group": groups}
