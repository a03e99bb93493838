"""Binds symbolic dimensions to numbers: the lengths of arrays, and the graph with these lengths."""

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

from engine.graph.bindings import Bindings
from engine.graph.graph import Graph
from engine.graph.symbols import Symbol
from engine.stages.partial_graph import stage_graph
from engine.stages.state import initial_state
from engine.stages.template import template
from engine.text.errors import FeedError, GraphError
from ops.tensor.dims import Dim, value_of
from ops.tensor.spec import Array, Shape


def bind(graph: Graph, lengths: Mapping[str, SupportsIndex], data: Mapping[str, Array] | None = None) -> Graph:
    """Returns the graph with numbers in place of its dimensions: `lengths` by name, `data` of the deciding tensors.

    Weights are shared, not copied. Raises GraphError for a length that is missing, unknown or negative, or for data
    that are missing, OpError where the lengths do not fit.
    """
    prepared = template(graph)
    numbers = _checked(graph, lengths)
    bindings = Bindings(numbers, input_shapes(graph, numbers), dict(data or {}))
    missing = sorted(prepared.data - bindings.data.keys())
    if missing:
        raise GraphError(
            f"sizes of graph {graph.name!r} depend on the data of {', '.join(map(repr, missing))}; give them"
        )
    return stage_graph(prepared, initial_state(prepared, bindings), graph.name).graph


def input_shapes(graph: Graph, lengths: Mapping[str, int]) -> dict[str, Shape]:
    """Returns the shapes of the inputs, by name."""
    number = Bindings(lengths).number

    def length(dim: Dim | int) -> int:
        if isinstance(dim, int):
            return dim
        return lengths[dim.key.name] if isinstance(dim.key, Symbol) else value_of(dim, number)

    return {name: tuple(map(length, var.shape)) for name, var in graph.inputs.items()}


def lengths_of(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Returns the length of each name, from the arrays that are fed. Raises FeedError where the shapes do not fit."""
    lengths: dict[str, int] = {}
    for name, var in graph.inputs.items():
        shape = arrays[name].shape
        if len(shape) != var.ndim or arrays[name].dtype != var.dtype:
            raise FeedError(f"input {name!r} is {arrays[name].dtype}{list(shape)}, but {var.spec} is expected")
        for dim, length in zip(var.shape, shape, strict=True):
            if isinstance(dim, Dim) and isinstance(dim.key, Symbol):
                lengths.setdefault(dim.key.name, length)
    _check_lengths(graph, arrays, lengths)
    return lengths


def _check_lengths(graph: Graph, arrays: Mapping[str, Array], lengths: Mapping[str, int]) -> None:
    unknown = sorted(graph.symbols.keys() - lengths.keys())
    if unknown:
        raise FeedError(f"no input has a dimension that is just {unknown[0]!r}, so its length is unknown")
    bound = ", ".join(f"{n}={v}" for n, v in lengths.items())
    for name, shape in input_shapes(graph, lengths).items():
        if arrays[name].shape != shape:
            where = f" with {bound}" if bound else ""
            raise FeedError(f"input {name!r} has shape {arrays[name].shape}, but {shape} is expected{where}")


def as_length(value: Any) -> int:
    """Returns an integer of any type as a number of elements. Raises TypeError, ValueError."""
    if isinstance(value, bool):
        raise TypeError("a truth value is no length")
    length = operator.index(value)
    if length < 0:
        raise ValueError("a length is never negative")
    return length


def _checked(graph: Graph, lengths: Mapping[str, Any]) -> dict[str, int]:
    for name in graph.symbols:
        if name not in lengths:
            raise GraphError(
                f"graph {graph.name!r} needs a length for {name!r}; its names are {', '.join(graph.symbols)}"
            )
    for name in lengths:
        if name not in graph.symbols:
            raise GraphError(
                f"graph {graph.name!r} has no dimension {name!r}; it has: {', '.join(graph.symbols) or 'none'}"
            )
    return {name: _length(name, length) for name, length in lengths.items()}


def _length(name: str, value: Any) -> int:
    try:
        return as_length(value)
    except (TypeError, ValueError) as error:
        raise GraphError(f"{name}={value!r} is no length; give an integer of at least 0") from error
