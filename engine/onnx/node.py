"""One ONNX node with the values of its inputs: the argument of a converter."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from engine.graph.symbols import Derived
from engine.graph.var import Var
from engine.onnx.builder import GraphBuilder, Guesses
from engine.onnx.model_names import Value
from engine.onnx.structures import Held, tensor_in
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.symbolic.guesses import Guess
from ops.tensor.spec import Array

_MOST_NUMBERS = 2**16
"""The most elements of a constant that decide a shape."""


@frozen(eq=False)
class Node:
    """A node. `held` are its inputs, None where one is left out; `outputs` has "" where an output is not used.

    `branch` reads a subgraph of the node, in the scope of the node, and returns the values of its outputs. It takes the
    values of the subgraph's inputs, the builder of another graph to read it into, and a part for the names in it.
    """

    name: str
    op_type: str
    input_names: tuple[str, ...]
    held: tuple[Held | None, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any]
    builder: GraphBuilder
    branch: Callable[..., tuple[Held, ...]]

    def __str__(self) -> str:
        return f"node {self.name!r} ({self.op_type})"

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns the attribute, or the default."""
        return self.attrs.get(name, default)

    def present(self, *names: str) -> dict[str, Any]:
        """Returns those of the attributes that the node has."""
        return {name: self.attrs[name] for name in names if name in self.attrs}

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """Returns all inputs, None where one is left out. Raises ModelError for one that is no tensor."""
        return tuple(self.optional(i) for i in range(len(self.held)))

    def optional(self, index: int) -> Value | None:
        """Returns the input, or None where it is left out. Raises ModelError for one that is no tensor."""
        held = self.held[index] if index < len(self.held) else None
        return None if held is None else tensor_in(held, f"input {index}")

    def value(self, index: int) -> Value:
        """Returns the input. Raises ModelError where it is left out."""
        value = self.optional(index)
        if value is None:
            raise ModelError(f"input {index} is missing")
        return value

    def operands(self) -> tuple[Value, ...]:
        """Returns all inputs. Raises ModelError where one in the middle is left out."""
        count = max((i + 1 for i, v in enumerate(self.inputs) if v is not None), default=0)
        return tuple(self.value(i) for i in range(count))

    def uses_output(self, index: int) -> bool:
        """Returns whether the model uses the output."""
        return index < len(self.outputs) and bool(self.outputs[index])

    def array(self, index: int, role: str) -> Array:
        """Returns an input that must be constant. `role` is its name in ONNX.

        Raises ConstantNeededError, UnsupportedError.
        """
        value = self.value(index)
        tensor = self.input_names[index]
        if isinstance(value, Derived):
            reason = f"input {role!r} must be known when the model is read, but tensor {tensor!r} depends on dimensions"
            raise self.refuse(f"{reason} that the model leaves open; give their lengths through shapes=")
        if not isinstance(value, Var):
            return value
        sources = self.builder.sources(value)
        if not sources:
            raise self.refuse(f"input {role!r} decides a shape, and tensor {tensor!r} is too large to be computed now")
        origin = f"computed from graph input {', '.join(map(repr, sources))}"
        if value.name in self.builder.graph.inputs:
            origin = "a graph input"
        message = f"{self}: input {role!r} decides a shape and must be constant, but tensor {tensor!r} is {origin}"
        raise ConstantNeededError(f"{message}; fix the value of {sources[0]!r} through constants=", tensor, sources)

    def integers(self, index: int, role: str, guesses: Guesses | None = None) -> tuple[int, ...]:
        """Returns all elements of an input, a scalar as one. An element that has no number yet is a dimension.

        With `guesses` of its elements, the run may decide them. Without, the input must not be computed by the run.
        """
        value = self.value(index)
        may_wait = guesses is not None and self.builder.may_wait
        if isinstance(value, Derived) or (isinstance(value, Var) and may_wait):
            return self.builder.integers(value, guesses or no_guess)
        return tuple(_whole(number, role) for number in self.numbers(index, role))

    def numbers(self, index: int, role: str) -> tuple[Any, ...]:
        """Returns all elements of an input that must be constant. Raises ConstantNeededError, UnsupportedError."""
        array = self.array(index, role)
        if array.size > _MOST_NUMBERS:
            raise self.refuse(f"input {role!r} has {array.size} elements; at most {_MOST_NUMBERS} can decide a shape")
        return tuple(array.reshape(-1).tolist())

    def integer(self, index: int, role: str, guesses: Guesses | None = None) -> int:
        """Returns the element of an input as `integers` does. Raises ModelError unless there is exactly one."""
        number: int = _only(self.integers(index, role, guesses), role)
        return number

    def number(self, index: int, role: str) -> Any:
        """Returns the element of an input that must be constant. Raises ModelError unless there is exactly one."""
        return _only(self.numbers(index, role), role)

    def optional_integers(self, index: int, role: str, guesses: Guesses | None = None) -> tuple[int, ...] | None:
        """Returns all elements of an input as `integers` does, or None where it is left out."""
        return None if self.optional(index) is None else self.integers(index, role, guesses)

    def count(self, value: Value, guess: Guess, *inputs: tuple[int, str]) -> int:
        """Returns a scalar that a step of this node has computed, as a number or a dimension.

        Inside a body it must be known when the model is read: then the inputs (position, role) that decide it must be
        constant.
        """
        if isinstance(value, Var) and not self.builder.may_wait:
            for index, role in inputs:
                self.array(index, role)
        return self.builder.integers(value, lambda _: (guess,))[0]

    @property
    def variant(self) -> int:
        """Returns a number that differs for each dimension, to vary guesses."""
        return self.builder.graph.samples.invented

    def step(self, schema: str, *values: Value, **attrs: Any) -> Value:
        """Adds an operator in the middle of a conversion, and returns its first output."""
        return self.builder.emit(schema, values, attrs, f"{self.name}/{schema}", ("",))[0]

    def last(self, schema: str, *values: Value, **attrs: Any) -> tuple[Value, ...]:
        """Adds the operator that computes the outputs of the node, with their names, and returns its outputs."""
        return self.builder.emit(schema, values, attrs, self.name, self.outputs)

    def output(self, index: int, schema: str, *values: Value, **attrs: Any) -> Value:
        """Adds the operator that computes one output of the node, with its name, and returns it."""
        names = self.outputs[index : index + 1] or ("",)
        return self.builder.emit(schema, values, attrs, f"{self.name}/{schema}" if index else self.name, names)[0]

    def like(self, number: Any, value: Value) -> Array:
        """Returns a number as a 0-d array of the dtype of `value`."""
        return np.asarray(number, dtype=value.dtype)

    def refuse(self, reason: str) -> UnsupportedError:
        """Returns the error for something that is not supported."""
        return UnsupportedError(f"{self}: {reason}")


def no_guess(_: int) -> Sequence[Guess]:
    """Returns no guesses for the elements of a tensor."""
    return ()


Converter = Callable[[Node], tuple[Held | None, ...]]
"""A converter adds the operators of a node to the graph and returns the values of its outputs (None: not used)."""


def direct(schema: str, **defaults: Any) -> Converter:
    """Returns the converter of an ONNX operator that is one operator here, with equal attributes.

    `defaults` are the defaults of ONNX.
    """

    def convert(node: Node) -> tuple[Value, ...]:
        return node.last(schema, *node.operands(), **{k: node.attr(k, v) for k, v in defaults.items()})

    return convert


def _only(numbers: tuple[Any, ...], role: str) -> Any:
    if len(numbers) != 1:
        raise ModelError(f"input {role!r} has {len(numbers)} elements; it must have one")
    return numbers[0]


def _whole(number: Any, role: str) -> int:
    """Returns a number as an integer; a few operators take whole numbers of any element type."""
    if number != number // 1:
        raise ModelError(f"input {role!r} has {number}, which is no integer")
    return int(number)
