"""Dimensions that a model leaves open, named for messages."""

from collections.abc import Iterable

from engine.graph.graph import Graph
from engine.graph.symbols import Symbol
from ops.tensor.dims import dims_in


def open_names(graph: Graph, names: Iterable[str]) -> str:
    """Returns the names, each with the inputs whose shapes have it."""
    return ", ".join(f"{name}{_where(graph, name)}" for name in names)


def _where(graph: Graph, name: str) -> str:
    """Returns the inputs whose shapes have a name."""
    key = Symbol(name)
    places = [
        f"axis {axis} of {var.name!r}"
        for var in graph.inputs.values()
        for axis, dim in enumerate(var.shape)
        if any(key in part.leaves for part in dims_in(dim))
    ]
    return f" ({', '.join(places)})" if places else ""
