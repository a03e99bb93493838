"""ONNX models with open lengths, as exporters write them: an encoder, and a decoder with a key/value cache."""

import math
from typing import Any

import numpy as np
import onnx
from attrs import define, field, frozen
from onnx import TensorProto, helper, numpy_helper


@frozen
class TransformerSize:
    """The size of a transformer; `width` is a multiple of `heads`."""

    layers: int
    width: int
    heads: int
    words: int = 1000


MINILM = TransformerSize(6, 384, 12)
NARROW = TransformerSize(12, 48, 12)


@define(eq=False)
class _Writer:
    """A model that grows; names of outputs are made from a number."""

    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(factory=list)
    constants: list[Any] = field(factory=list)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node; returns the name of its output."""
        output = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def constant(self, array: Any) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape: int) -> str:
        drawn = self.rng.standard_normal(shape) / math.sqrt(shape[0])
        return self.constant(drawn.astype(np.float32))

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.weights(inputs, outputs)), self.weights(outputs))

    def norm(self, x: str, width: int) -> str:
        scale, bias = (self.constant(np.full(width, value, np.float32)) for value in (1, 0))
        return self.add("LayerNormalization", x, scale, bias, axis=-1)

    def heads(self, x: str, size: TransformerSize) -> str:
        shape = self.constant(np.array([0, -1, size.heads, size.width // size.heads], np.int64))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def layer(self, x: str, size: TransformerSize, past: tuple[str, ...] = ()) -> tuple[str, tuple[str, ...]]:
        """Adds attention and a feed-forward layer; returns the result, and all keys and values."""
        width = size.width
        q, *new = (self.heads(self.dense(x, width, width), size) for _ in range(3))
        kept = (
            tuple(self.add("Concat", old, one, axis=2) for old, one in zip(past, new, strict=True))
            if past
            else tuple(new)
        )
        k, v = kept
        factor = self.constant(np.float32((width // size.heads) ** -0.5))
        scores = self.add("Mul", self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2])), factor)
        mixed = self.add("Transpose", self.add("MatMul", self.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        flat = self.add("Reshape", mixed, self.constant(np.array([0, -1, width], np.int64)))
        x = self.norm(self.add("Add", x, self.dense(flat, width, width)), width)
        hidden = self.dense(x, width, 4 * width)
        gelu = self.add("Mul", hidden, self.add("Sigmoid", hidden))
        return self.norm(self.add("Add", x, self.dense(gelu, 4 * width, width)), width), kept

    def model(self, name: str, inputs: list[Any], outputs: list[Any]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def encoder_model(size: TransformerSize) -> onnx.ModelProto:
    """Returns an encoder of "tokens" [batch, sequence]; output "y" has a vector for each."""
    writer = _Writer()
    table = writer.weights(size.words, size.width)
    x = writer.add("Gather", table, "tokens")
    for _ in range(size.layers):
        x, _kept = writer.layer(x, size)
    writer.nodes.append(helper.make_node("Identity", [x], ["y"], name="y"))
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "sequence"])
    return writer.model("encoder", [tokens], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])


def decoder_model(size: TransformerSize) -> onnx.ModelProto:
    """Returns a step of a decoder: "token" [1, 1] and the keys and values of all tokens before, [1, heads, past, size].

    Outputs are the scores of all words, "scores", and the keys and values with those of the token: "kept_0" and so on.
    """
    writer, each = _Writer(), size.width // size.heads
    x = writer.add("Gather", writer.weights(size.words, size.width), "token")
    names = list[str]()
    inputs = [helper.make_tensor_value_info("token", TensorProto.INT64, [1, 1])]
    for layer in range(size.layers):
        past = (f"past_{2 * layer}", f"past_{2 * layer + 1}")
        shape: list[str | int | None] = [1, size.heads, "past", each]
        inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in past]
        x, kept = writer.layer(x, size, past)
        names += kept
    scores = writer.add("MatMul", x, writer.weights(size.width, size.words))
    renamed = [("scores", scores), *((f"kept_{i}", name) for i, name in enumerate(names))]
    for name, source in renamed:
        writer.nodes.append(helper.make_node("Identity", [source], [name], name=name))
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name, _ in renamed]
    return writer.model("decoder", inputs, outputs)
