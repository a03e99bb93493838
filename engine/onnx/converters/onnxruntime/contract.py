"""What a node of onnxruntime's own operators may have: the onnx package cannot check it."""

from collections.abc import Collection
from typing import Any

from attrs import field, frozen

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node
from engine.onnx.structures import Held
from engine.text.errors import ModelError

Versions = tuple[tuple[int, Converter | None], ...]
"""The converters of an operator, each with the version of the operator set it is for from."""


def contract(
    convert: Converter,
    *attributes: str,
    inputs: Collection[int] | int,
    outputs: Collection[int] = (0,),
    **only: Any,
) -> Versions:
    """Returns a converter that refuses what the given one does not read.

    `inputs` are the positions of inputs that are read, or how many are; `outputs` those of outputs that are computed.
    The attributes of `only` must have these values where they are there.
    """
    taken = range(inputs) if isinstance(inputs, int) else inputs

    def checked(node: Node) -> tuple[Held | None, ...]:
        for i, value in enumerate(node.inputs):
            if value is not None and i not in taken:
                raise node.refuse(f"input {i} is not supported")
        for i in range(len(node.outputs)):
            if node.uses_output(i) and i not in outputs:
                raise node.refuse(f"output {i} is not supported")
        for name, value in node.attrs.items():
            if name in only and value != only[name]:
                raise node.refuse(f"attribute {name!r} is {value!r}; only {only[name]!r} is supported")
            if name not in only and name not in attributes:
                raise node.refuse(f"attribute {name!r} is not supported")
        return convert(node)

    return ((1, checked),)


def required(node: Node, attribute: str) -> Any:
    """Returns an attribute that has no default. Raises ModelError where it is missing."""
    value = node.attr(attribute)
    if value is None:
        raise ModelError(f"attribute {attribute!r} is missing")
    return value


@frozen(eq=False)
class Step:
    """An operator of a chain: its schema, the operands behind the first one, attributes."""

    schema: str
    operands: tuple[Value, ...] = ()
    attrs: dict[str, Any] = field(factory=dict)


def in_chain(node: Node, value: Value, *steps: Step, output: int = 0) -> Value:
    """Adds operators, each on the result of the one before; the last one computes an output of the node."""
    for step in steps[:-1]:
        value = node.step(step.schema, value, *step.operands, **step.attrs)
    last = steps[-1]
    return node.output(output, last.schema, value, *last.operands, **last.attrs)
