"""One ONNX node with its operands looked up: what a converter works on."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import frozen

from engine.errors import ConstantNeededError, ModelError, UnsupportedError
from engine.importers.onnx_values import GraphBuilder, Value
from engine.var import Var
from ops.spec import Array


@frozen(eq=False)
class Node:
    """`inputs` has None where an optional input is left out, `outputs` has "" where nobody wants an output.

    `branch` converts a subgraph of the node, in the scope of the node, and gives its outputs. It may be told values of
    the subgraph's inputs, a builder of another graph to read it into, and a part of names that sets it apart.
    """

    name: str
    op_type: str
    input_names: tuple[str, ...]
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    builder: GraphBuilder
    branch: Callable[..., tuple[Value, ...]]

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.op_type})"

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute, or the default."""
        return self.attrs.get(name, default)

    def given(self, *names: str) -> dict[str, Any]:
        """Those of the attributes that the node has."""
        return {name: self.attrs[name] for name in names if name in self.attrs}

    def optional(self, index: int) -> Value | None:
        """The input, or None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def value(self, index: int) -> Value:
        """The input. Raises ModelError where it is left out."""
        found = self.optional(index)
        if found is None:
            raise ModelError(f"input {index} is missing")
        return found

    def operands(self) -> tuple[Value, ...]:
        """All inputs, none of which may be left out in the middle."""
        count = max((i + 1 for i, v in enumerate(self.inputs) if v is not None), default=0)
        return tuple(self.value(i) for i in range(count))

    def wants(self, index: int) -> bool:
        """Whether somebody wants the output."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def array(self, index: int, role: str) -> Array:
        """An input that must be constant, because it decides a shape. `role` is its name in ONNX."""
        found = self.value(index)
        if not isinstance(found, Var):
            return found
        tensor, sources = self.input_names[index], self.builder.sources(found)
        origin = f"computed from graph input {', '.join(map(repr, sources))}"
        if found.name in self.builder.graph.inputs:
            origin = "a graph input"
        message = f"{self}: input {role!r} decides a shape and must be constant, but tensor {tensor!r} is {origin}"
        raise ConstantNeededError(f"{message}; fix the value of {sources[0]!r} through constants=", tensor, sources)

    def integers(self, index: int, role: str) -> tuple[int, ...]:
        """A constant input as plain ints; a scalar counts as one."""
        return tuple(self.array(index, role).reshape(-1).tolist())

    def integer(self, index: int, role: str) -> int:
        """A constant input of one element. Raises ModelError for another number of them."""
        found = self.integers(index, role)
        if len(found) != 1:
            raise ModelError(f"input {role!r} has {len(found)} elements where one is wanted")
        return int(found[0])

    def optional_integers(self, index: int, role: str) -> tuple[int, ...] | None:
        """The same for an input that may be left out."""
        return None if self.optional(index) is None else self.integers(index, role)

    def step(self, schema: str, *values: Value, **attrs: Any) -> Value:
        """The first output of one of our operators, on the way to the result."""
        return self.builder.emit(schema, values, attrs, f"{self.name}/{schema}", ("",))[0]

    def last(self, schema: str, *values: Value, **attrs: Any) -> tuple[Value, ...]:
        """The outputs of the operator that makes what the node makes."""
        return self.builder.emit(schema, values, attrs, self.name, self.outputs)

    def like(self, number: Any, value: Value) -> Array:
        """A 0-d array of the dtype of `value`."""
        return np.asarray(number, dtype=value.dtype)

    def refuse(self, reason: str) -> UnsupportedError:
        """The error for what this importer does not do."""
        return UnsupportedError(f"{self}: {reason}")


Converter = Callable[[Node], tuple[Value, ...]]
"""Adds what a node computes to the graph and gives the outputs of the node."""


def direct(schema: str, **defaults: Any) -> Converter:
    """For an ONNX operator that is one of ours, attribute for attribute; `defaults` are ONNX's."""

    def convert(node: Node) -> tuple[Value, ...]:
        return node.last(schema, *node.operands(), **{k: node.attr(k, v) for k, v in defaults.items()})

    return convert
