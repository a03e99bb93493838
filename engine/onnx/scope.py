"""Scopes of names while a model is read, and the order of the nodes in one.

The main graph, each branch inside it, and each body of a function have a scope.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from engine.graph.order import stable_order
from engine.onnx.declarations import Declarations, reads
from engine.onnx.structures import Held
from engine.text.errors import ModelError


@frozen(eq=False)
class Scope:
    """The values of names in one graph. `values` grows as nodes are read; None is an input that a call left out.

    `prefix` stands in front of the names in our graph. `arguments` are the attributes of the call where the scope is
    the body of a function. `depth` is the number of scopes around this one. `declarations` are those of its graph.
    """

    opsets: Mapping[str, int]
    declarations: Declarations
    prefix: str = ""
    outer: "Scope | None" = None
    arguments: Mapping[str, Any] | None = None
    depth: int = 0
    values: dict[str, Held | None] = field(factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values or (self.outer is not None and name in self.outer)

    def get(self, name: str) -> Held | None:
        """Returns the value of a name, in this scope or one around it; None where there is none."""
        if name in self.values or self.outer is None:
            return self.values.get(name)
        return self.outer.get(name)


def check_unique(names: Iterable[str], what: str) -> None:
    """Raises ModelError for a name that stands twice in `names`; `what` says what the names are of."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"{what} {name!r} is made twice")
        seen.add(name)


def sorted_nodes(nodes: Sequence[Any], names: Sequence[str], scope: Scope) -> tuple[int, ...]:
    """Returns the positions of nodes in a runnable order.

    Raises ModelError for a tensor that no node computes, and CycleError.
    """
    maker = {out: i for i, node in enumerate(nodes) for out in node.output if out}
    waits: list[set[int]] = []
    for node, shown in zip(nodes, names, strict=True):
        taken = reads(node)
        missing = sorted(n for n in taken if n not in maker and n not in scope)
        if missing:
            raise ModelError(f"node {shown!r} ({node.op_type}) reads tensor {missing[0]!r}, which nothing makes")
        waits.append({maker[n] for n in taken if n in maker})
    return stable_order(waits, names)
