"""Adds operators to graphs, for the functions of all families. A graph is any object with the methods of GraphLike."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ops.schema.schema import OpSchema
from ops.tensor.dims import Dim
from ops.tensor.errors import ArityError, DtypeError
from ops.tensor.spec import BOOL, INTEGERS, NARROW_INTEGERS, Array, TensorSpec, as_data


class GraphLike(Protocol):
    """A graph to which operators and constants can be added."""

    @property
    def constants(self) -> Mapping[Any, Array]:
        """Returns the arrays that never change, by var."""

    def add(self, schema: OpSchema, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Adds an operator; returns its outputs."""

    def constant(self, array: Any) -> Any:
        """Adds a constant."""

    def data_dim(self, var: Any, index: int = 0, samples: Sequence[int] = ()) -> Any:
        """Returns an element of an integer var as a dimension; `samples` are numbers that it might be."""


class VarLike(Protocol):
    """A var: a tensor of a graph."""

    @property
    def graph(self) -> Any:
        """Returns the graph that the var belongs to (a GraphLike)."""

    @property
    def spec(self) -> TensorSpec:
        """Returns the shape and the dtype of the var."""


V = TypeVar("V", bound=VarLike)
Operand = Any
"""A var, an array, or a plain number (which takes the dtype of the first var)."""
Mixed: TypeAlias = V | Array | float
"""An operand, as a type for type checkers: a function whose operands have this type returns the type of its vars."""


def is_var(value: object) -> bool:
    """Returns whether a value is a var of some graph."""
    return hasattr(value, "graph") and hasattr(value, "spec")


def apply(schema: OpSchema, operands: Sequence[Operand], **attrs: Any) -> tuple[Any, ...]:
    """Adds the operator to the graph of its first var; arrays and numbers become constants. Returns all outputs.

    Raises ArityError where no operand is a var.
    """
    first = next((o for o in operands if is_var(o)), None)
    if first is None:
        raise ArityError(f"{schema.name}: at least one operand must be a var of a graph")
    graph = cast(GraphLike, first.graph)
    return graph.add(schema, [o if is_var(o) else graph.constant(_array(o, first.spec)) for o in operands], attrs)


def apply1(schema: OpSchema, first: V, *more: Operand, **attrs: Any) -> V:
    """Adds an operator of one output whose first operand is a var. Returns the output."""
    return cast(V, apply(schema, (first, *more), **attrs)[0])


def combine(schema: OpSchema, *operands: Mixed[V], **attrs: Any) -> V:
    """Adds an operator of one output of whose operands any may be the var. Returns the output; raises ArityError."""
    return cast(V, apply(schema, operands, **attrs)[0])


def typed(value: Operand, dtype: npt.DTypeLike) -> Operand:
    """Returns a number as an array of an element type, and a var as it is."""
    return value if is_var(value) else as_data(value, dtype)


def _array(value: Any, spec: TensorSpec) -> Array | Dim:
    if isinstance(value, Dim):
        return value
    if isinstance(value, (bool, int, float)):
        return _number(value, spec.dtype)
    return as_data(value)


def _number(value: float, dtype: np.dtype[Any]) -> Array:
    """Returns a number of an element type. Raises DtypeError where integers or bools have no such number."""
    if dtype not in INTEGERS | NARROW_INTEGERS | {BOOL}:
        return np.asarray(value, dtype)
    with suppress(OverflowError, ValueError):
        array = np.asarray(value, dtype)
        if int(array) == value:
            return array
    raise DtypeError(f"{value!r} is no {dtype}; cast the var to a type that has it")
