"""Which elements of tensors decide sizes: plans that differ only in other elements are the same."""

from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from engine.graph.graph import Graph
from engine.graph.symbols import data_behind
from ops.tensor.dims import dims_in
from ops.tensor.spec import Array

Elements = Mapping[str, tuple[int, ...]]
"""Indices in C order, by the key of the tensor; of a tensor that is not named, all elements may decide.

What tells how often a loop runs, or where a branch goes, has one element: named or not, it decides.
"""


def deciding_elements(graph: Graph) -> Elements:
    """Those that dimensions stand for, anywhere in a graph and the bodies in it."""
    found: dict[str, set[int]] = {}
    for inside in _graphs(graph):
        values = [value for op in inside.operators for value in op.attrs.values()]
        decided = [guard.leaves for guard in inside.samples.guards.values()]
        leaves = frozenset().union(*decided, *(dim.leaves for dim in dims_in(values)))
        for datum in data_behind(leaves, inside.derived.values()):
            found.setdefault(datum.var, set()).add(datum.index)
    return {key: tuple(sorted(indices)) for key, indices in found.items()}


def _graphs(graph: Graph) -> Iterator[Graph]:
    """A graph and those of all bodies in it."""
    yield graph
    for value in (v for op in graph.operators for v in op.attrs.values()):
        inside = getattr(value, "graph", value)  # a body of control flow has a graph, planned or not
        if isinstance(inside, Graph):
            yield from _graphs(inside)


def deciding_key(data: Mapping[str, Array], elements: Elements) -> Hashable:
    """What tells these data from others that decide otherwise."""
    read = ((n, _picked(a, elements[n]) if n in elements else a) for n, a in data.items())
    return tuple((name, data[name].shape, array.tobytes()) for name, array in read)


def _picked(array: Array, indices: tuple[int, ...]) -> Array:
    inside = [i for i in indices if -array.size <= i < array.size]  # the reader of any other says so
    picked: Array = array.reshape(-1)[np.array(inside, np.intp)]
    return picked
