"""Reads graphs inside ONNX nodes into bodies, for the converters of If, Loop and Scan.

Vars of the graphs around a body become captured inputs of it; constants stay constants.
"""

from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from attrs import evolve, frozen

from engine.control.body import PlannedBody
from engine.control.deferred import Growth
from engine.graph.nested import InnerGraph
from engine.graph.var import Var
from engine.onnx.builder import GraphBuilder
from engine.onnx.model_names import Value
from engine.onnx.node import Node
from engine.onnx.structures import TENSOR, Layout, layout_of, tensors_in
from engine.text.errors import ConstantNeededError, ModelError, UnsupportedError
from ops.schema.schema import Specs
from ops.tensor.spec import Array, TensorSpec


class NotStaticError(UnsupportedError):
    """A body needs something beforehand that only the run decides."""


class BodyBuilder(GraphBuilder):
    """The builder of the graph of a body."""

    def __init__(
        self, graph: InnerGraph, around: GraphBuilder, reserved: Collection[str], may_wait: bool, repeats: bool
    ) -> None:
        super().__init__(graph, around.allowance, reserved, may_wait and around.may_wait)
        self.repeats = repeats or around.repeats
        self._inner = graph

    def sources(self, var: Var) -> tuple[str, ...]:
        """Returns the inputs of the body that a var is computed from, captured ones included."""
        return super().sources(self._inner.own(var))


@frozen(eq=False)
class Reading:
    """A body that has been read, with its outputs. `declared` counts the inputs that the node feeds.

    `layouts` has the forms of the values that the outputs are the tensors of.
    """

    builder: GraphBuilder
    graph: InnerGraph
    declared: int
    outputs: tuple[Value, ...]
    layouts: tuple[Layout, ...] = ()

    def specs(self, first: int, last: int | None = None) -> Specs:
        """Returns the specs of some of the outputs."""
        return tuple(TensorSpec(v.shape, v.dtype) for v in self.outputs[first:last])

    @property
    def is_plain(self) -> bool:
        """Returns whether all outputs are tensors."""
        return all(layout == TENSOR for layout in self.layouts)

    @property
    def captured(self) -> tuple[Var, ...]:
        """Returns the captured vars, in the order of the inputs."""
        return self.graph.inputs_behind(self.declared)

    def own(self, captured: Sequence[Var]) -> None:
        """Makes the body capture these vars too."""
        for var in captured:
            self.graph.own(var)

    def body(self, outputs: Sequence[Value]) -> PlannedBody:
        """Closes the graph with these outputs, and returns the body."""
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
    repeats: bool = True,
) -> Reading:
    """Reads the graph of an attribute. Each of `inputs` is a spec if the node feeds it, and an array if it is constant.

    Behind them stand the captured inputs: those for `captured`, used or not, and those for other vars around the body.
    If it `may_wait`, the run may decide sizes inside. `growth` has the lengths that change from one iteration to the
    next, for the inputs behind the first two. A body that `repeats` runs several times. Raises NotStaticError,
    ModelError, UnsupportedError, and ConstantNeededError for something that an input of the model decides.
    """
    proto = graph_of(node, attribute, len(inputs))
    graph = InnerGraph(f"{node.name}/{attribute}", node.builder.graph)
    builder = BodyBuilder(graph, node.builder, {o for n in proto.node for o in n.output}, may_wait, repeats)
    values: list[Value] = []
    for i, (info, value) in enumerate(zip(proto.input, inputs, strict=True)):
        if isinstance(value, TensorSpec):
            values.append(graph.input_like(info.name, value, growth.of(i - 2) if growth else {}))
        else:
            values.append(value)
    reading = Reading(builder, graph, len(graph.inputs), ())
    reading.own(captured)
    try:
        outputs = node.branch(proto, values, builder)
    except ConstantNeededError as error:
        _raise_outside(node, graph, error)
    tensors = tuple(graph.own(v) if isinstance(v, Var) else v for v in tensors_in(outputs))
    return evolve(reading, outputs=tensors, layouts=tuple(map(layout_of, outputs)))


def graph_of(node: Node, attribute: str, inputs: int) -> Any:
    """Returns the GraphProto of an attribute. Raises ModelError unless it has this number of inputs."""
    proto = node.attr(attribute)
    if proto is None or not hasattr(proto, "node"):
        raise ModelError(f"attribute {attribute!r} is no graph")
    if len(proto.input) != inputs:
        raise ModelError(f"{attribute} takes {len(proto.input)} inputs, and {inputs} are needed")
    return proto


def _raise_outside(node: Node, graph: InnerGraph, error: ConstantNeededError) -> NoReturn:
    """Raises an error that names the inputs of the model that decide the tensor, if nothing inside the body does."""
    around = node.builder.graph
    outside = {
        inner.name: around.own(var) if isinstance(around, InnerGraph) else var for var, inner in graph.captured.items()
    }
    if not all(name in outside for name in error.inputs):
        message = f"{node}: inside its body, tensor {error.tensor!r} decides a shape and is known only at run time"
        raise NotStaticError(message) from error
    sources = tuple(dict.fromkeys(s for name in error.inputs for s in node.builder.sources(outside[name])))
    raise ConstantNeededError(str(error), error.tensor, sources) from error
