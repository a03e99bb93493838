"""A graph that evaluates each operator when it is added, so that functions on vars can be called without an engine."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from ops.schema.schema import OpSchema, evaluate
from ops.tensor.spec import Array, TensorSpec, spec_of


class EagerGraph:
    """Evaluates operators as they are added, and lists their names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def add(self, schema: OpSchema, inputs: Sequence["EagerVar"], attrs: Mapping[str, Any]) -> tuple["EagerVar", ...]:
        """Returns the outputs."""
        self.names.append(schema.name)
        return tuple(EagerVar(y, self) for y in evaluate(schema, *(v.array for v in inputs), **attrs))

    def constant(self, array: Any) -> "EagerVar":
        """Returns a var of that array."""
        return EagerVar(np.asarray(array), self)


@frozen(eq=False)
class EagerVar:
    """A var that has its elements already."""

    array: Array
    graph: EagerGraph = field(factory=EagerGraph)

    @property
    def spec(self) -> TensorSpec:
        """Returns its shape and element type."""
        return spec_of(self.array)
