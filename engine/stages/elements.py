"""Which elements of tensors decide sizes: plans that differ only in other elements are the same."""

from collections.abc import Hashable, Iterable, Mapping

import numpy as np
from attrs import define, field

from engine.body import PlannedBody
from engine.graph import Graph
from engine.symbols import Datum, Derived, Element, Extent, Recipe
from ops.dims import dims_in
from ops.spec import Array

Elements = Mapping[str, tuple[int, ...]]
"""Indices in C order, by the key of the tensor; of a tensor that is not named, all elements may decide.

What tells how often a loop runs, or where a branch goes, has one element: named or not, it decides.
"""


def deciding_elements(graph: Graph) -> Elements:
    """Those that dimensions stand for, anywhere in a graph and the bodies in it."""
    found = _Search()
    found.graph(graph)
    return {key: tuple(sorted(indices)) for key, indices in found.indices.items()}


def deciding_key(data: Mapping[str, Array], elements: Elements) -> Hashable:
    """What tells these data from others that decide otherwise."""
    read = ((n, _picked(a, elements[n]) if n in elements else a) for n, a in data.items())
    return tuple((name, data[name].shape, array.tobytes()) for name, array in read)


def _picked(array: Array, indices: tuple[int, ...]) -> Array:
    inside = [i for i in indices if -array.size <= i < array.size]  # the reader of any other says so
    picked: Array = array.reshape(-1)[np.array(inside, np.intp)]
    return picked


@define(eq=False)
class _Search:
    indices: dict[str, set[int]] = field(factory=dict)
    seen: set[Derived] = field(factory=set)

    def graph(self, graph: Graph) -> None:
        self.dims((g.left, g.right) for g in graph.samples.guards.values())
        self.arrays(graph.derived.values())
        for value in (v for op in graph.operators for v in op.attrs.values()):
            self.dims((value,))
            if isinstance(value, (Graph, PlannedBody)):
                self.graph(value if isinstance(value, Graph) else value.graph)

    def dims(self, values: Iterable[object]) -> None:
        for leaf in {leaf for value in values for dim in dims_in(value) for leaf in dim.leaves}:
            if isinstance(leaf, Datum):
                self.indices.setdefault(leaf.var, set()).add(leaf.index)
            elif isinstance(leaf, (Element, Extent)):
                self.arrays((leaf.source,))

    def arrays(self, arrays: Iterable[Derived]) -> None:
        for array in arrays:
            if array not in self.seen:
                self.seen.add(array)
                recipe = array.source if isinstance(array.source, Recipe) else None
                self.dims(recipe.attrs.values() if recipe else (array.source,))
                self.arrays(o for o in (recipe.operands if recipe else ()) if isinstance(o, Derived))
