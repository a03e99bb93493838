"""The graphs of bodies whose functions are being called; what is made of their dimensions belongs to them."""

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, TypeVar

from ops.tensor.dims import Dim, Samples, dims_in

BUILDING: ContextVar[tuple[Any, ...]] = ContextVar("building", default=())
"""The graphs, the innermost last."""
G = TypeVar("G")


def home_of_dims(graph: G, values: Iterable[Any]) -> G:
    """Returns the innermost graph under construction that owns a dimension in the values, else `graph`.

    Only graphs inside `graph` count.
    """
    home, inside = graph, BUILDING.get()
    if not inside:
        return home
    tables = {id(table) for value in values for dim in dims_in(value) for table in _tables(dim)}
    for other in inside:
        if id(other.samples) in tables and home in other.around:
            home = other
    return home


def _tables(dim: Dim) -> list[Samples]:
    """Returns the sample tables of all leaves."""
    return [t for p in dim.parts if isinstance(p, Dim) for t in _tables(p)] if dim.parts else [dim.table]
