"""Numbers in place of names: the lengths that arrays have, and the graph with these lengths."""

import operator
from collections.abc import Mapping
from typing import Any, SupportsIndex

from engine.graph.bindings import Facts
from engine.graph.graph import Graph
from engine.graph.symbols import Symbol
from engine.stages.partial_graph import draft_stage
from engine.stages.progress import at_the_start
from engine.stages.template import template
from engine.text.errors import FeedError, GraphError
from ops.tensor.dims import Dim
from ops.tensor.spec import Array, Shape


def bind(graph: Graph, lengths: Mapping[str, SupportsIndex], data: Mapping[str, Array] | None = None) -> Graph:
    """The graph with numbers in place of its dimensions: `lengths` by name; `data` has tensors that decide sizes.

    Weights are shared, not copied. Raises GraphError for a length that is missing, unknown or negative, or for data
    that are missing, OpError where the lengths do not fit.
    """
    prepared = template(graph)
    numbers = _checked(graph, lengths)
    facts = Facts(numbers, input_shapes(graph, numbers), dict(data or {}))
    missing = sorted(prepared.data - facts.data.keys())
    if missing:
        raise GraphError(
            f"sizes of graph {graph.name!r} depend on the data of {', '.join(map(repr, missing))}; give them"
        )
    return draft_stage(prepared, at_the_start(prepared, facts), graph.name).graph


def input_shapes(graph: Graph, lengths: Mapping[str, int]) -> dict[str, Shape]:
    """The shapes of the inputs, by name."""
    facts = Facts(lengths)
    return {name: facts.value(var.shape) for name, var in graph.inputs.items()}


def lengths_of(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, int]:
    """The length of each name, from the arrays that are fed. Raises FeedError where they do not fit the shapes."""
    found: dict[str, int] = {}
    for name, var in graph.inputs.items():
        shape = arrays[name].shape
        if len(shape) != var.ndim or arrays[name].dtype != var.dtype:
            raise FeedError(f"input {name!r} is {arrays[name].dtype}{list(shape)}, but {var.spec} is expected")
        for dim, length in zip(var.shape, shape, strict=True):
            if isinstance(dim, Dim) and isinstance(dim.key, Symbol):
                found.setdefault(dim.key.name, length)
    _check_lengths(graph, arrays, found)
    return found


def _check_lengths(graph: Graph, arrays: Mapping[str, Array], lengths: Mapping[str, int]) -> None:
    unknown = sorted(graph.symbols.keys() - lengths.keys())
    if unknown:
        raise FeedError(f"no input has a dimension that is just {unknown[0]!r}, so its length cannot be told")
    told = ", ".join(f"{n}={v}" for n, v in lengths.items())
    for name, shape in input_shapes(graph, lengths).items():
        if arrays[name].shape != shape:
            where = f" with {told}" if told else ""
            raise FeedError(f"input {name!r} has shape {arrays[name].shape}, but {shape} is expected{where}")


def as_length(value: Any) -> int:
    """A number of elements, of anything that is an integer, numpy's as well. Raises TypeError, ValueError."""
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
        raise GraphError(f"{name}={value!r} is no length; an integer from 0 on is wanted") from error
