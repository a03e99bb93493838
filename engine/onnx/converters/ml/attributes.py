"""Attributes of nodes of `ai.onnx.ml`, which are lists that belong together, and operands in the form they want."""

from typing import Any

import numpy as np

from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.onnx.tensors import array_of
from engine.text.errors import ModelError
from ops.tensor.spec import Array
from ops.trees.args import NAN_IS_TRUE

SINGLE, DOUBLE = np.dtype("float32"), np.dtype("float64")


def integers(node: Node, name: str) -> Array:
    """Returns an attribute with integers; empty where it is left out."""
    return np.array(node.attr(name, ()), np.int64)


def reals(node: Node, name: str) -> Array:
    """Returns an attribute with numbers, which may be a tensor of that name with `_as_tensor`; empty where left out."""
    tensor = node.attr(f"{name}_as_tensor")
    return np.array(node.attr(name, ()), SINGLE) if tensor is None else tensor_of(tensor, f"{name}_as_tensor")


def tensor_of(proto: Any, name: str) -> Array:
    """Returns the numbers of an attribute that is a tensor, in one dimension."""
    return array_of(proto, f"attribute {name!r}").reshape(-1)


def same_length(**arrays: Array) -> None:
    """Raises ModelError where attributes that belong together have different lengths."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ModelError(f"these attributes must have as many elements as each other: {shown}")


def tests_of(node: Node, codes: Array) -> Array:
    """Returns the tests of nodes of trees: codes, with the bit that says where NaN goes."""
    tracks = integers(node, "nodes_missing_value_tracks_true")
    if not len(tracks):
        return codes
    same_length(nodes_modes=codes, nodes_missing_value_tracks_true=tracks)
    return np.where(tracks != 0, codes + NAN_IS_TRUE, codes)


def rows(node: Node, *, keep_double: bool = False) -> Value:
    """Returns the first input as rows of real numbers; a vector is one row."""
    x = node.value(0)
    if len(x.shape) == 1:
        x = node.step("reshape", x, shape=(1, x.shape[0]))
    if len(x.shape) != 2:
        raise ModelError(f"input 0 must have one or two dimensions; its shape is {x.shape}")
    return as_type(node, x, DOUBLE if keep_double and x.dtype == DOUBLE else SINGLE)


def as_type(node: Node, value: Value, dtype: Any) -> Value:
    """Returns a value in an element type."""
    return value if value.dtype == dtype else node.step("cast", value, to=np.dtype(dtype))


def named(node: Node, output: int, value: Value) -> Value:
    """Returns a value with the name of an output of the node."""
    return node.output(output, "identity", value)
