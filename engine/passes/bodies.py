"""Bodies of control flow: each is a graph inside an operator, and all passes run on it as well."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from engine.graph.graph import Graph
from engine.passes.base import LAST_BITS, Pass
from engine.passes.edit import Edit

BODIES = "bodies"
"""The name of the pass, and of its group."""


@frozen(eq=False)
class BodiesPass(Pass):
    """The pass that puts what `optimise` makes of each body in its place; a body keeps its inputs and outputs."""

    optimise: Callable[[Graph], Graph]
    name: str = BODIES
    tolerance: float = LAST_BITS

    def apply(self, edit: Edit) -> None:
        """Replaces the bodies that change."""
        for operator_id in edit.operator_ids():
            attrs = edit.operator(operator_id).attrs
            bodies = {name: self._body(value) for name, value in attrs.items()}
            changed = {name: value for name, value in bodies.items() if value is not attrs[name]}
            if changed:
                edit.set_bodies(operator_id, changed)

    def _body(self, value: Any) -> Any:
        """Returns an attribute: a body that is planned beforehand has a graph, one that runs in stages is a graph."""
        before = value if isinstance(value, Graph) else getattr(value, "graph", None)
        if not isinstance(before, Graph):
            return value
        after = self.optimise(before)
        if after is before:
            return value
        return after if before is value else type(value)(after)
