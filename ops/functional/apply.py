"""How a function on vars adds a node to their graph. A graph is known here by what it does, not by its class."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from ops.schema.schema import OpSchema
from ops.tensor.dims import Dim
from ops.tensor.errors import ArityError
from ops.tensor.spec import Array, TensorSpec


class GraphLike(Protocol):
    """A graph to which operators and constants can be added."""

    @property
    def constants(self) -> Mapping[Any, Array]:
        """Arrays that never change, by var."""

    def add(self, schema: OpSchema, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Adds an operator; returns its outputs."""

    def constant(self, array: Any) -> Any:
        """Adds a constant."""

    def data_dim(self, var: Any, index: int = 0, samples: Sequence[int] = ()) -> Any:
        """An element of an integer var as a dimension; `samples` are numbers that it might be."""


class VarLike(Protocol):
    """A var: a tensor of a graph."""

    @property
    def graph(self) -> Any:
        """The graph it belongs to (GraphLike)."""

    @property
    def spec(self) -> TensorSpec:
        """Shape and dtype."""


V = TypeVar("V", bound=VarLike)
Operand = Any
"""A var, an array, or a plain number (which takes the dtype of the first var)."""


def is_var(value: object) -> bool:
    """Whether a value is a var of some graph."""
    return hasattr(value, "graph") and hasattr(value, "spec")


def apply(schema: OpSchema, operands: Sequence[Operand], **attrs: Any) -> tuple[Any, ...]:
    """Adds the operator to the graph of its first var; arrays and numbers become constants. Returns all outputs."""
    first = next((o for o in operands if is_var(o)), None)
    if first is None:
        raise ArityError(f"{schema.name}: at least one operand must be a var of a graph")
    graph = cast(GraphLike, first.graph)
    return graph.add(schema, [o if is_var(o) else graph.constant(_array(o, first.spec)) for o in operands], attrs)


def apply1(schema: OpSchema, like: V, *more: Operand, **attrs: Any) -> V:
    """The same for operators of one output whose first operand is a var."""
    return cast(V, apply(schema, (like, *more), **attrs)[0])


def _array(value: Any, spec: TensorSpec) -> Array | Dim:
    if isinstance(value, Dim):
        return value
    if isinstance(value, (bool, int, float)):
        return np.asarray(value, dtype=spec.dtype)
    return np.asarray(value)
