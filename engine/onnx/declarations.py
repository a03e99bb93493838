"""What a graph of a model says of its own tensors: their types and shapes, and which of them are read."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen


def reads(proto: Any) -> set[str]:
    """Returns the names that a node reads from its scope: its inputs, and the names that its branches do not define."""
    names = {name for name in proto.input if name}
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            defined = {name for n in graph.node for name in n.output}
            defined |= {i.name for i in graph.input} | {t.name for t in graph.initializer}
            taken = {name for n in graph.node for name in reads(n)} | {o.name for o in graph.output}
            names |= taken - defined
    return names - {""}


@frozen(eq=False, slots=False)
class Declarations:
    """The declarations of a GraphProto or a FunctionProto, which are looked at only where they are needed."""

    proto: Any

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """Returns the tensor types of the tensors whose shape is declared, by name."""
        outputs = (o for o in self.proto.output if hasattr(o, "type"))  # those of a function are names
        return {
            info.name: info.type.tensor_type for info in (*self.proto.value_info, *outputs) if _has_shape(info.type)
        }

    @cached_property
    def read(self) -> frozenset[str]:
        """Returns the names of the tensors that a node reads, or that are outputs."""
        read = {name for node in self.proto.node for name in reads(node)}
        return frozenset(read | {getattr(o, "name", o) for o in self.proto.output})

    def missing(self, node: Any) -> list[str]:
        """Returns the outputs of a node that are read, and of which no shape is declared."""
        return [name for name in node.output if name in self.read and name not in self.types]


def nodes_in(graph: Any) -> Iterator[tuple[Any, Declarations]]:
    """Yields the nodes of a GraphProto, and of the graphs inside them, each with the declarations of its own graph."""
    declarations = Declarations(graph)
    for proto in graph.node:
        yield proto, declarations
        for attribute in proto.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_in(inner)


def _has_shape(type_: Any) -> bool:
    return bool(type_.WhichOneof("value") == "tensor_type" and type_.tensor_type.HasField("shape"))
