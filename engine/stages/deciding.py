"""The elements of tensors that decide sizes: data that differ only in other elements share a plan."""

from collections.abc import Hashable, Iterator, Mapping

import numpy as np

from engine.graph.graph import Graph
from engine.graph.symbols import data_behind
from ops.tensor.dims import dims_in
from ops.tensor.spec import Array

Elements = Mapping[str, tuple[int, ...]]
"""Indices in C order, by the key of the tensor; of a tensor without an entry, all elements may decide.

The trip count of a loop and the condition of a branch have one element, which decides.
"""


def deciding_elements(graph: Graph) -> Elements:
    """Returns the elements that dimensions stand for, in a graph and all bodies in it."""
    indices_of: dict[str, set[int]] = {}
    for inside in _graphs(graph):
        values = [value for op in inside.operators for value in op.attrs.values()]
        decided = [guard.leaves for guard in inside.guards]
        leaves = frozenset().union(*decided, *(dim.leaves for dim in dims_in(values)))
        for datum in data_behind(leaves, inside.derived.values()):
            indices_of.setdefault(datum.var, set()).add(datum.index)
    return {key: tuple(sorted(indices)) for key, indices in indices_of.items()}


def _graphs(graph: Graph) -> Iterator[Graph]:
    """Yields a graph and the graphs of all bodies in it."""
    yield graph
    for value in (v for op in graph.operators for v in op.attrs.values()):
        inside = getattr(value, "graph", value)  # a body of control flow has a graph, planned or not
        if isinstance(inside, Graph):
            yield from _graphs(inside)


def deciding_key(data: Mapping[str, Array], elements: Elements) -> Hashable:
    """Returns a key that is equal for data that decide the same."""
    read = ((n, _picked(a, elements[n]) if n in elements else a) for n, a in data.items())
    return tuple((name, data[name].shape, array.tobytes()) for name, array in read)


def _picked(array: Array, indices: tuple[int, ...]) -> Array:
    inside = [i for i in indices if -array.size <= i < array.size]  # any other index is reported where it is read
    picked: Array = array.reshape(-1)[np.array(inside, np.intp)]
    return picked
