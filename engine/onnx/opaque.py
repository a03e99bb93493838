"""Operators that nobody implements, with shapes that the model or the caller tells: they are planned, and never run."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from engine.onnx.builder import GraphBuilder
from engine.onnx.declarations import Declarations
from engine.onnx.library import domain_of
from engine.onnx.model_names import Value
from engine.onnx.structures import Held, tensors_in
from engine.onnx.tensors import dtype_of
from engine.text.errors import ModelError, OptionError, UnsupportedError
from ops.schema.declared import declaring
from ops.schema.opaque import opaque_schema
from ops.tensor.dims import Dim
from ops.tensor.spec import TensorSpec

Key = tuple[str, str]
"""The domain and the name of an operator."""


@frozen(eq=False)
class OpaqueUse:
    """One use of an operator that nobody implements: its node, with names and values as they are in our graph.

    `inputs` are those of the node; `captured` are the values that graphs inside it read besides.
    """

    proto: Any
    name: str
    inputs: tuple[Value | None, ...]
    captured: tuple[Value, ...]
    outputs: tuple[str, ...]
    declarations: Declarations


@frozen(eq=False)
class OpaqueRules:
    """What is known of the outputs of operators that nobody implements.

    `likes` has the positions of the inputs that the outputs are like, one for all or one for each, by operator.
    `lengths` has the lengths of the dimensions that the inputs of the model name.
    """

    likes: Mapping[Key, tuple[int, ...]]
    lengths: Mapping[str, Dim | int]

    @classmethod
    def of(cls, infer: Mapping[str, str]) -> "OpaqueRules":
        """Reads rules such as {"acme.MyOp": "like:0"}. Raises OptionError."""
        if not isinstance(infer, Mapping) or not all(isinstance(text, str) for rule in infer.items() for text in rule):
            raise OptionError(f'infer is a dict of texts, such as {{"acme.MyOp": "like:0"}}, not {infer!r}')
        return cls({_key(operator): _like(operator, rule) for operator, rule in infer.items()}, {})

    def within(self, inputs: Sequence[Any], values: Mapping[str, Held]) -> "OpaqueRules":
        """Returns the rules with the lengths that the inputs of a GraphProto have."""
        lengths: dict[str, Dim | int] = {}
        for info in inputs:
            for value in tensors_in([values.get(info.name)]):
                dims = zip(info.type.tensor_type.shape.dim, value.shape, strict=False)
                lengths.update({dim.dim_param: length for dim, length in dims if dim.dim_param})
        return evolve(self, lengths=lengths)

    def check(self, unknown: Collection[Key]) -> None:
        """Raises OptionError for a rule for an operator that is none of the unknown ones of a model."""
        for domain, name in self.likes.keys() - unknown:
            operator = f"{domain or 'ai.onnx'}.{name}"
            raise OptionError(
                f"the model has no operator {operator} that nobody implements; leave out --infer {operator}"
            )

    def missing(self, proto: Any, declarations: Declarations) -> list[str]:
        """Returns the outputs of a node that are read, and of which nobody says the shape."""
        return [] if key_of(proto) in self.likes else declarations.missing(proto)

    def read(self, builder: GraphBuilder, use: OpaqueUse) -> tuple[Value | None, ...]:
        """Adds the operator, and returns its outputs; None for one that nobody reads, of which no shape is known.

        Raises UnsupportedError for an output of which no shape is known, and ModelError.
        """
        missing = self.missing(use.proto, use.declarations)
        if missing:
            raise UnsupportedError(
                f"nobody implements {shown(use.proto)} for these inputs, and the file does not say the shape of its "
                f"output {missing[0]!r}; {advice(use.proto)}"
            )
        specs = {i: spec for i in range(len(use.proto.output)) if (spec := self._spec(use, i)) is not None}
        if not specs:
            return ()
        operands = [v for v in (*use.inputs, *use.captured) if v is not None]
        names = [use.outputs[i] for i in specs]
        schema = opaque_schema(shown(use.proto))
        results = dict(
            zip(specs, builder.add(schema, operands, declaring([*specs.values()]), use.name, names), strict=True)
        )
        return tuple(results.get(i) for i in range(len(use.proto.output)))

    def _spec(self, use: OpaqueUse, output: int) -> TensorSpec | None:
        """Returns the spec of an output; None for one that is left out, or that nobody knows and nobody reads."""
        name = use.proto.output[output]
        likes = self.likes.get(key_of(use.proto))
        if not name:
            return None
        if likes is not None:
            return _spec_like(use, output, likes)
        declared = use.declarations.types.get(name)
        return None if declared is None else self._declared(use, name, declared)

    def _declared(self, use: OpaqueUse, name: str, declared: Any) -> TensorSpec:
        dims: list[Any] = []
        for axis, dim in enumerate(declared.shape.dim):
            length = dim.dim_value if dim.WhichOneof("value") == "dim_value" else self.lengths.get(dim.dim_param, -1)
            if not isinstance(length, Dim) and length < 0:
                named = f" ({dim.dim_param!r})" if dim.dim_param else ""
                raise UnsupportedError(
                    f"nobody implements {shown(use.proto)}, and no input tells the length of axis {axis}{named} of its "
                    f"output {name!r}; {advice(use.proto)}"
                )
            dims.append(length)
        return TensorSpec(tuple(dims), dtype_of(declared.elem_type, f"tensor {name!r}"))


def key_of(proto: Any) -> Key:
    """Returns the domain and the name of the operator of a node."""
    return domain_of(proto.domain), proto.op_type


def shown(proto: Any) -> str:
    """Returns the domain and the name of the operator of a node as a text for people, in one line."""
    return "".join(c if c.isprintable() else "?" for c in f"{domain_of(proto.domain) or 'ai.onnx'}.{proto.op_type}")


def advice(proto: Any) -> str:
    """Returns how a model with such a node can be planned all the same."""
    return f"to plan without running, say what it gives, such as --infer {shown(proto)}=like:0 (as its input 0)"


def _spec_like(use: OpaqueUse, output: int, likes: Sequence[int]) -> TensorSpec:
    if len(likes) > 1 and output >= len(likes):
        raise ModelError(f"{shown(use.proto)} has an output {output}, and the rule for it says only {len(likes)}")
    position = likes[output] if len(likes) > 1 else likes[0]
    value = use.inputs[position] if position < len(use.inputs) else None
    if value is None:
        raise ModelError(f"{shown(use.proto)} is to be like its input {position}, and has none there")
    return TensorSpec(value.shape, value.dtype)


def _key(operator: str) -> Key:
    domain, _, name = operator.rpartition(".")
    return domain_of(domain), name


def _like(operator: str, rule: str) -> tuple[int, ...]:
    if not re.fullmatch(r"like:\d{1,4}(,like:\d{1,4})*", rule):
        raise OptionError(
            f"the rule {rule!r} for {operator} is none; 'like:0' means as input 0, 'like:0,like:1' each output"
        )
    return tuple(int(part.removeprefix("like:")) for part in rule.split(","))
