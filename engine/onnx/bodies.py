"""Graphs inside ONNX nodes, read into bodies: what they take from outside is captured, constants stay constants."""

from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from attrs import evolve, frozen

from engine.control.body import PlannedBody
from engine.control.deferred import Growth
from engine.graph.nested import InnerGraph
from engine.graph.var import Var
from engine.onnx.builder import GraphBuilder, Value
from engine.onnx.node import Node
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.schema.schema import Specs
from ops.tensor.spec import Array, TensorSpec


class NotStaticError(UnsupportedError):
    """A body in which something that only the run decides would have to be known beforehand."""


class BodyBuilder(GraphBuilder):
    """Builds the graph of a body."""

    def __init__(self, graph: InnerGraph, reserved: Collection[str], may_wait: bool) -> None:
        super().__init__(graph, reserved, may_wait)
        self._inner = graph

    def sources(self, var: Var) -> tuple[str, ...]:
        """The inputs of the body that a var is computed from; one of a graph around it counts as captured."""
        return super().sources(self._inner.own(var))


@frozen(eq=False)
class Reading:
    """A body that has been read, with its outputs. `declared` counts the inputs that the node feeds."""

    builder: GraphBuilder
    graph: InnerGraph
    declared: int
    outputs: tuple[Value, ...]

    def specs(self, first: int, last: int | None = None) -> Specs:
        """Of some of the outputs."""
        return tuple(TensorSpec(v.shape, v.dtype) for v in self.outputs[first:last])

    @property
    def captured(self) -> tuple[Var, ...]:
        """What it takes from outside, in the order of its inputs."""
        return self.graph.inputs_behind(self.declared)

    def own(self, captured: Sequence[Var]) -> None:
        """Lets the body take these as well."""
        for var in captured:
            self.graph.own(var)

    def body(self, outputs: Sequence[Value]) -> PlannedBody:
        """The body with these outputs."""
        for i, value in enumerate(outputs):
            self.graph.output(self.builder.var(value), f"{self.graph.name}:out{i}")
        self.graph.is_closed = True
        return PlannedBody(self.graph)


def read_body(
    node: Node,
    attribute: str,
    inputs: Sequence[TensorSpec | Array],
    captured: Sequence[Var] = (),
    *,
    may_wait: bool = False,
    growth: Growth | None = None,
) -> Reading:
    """Reads the graph of an attribute. An input is fed if a spec is given for it, and known if an array is.

    Behind them stand the inputs for what is `captured` whether it is used or not, and for what the body finds outside.
    Sizes inside may be left to the run if it `may_wait`; lengths of the inputs behind the first two may grow.
    Raises NotStaticError, ModelError, UnsupportedError, and ConstantNeededError for what an input of the model decides.
    """
    proto = graph_of(node, attribute, len(inputs))
    graph = InnerGraph(f"{node.name}/{attribute}", node.builder.graph)
    builder = BodyBuilder(graph, {o for n in proto.node for o in n.output}, may_wait and node.builder.may_wait)
    values: list[Value] = []
    for i, (info, given) in enumerate(zip(proto.input, inputs, strict=True)):
        if isinstance(given, TensorSpec):
            values.append(graph.input_like(info.name, given, growth.of(i - 2) if growth else {}))
        else:
            values.append(given)
    reading = Reading(builder, graph, len(graph.inputs), ())
    reading.own(captured)
    try:
        outputs = node.branch(proto, values, builder)
    except ConstantNeededError as error:
        _from_outside(node, graph, error)
    return evolve(reading, outputs=tuple(graph.own(v) if isinstance(v, Var) else v for v in outputs))


def graph_of(node: Node, attribute: str, inputs: int) -> Any:
    """The GraphProto of an attribute. Raises ModelError where it does not take so many inputs."""
    proto = node.attr(attribute)
    if proto is None or not hasattr(proto, "node"):
        raise ModelError(f"attribute {attribute!r} is no graph")
    if len(proto.input) != inputs:
        raise ModelError(f"{attribute} takes {len(proto.input)} inputs, and {inputs} are wanted")
    return proto


def _from_outside(node: Node, graph: InnerGraph, error: ConstantNeededError) -> NoReturn:
    """Names the inputs of the model that decide the tensor, if it depends on nothing that changes inside the body."""
    around = node.builder.graph
    outside = {
        inner.name: around.own(var) if isinstance(around, InnerGraph) else var for var, inner in graph.captured.items()
    }
    if not all(name in outside for name in error.inputs):
        message = f"{node}: inside its body, tensor {error.tensor!r} decides a shape and is known only at run time"
        raise NotStaticError(message) from error
    sources = tuple(dict.fromkeys(s for name in error.inputs for s in node.builder.sources(outside[name])))
    raise ConstantNeededError(str(error), error.tensor, sources) from error
