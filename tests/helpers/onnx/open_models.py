"""ONNX models with open dimensions as exporters write them: formulas in pieces, shapes computed from shapes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field
from onnx import helper, numpy_helper

from ops.tensor.spec import Array
from tests.helpers.onnx.small_models import model, node, value

WIDTH, HEADS = 32, 4


@define(eq=False)
class Exported:
    """The nodes and weights of a model; each method adds nodes and returns the name of their result."""

    nodes: list[Any] = field(factory=list)
    weights: dict[str, Array] = field(factory=dict)
    rng: np.random.Generator = field(factory=lambda: np.random.default_rng(0))

    def add(self, op_type: str, *inputs: str, **attrs: Any) -> str:
        name = f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(node(op_type, inputs, [name], **attrs))
        return name

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array, dtype)
        return name

    def random(self, *shape: int, around: float = 0.0) -> str:
        scale = 1 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        return self.constant(around + scale * self.rng.standard_normal(shape))

    def normalised_conv(self, x: str, filters: int, channels: int, kernel: int, **attrs: Any) -> str:
        """Adds a convolution without bias, and a batch normalisation."""
        pads = [kernel // 2] * 4
        y = self.add("Conv", x, self.random(filters, channels, kernel, kernel), pads=pads, **attrs)
        variance = self.constant(self.rng.uniform(0.5, 2, filters))
        parameters = self.random(filters, around=1), self.random(filters), self.random(filters), variance
        return self.add("BatchNormalization", y, *parameters)

    def residual_block(self, x: str, channels: int) -> str:
        y = self.add("Relu", self.normalised_conv(x, channels, channels, 3))
        return self.add("Relu", self.add("Add", self.normalised_conv(y, channels, channels, 3), x))

    def dims(self, x: str, axes: int, *numbers: int) -> str:
        """Adds a shape: the lengths of the first axes of x, then numbers."""
        shape, parts = self.add("Shape", x), []
        for axis in range(axes):
            length = self.add("Gather", shape, self.constant(axis, np.int64), axis=0)
            parts.append(self.add("Unsqueeze", length, self.constant([0], np.int64)))
        return self.add("Concat", *parts, self.constant(numbers, np.int64), axis=0)

    def layer_norm(self, x: str) -> str:
        centred = self.add("Sub", x, self.add("ReduceMean", x, axes=[-1], keepdims=1))
        squares = self.add("Pow", centred, self.constant(2.0))
        below = self.add("Add", self.add("ReduceMean", squares, axes=[-1], keepdims=1), self.constant(1e-5))
        scaled = self.add("Mul", self.add("Div", centred, self.add("Sqrt", below)), self.random(WIDTH, around=1))
        return self.add("Add", scaled, self.random(WIDTH))

    def softmax(self, x: str) -> str:
        shifted = self.add("Sub", x, self.add("ReduceMax", x, axes=[-1], keepdims=1))
        power = self.add("Exp", shifted)
        return self.add("Div", power, self.add("ReduceSum", power, self.constant([-1], np.int64), keepdims=1))

    def gelu(self, x: str) -> str:
        gate = self.add("Add", self.add("Erf", self.add("Div", x, self.constant(np.sqrt(2)))), self.constant(1.0))
        return self.add("Mul", self.add("Mul", x, gate), self.constant(0.5))

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        return self.add("Add", self.add("MatMul", x, self.random(inputs, outputs)), self.random(outputs))

    def heads(self, x: str) -> str:
        split = self.add("Reshape", x, self.dims(x, 2, HEADS, WIDTH // HEADS))
        return self.add("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, x: str, past: Sequence[str] = ()) -> tuple[str, list[str]]:
        """Adds attention; returns the result, and keys and values behind those of the past."""
        query, *cache = (self.heads(self.dense(x, WIDTH, WIDTH)) for _ in range(3))
        if past:
            cache = [self.add("Concat", old, new, axis=2) for old, new in zip(past, cache, strict=True)]
        keys, values = cache
        scores = self.add("MatMul", query, self.add("Transpose", keys, perm=[0, 1, 3, 2]))
        weights = self.softmax(self.add("Div", scores, self.constant(np.sqrt(WIDTH // HEADS))))
        joined = self.add("Transpose", self.add("MatMul", weights, values), perm=[0, 2, 1, 3])
        flat = self.add("Reshape", joined, self.dims(x, 2, WIDTH))
        return self.dense(flat, WIDTH, WIDTH), cache

    def feed_forward(self, x: str) -> str:
        return self.dense(self.gelu(self.dense(x, WIDTH, 2 * WIDTH)), 2 * WIDTH, WIDTH)


def detector(blocks: int = 2) -> Any:
    """Returns a backbone with batch normalisations on images of open height and width, and NonMaxSuppression."""
    net = Exported()
    x = net.add("Relu", net.normalised_conv("image", 8, 3, 3, strides=[2, 2]))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for _ in range(blocks):
        x = net.residual_block(x, 8)
    both = net.add("Relu", net.normalised_conv(x, 16, 8, 3))
    centres = net.add("Conv", both, net.random(4, 16, 1, 1), net.random(4))
    boxes = net.add("Reshape", net.add("Abs", centres), net.dims(centres, 1, 4, -1))
    scores = net.add("Conv", both, net.random(3, 16, 1, 1), net.random(3))
    scores = net.add("Reshape", net.add("Sigmoid", scores), net.dims(scores, 1, 3, -1))
    rows = net.add("Transpose", boxes, perm=[0, 2, 1])
    most, overlap, least = net.constant(5, np.int64), net.constant(0.5), net.constant(0.5)
    kept = net.add("NonMaxSuppression", rows, scores, most, overlap, least, center_point_box=1)
    zero, one = net.constant([0], np.int64), net.constant([1], np.int64)
    places = net.add("Slice", kept, net.constant([2], np.int64), net.constant([3], np.int64), one)
    shown = net.add("Gather", net.add("Squeeze", rows, zero), net.add("Squeeze", places, one), axis=0)
    shown = net.add("Mul", shown, net.constant(2.0))
    return model(net.nodes, [value("image", (1, 3, "h", "w"))], [kept, net.add("Relu", shown), both], net.weights)


def encoder(layers: int = 2) -> Any:
    """Returns an encoder such as MiniLM of open batch and sequence."""
    net, x = Exported(), "x"
    for _ in range(layers):
        x = net.layer_norm(net.add("Add", x, net.attention(x)[0]))
        x = net.layer_norm(net.add("Add", x, net.feed_forward(x)))
    return model(net.nodes, [value("x", ("batch", "seq", WIDTH))], [x], net.weights)


def decoder(layers: int = 2) -> Any:
    """Returns a decoder with a cache of keys and values, of open batch, new and past lengths."""
    net, x, outputs = Exported(), "x", list[str]()
    inputs = [value("x", ("batch", "new", WIDTH))]
    for i in range(layers):
        past = [f"past_{kind}{i}" for kind in "kv"]
        inputs += [value(name, ("batch", HEADS, "past", WIDTH // HEADS)) for name in past]
        attended, cache = net.attention(net.layer_norm(x), past)
        x = net.add("Add", x, attended)
        x = net.add("Add", x, net.feed_forward(net.layer_norm(x)))
        outputs += cache
    return model(net.nodes, inputs, [net.layer_norm(x), *outputs], net.weights)


def branches() -> Any:
    """Returns an If whose branches are convolutions with batch normalisation of an outer tensor of open size."""
    bodies = []
    for kernel in (1, 3):
        net = Exported(rng=np.random.default_rng(kernel))
        y = net.add("Relu", net.normalised_conv("x", 4, 3, kernel))
        nodes = [*(_initial(name, array) for name, array in net.weights.items()), *net.nodes]
        bodies.append(helper.make_graph(nodes, f"kernel{kernel}", [], [value(y, ("batch", 4, "h", "w"))]))
    nodes = [node("If", ["c"], then_branch=bodies[0], else_branch=bodies[1])]
    return model(nodes, [value("c", (), np.bool_), value("x", ("batch", 3, "h", "w"))])


def loops(op_type: str) -> Any:
    """Returns a Loop or a Scan over rows of open length, whose body is a product, a bias and a Gelu in pieces."""
    net = Exported()
    after = net.gelu(net.dense("state", WIDTH, WIDTH))
    row = net.add("Add", after, "row" if op_type == "Scan" else "state")
    nodes = [*(_initial(name, array) for name, array in net.weights.items()), *net.nodes]
    state = ("batch", WIDTH)
    if op_type == "Scan":
        reads, writes = ([value(name, state) for name in names] for names in (("state", "row"), (after, row)))
        body = helper.make_graph(nodes, "body", reads, writes)
        inputs = [value("x", state), value("rows", ("n", *state))]
        outer = node("Scan", ["x", "rows"], ["last", "y"], body=body, num_scan_inputs=1)
    else:
        nodes.append(node("Identity", ["go"], ["on"]))
        reads = [value("i", (), np.int64), value("go", (), np.bool_), value("state", state)]
        writes = [value("on", (), np.bool_), value(after, state), value(row, state)]
        body = helper.make_graph(nodes, "body", reads, writes)
        inputs = [value("n", (), np.int64), value("x", state)]
        outer = node("Loop", ["n", "", "x"], ["last", "y"], body=body)
    return model([outer], inputs, ["last", "y"])


def _initial(name: str, array: Array) -> Any:
    return node("Constant", [], [name], value=numpy_helper.from_array(array, name))
