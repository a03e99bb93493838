"""Lengths for dimensions that are names: those of a model, given from outside."""

from collections.abc import Mapping
from pathlib import Path

from engine.graph.graph import Graph
from engine.models.open_names import open_names
from engine.models.zoo import is_zoo, names_of
from engine.stages.bind import bind
from engine.stages.template import template
from engine.text.errors import ModelError
from ops.tensor.spec import Array

_NONE_OPEN = (
    "all dimensions have numbers, and --shape x=batch,3,224,224 gives the first one of an input x the name batch"
)


def known_lengths(graph: Graph, model: Path, lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each name in a graph. Raises ModelError for a missing length and for an unknown name."""
    unknown = sorted(lengths.keys() - graph.symbols.keys())
    if unknown:
        there = tuple(graph.symbols) or (names_of(model) if is_zoo(model) else ())
        there_are = f"names that are open: {', '.join(there)}" if there else _NONE_OPEN
        raise ModelError(f"{model} leaves no dimension {unknown[0]!r} open; {there_are}")
    missing = [name for name in graph.symbols if name not in lengths]
    if missing:
        names = open_names(graph, missing)
        example = ",".join(f"{name}=1" for name in missing)
        raise ModelError(f"{model} leaves dimensions open: {names}; give their lengths, for example --dim {example}")
    return dict(lengths)


def bound(graph: Graph, model: Path, lengths: Mapping[str, int], feeds: Mapping[str, Array]) -> Graph:
    """Returns the graph with numbers; the graph itself where data decide sizes while it runs.

    `feeds` are inputs that are given; those among them that decide sizes are believed. Raises ModelError where one that
    decides sizes is missing.
    """
    if not graph.is_symbolic:
        return graph
    prepared = template(graph)
    fed = prepared.data & graph.inputs.keys()
    missing = sorted(fed - feeds.keys())
    if missing:
        name = missing[0]
        raise ModelError(f"the data of input {name!r} of {model} decide sizes; fix it: --constant {name}={name}.npy")
    return graph if prepared.is_staged else bind(graph, lengths, {name: feeds[name] for name in fed})
