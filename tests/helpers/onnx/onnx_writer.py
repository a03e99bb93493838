"""A graph as an ONNX model: the way back of the importer, of which it shares nothing, for what networks are made of.

Parameters are inputs, and what they hold after the run are further outputs.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from attrs import field, frozen
from onnx import helper, numpy_helper

from engine import Graph, Operator, Var
from ops.tensor.spec import Array

OPSET, IR_VERSION = 22, 10
_POSITIONS = {"bias": 3, "lengths": 4, "h": 5, "c": 6, "peepholes": 7}
"""Of the optional inputs of LSTM."""


@frozen
class Written:
    """A node: what it reads is a tensor of the graph, or an array that ONNX takes as an input, or left out (None)."""

    op_type: str
    inputs: Sequence[Var | Array | None]
    attributes: Mapping[str, Any] = {}
    skipped: int = 0
    """Outputs in front of ours that nobody wants."""


@frozen
class Rule:
    """A rule for writing the operators of a schema. Raises KeyError for an attribute that it does not mention."""

    op_type: str
    attributes: Mapping[str, str] = field(factory=dict)
    """ONNX's name by ours; "" for what the number of outputs tells. Empty tuples are left out."""
    lists: tuple[str, ...] = ()
    """Attributes that are inputs in ONNX, in its order."""

    def __call__(self, operator: Operator) -> Written:
        """Returns the node."""
        attributes = {k: v for k, v in operator.attrs.items() if k not in self.lists}
        named = {self.attributes[k]: v for k, v in attributes.items()}
        lists = [np.array(operator.attrs[k], np.int64) for k in self.lists]
        kept = {k: _plain(v) for k, v in named.items() if k and v != ()}
        return Written(self.op_type, [*operator.inputs, *lists], kept)


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


def _cast(operator: Operator) -> Written:
    return Written("Cast", operator.inputs, {"to": helper.np_dtype_to_tensor_dtype(operator.outputs[0].dtype)})


def _reshape(operator: Operator) -> Written:
    shape = np.array(operator.outputs[0].shape, np.int64)
    return Written("Reshape", [*operator.inputs, shape], {"allowzero": 1})


def _lstm(operator: Operator) -> Written:
    attrs = operator.attrs
    inputs: list[Var | None] = [*operator.inputs[:3], *[None] * 5]
    for name, var in zip(attrs["given"], operator.inputs[3:], strict=True):
        inputs[_POSITIONS[name]] = var
    if attrs["activations"] or attrs["clip"] is not None:
        raise KeyError("activations and clip are not written")
    hidden = operator.inputs[2].shape[-1]
    named = {k: _plain(attrs[k]) for k in ("direction", "input_forget", "layout")} | {"hidden_size": hidden}
    return Written("LSTM", inputs, named, skipped=0 if attrs["with_y"] else 1)


_WINDOW = _same("auto_pad", "dilations", "kernel_shape", "pads", "strides")
_PLAIN = {
    "abs": "Abs",
    "add": "Add",
    "clip": "Clip",
    "div": "Div",
    "global_average_pool": "GlobalAveragePool",
    "less_or_equal": "LessOrEqual",
    "matmul": "MatMul",
    "mean": "Mean",
    "mul": "Mul",
    "neg": "Neg",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "sub": "Sub",
    "sum": "Sum",
    "tanh": "Tanh",
    "where": "Where",
}
_RULES: Mapping[str, Callable[[Operator], Written]] = {
    **{schema: Rule(op_type) for schema, op_type in _PLAIN.items()},
    "average_pool": Rule("AveragePool", _WINDOW | _same("ceil_mode", "count_include_pad")),
    "batch_norm": Rule("BatchNormalization", _same("epsilon")),
    "cast": _cast,
    "concat": Rule("Concat", _same("axis")),
    "conv": Rule("Conv", _WINDOW | _same("group")),
    "conv_transpose": Rule("ConvTranspose", _WINDOW | _same("group", "output_padding", "output_shape")),
    "gather": Rule("Gather", _same("axis")),
    "gelu": Rule("Gelu", _same("approximate")),
    "gemm": Rule("Gemm", _same("alpha", "beta") | {"trans_a": "transA", "trans_b": "transB"}),
    "layer_norm": Rule("LayerNormalization", _same("axis", "epsilon") | {"with_stats": ""}),
    "leaky_relu": Rule("LeakyRelu", _same("alpha")),
    "lstm": _lstm,
    "max_pool": Rule("MaxPool", _WINDOW | _same("ceil_mode", "storage_order") | {"with_indices": ""}),
    "reshape": _reshape,
    "scatter_nd": Rule("ScatterND", _same("reduction")),
    "slice": Rule("Slice", lists=("starts", "ends", "axes", "steps")),
    "softmax": Rule("Softmax", _same("axis")),
    "split": Rule("Split", _same("axis"), lists=("sizes",)),
    "transpose": Rule("Transpose", _same("perm")),
}


def to_onnx(graph: Graph, *, weights: bool = True) -> Any:
    """Returns an onnx.ModelProto; its outputs are those of the graph, then the contents of updated parameters.

    Without `weights` the constants are further inputs, so that nobody copies them or folds them into others. Raises
    KeyError for an operator that is not written, and what onnx's checker raises.
    """
    held = {var.name: array for var, array in graph.constants.items()} if weights else {}
    nodes = []
    for operator in graph.operators:
        node, lists = _node(operator)
        nodes.append(node)
        held |= lists
    results = [*graph.outputs.values(), *graph.updates.values()]
    named = [f"result:{i}" for i in range(len(results))]
    nodes += [helper.make_node("Identity", [var.name], [name]) for var, name in zip(results, named, strict=True)]
    sources = [*graph.inputs.values(), *graph.parameters, *(() if weights else graph.constants)]
    fed = [_info(var.name, var) for var in sources]
    outputs = [_info(name, var) for name, var in zip(named, results, strict=True)]
    tensors = [numpy_helper.from_array(array, name) for name, array in held.items()]
    body = helper.make_graph(nodes, graph.name, fed, outputs, tensors)
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model, full_check=True)
    return model


def _node(operator: Operator) -> tuple[Any, dict[str, Array]]:
    """Returns a NodeProto, and the arrays that only it reads, by name."""
    written, names, lists = _RULES[operator.schema.name](operator), list[str](), dict[str, Array]()
    for i, read in enumerate(written.inputs):
        if isinstance(read, np.ndarray):
            names.append(f"{operator.name}/input:{i}")
            lists[names[-1]] = read
        else:
            names.append("" if read is None else read.name)
    outputs = [""] * written.skipped + [var.name for var in operator.outputs]
    return helper.make_node(written.op_type, names, outputs, operator.name, **written.attributes), lists


def _info(name: str, var: Var) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(var.dtype), var.shape)
