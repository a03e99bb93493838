"""Names while a model is read: the main graph, a branch inside it, the body of a function."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from engine.graph.order import stable_order
from engine.onnx.values import Value
from engine.text.errors import ModelError


@frozen(eq=False)
class Scope:
    """`values` grows as nodes are converted; None stands for an input of a function that its caller left out.

    `prefix` goes in front of names, `arguments` are the attributes of the function that is being read, `depth` counts
    the scopes around this one.
    """

    opsets: Mapping[str, int]
    prefix: str = ""
    outer: "Scope | None" = None
    arguments: Mapping[str, Any] | None = None
    depth: int = 0
    values: dict[str, Value | None] = field(factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values or (self.outer is not None and name in self.outer)

    def get(self, name: str) -> Value | None:
        """The value of that name, here or in a scope around this one; None where there is none."""
        if name in self.values or self.outer is None:
            return self.values.get(name)
        return self.outer.get(name)


def reads(proto: Any) -> set[str]:
    """Names that a node takes from its scope: its inputs, and what its branches take from outside themselves."""
    found = {name for name in proto.input if name}
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            made = {name for n in graph.node for name in n.output}
            made |= {i.name for i in graph.input} | {t.name for t in graph.initializer}
            taken = {name for n in graph.node for name in reads(n)} | {o.name for o in graph.output}
            found |= taken - made
    return found - {""}


def check_unique(names: Iterable[str], what: str) -> None:
    """Raises ModelError for a name that is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"{what} {name!r} is made twice")
        seen.add(name)


def sorted_nodes(nodes: Sequence[Any], names: Sequence[str], scope: Scope) -> tuple[int, ...]:
    """Positions of nodes in a runnable order. Raises ModelError for a tensor that nobody makes, CycleError."""
    maker = {out: i for i, node in enumerate(nodes) for out in node.output if out}
    waits: list[set[int]] = []
    for node, shown in zip(nodes, names, strict=True):
        taken = reads(node)
        missing = sorted(n for n in taken if n not in maker and n not in scope)
        if missing:
            raise ModelError(f"node {shown!r} ({node.op_type}) reads tensor {missing[0]!r}, which nothing makes")
        waits.append({maker[n] for n in taken if n in maker})
    return stable_order(waits, names)
