"""One ONNX node with its operands looked up: what a converter works on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.symbols import Derived
from engine.graph.var import Var
from engine.onnx.values import GraphBuilder, Guesses, Value
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.symbolic.guesses import Guess
from ops.tensor.spec import Array


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
        """An input that must be constant. `role` is its name in ONNX. Raises ConstantNeededError, UnsupportedError."""
        found = self.value(index)
        tensor = self.input_names[index]
        if isinstance(found, Derived):
            reason = f"input {role!r} must be known when the model is read, but tensor {tensor!r} depends on dimensions"
            raise self.refuse(f"{reason} that the model leaves open; give their lengths through shapes=")
        if not isinstance(found, Var):
            return found
        sources = self.builder.sources(found)
        origin = f"computed from graph input {', '.join(map(repr, sources))}"
        if found.name in self.builder.graph.inputs:
            origin = "a graph input"
        message = f"{self}: input {role!r} decides a shape and must be constant, but tensor {tensor!r} is {origin}"
        raise ConstantNeededError(f"{message}; fix the value of {sources[0]!r} through constants=", tensor, sources)

    def integers(self, index: int, role: str, guesses: Guesses | None = None) -> tuple[int, ...]:
        """All elements of an input; a scalar counts as one. Dimensions stand for what is not known yet.

        With `guesses` of what they might be, only the run may decide them; without, the input must not be computed.
        """
        found = self.value(index)
        late = guesses is not None and self.builder.may_wait
        if isinstance(found, Derived) or (isinstance(found, Var) and late):
            return self.builder.integers(found, guesses or no_idea)
        return tuple(self.array(index, role).reshape(-1).tolist())

    def integer(self, index: int, role: str, guesses: Guesses | None = None) -> int:
        """The same for an input of one element. Raises ModelError for another number of them."""
        found = self.integers(index, role, guesses)
        if len(found) != 1:
            raise ModelError(f"input {role!r} has {len(found)} elements where one is wanted")
        return found[0]

    def optional_integers(self, index: int, role: str, guesses: Guesses | None = None) -> tuple[int, ...] | None:
        """The same for an input that may be left out."""
        return None if self.optional(index) is None else self.integers(index, role, guesses)

    def count(self, value: Value, guess: Guess, *inputs: tuple[int, str]) -> int:
        """What a scalar says that this node computed on the way: a number or a dimension.

        Inside a body it must be known: the inputs (position, role) that decide it then have to be constant.
        """
        if isinstance(value, Var) and not self.builder.may_wait:
            for index, role in inputs:
                self.array(index, role)
        return self.builder.integers(value, lambda _: (guess,))[0]

    @property
    def turn(self) -> int:
        """A number that is another one for each dimension, to vary guesses."""
        return self.builder.graph.samples.made

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


def no_idea(_: int) -> Sequence[Guess]:
    """Nothing is known of what numbers a tensor might hold."""
    return ()


Converter = Callable[[Node], tuple[Value, ...]]
"""Adds what a node computes to the graph and gives the outputs of the node."""


def direct(schema: str, **defaults: Any) -> Converter:
    """For an ONNX operator that is one of ours, attribute for attribute; `defaults` are ONNX's."""

    def convert(node: Node) -> tuple[Value, ...]:
        return node.last(schema, *node.operands(), **{k: node.attr(k, v) for k, v in defaults.items()})

    return convert
