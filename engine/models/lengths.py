"""Lengths for dimensions that are names: those of a model, given from outside."""

from collections.abc import Mapping
from pathlib import Path

from engine.graph.graph import Graph
from engine.models.open_names import open_names
from engine.stages.bind import bind
from engine.stages.template import template
from engine.text.errors import ModelError
from ops.tensor.spec import Array


def known_lengths(graph: Graph, model: Path, lengths: Mapping[str, int]) -> dict[str, int]:
    """Returns the length of each name in a graph. Raises ModelError for a missing length and for an unknown name."""
    unknown = sorted(lengths.keys() - graph.symbols.keys())
    if unknown:
        names = ", ".join(graph.symbols) or "none"
        raise ModelError(f"{model} leaves no dimension {unknown[0]!r} open; names that are open: {names}")
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
