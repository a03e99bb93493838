"""Dimensions of a graph for those that an ONNX model leaves open."""

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from engine.graph.graph import Graph
from ops.symbolic.equal_lengths import same_lengths
from ops.symbolic.infer import LengthsError
from ops.tensor.dims import Dim

Length = int | str
"""A fixed length, or the name of an open one ("" where the model has no name for it)."""
Equal = Mapping[str, str | int]
"""The names or numbers that take the place of names."""


@define(eq=False)
class Symbols:
    """The dimensions of a graph by the names of the model.

    A name becomes an identifier. So does an expression, unless it is a sum of numbers and of names that are the whole
    length of some axis: those are in `alone`. A dimension without a name gets one from its input and axis. `equal` maps
    names to the names or numbers that take their place.
    """

    graph: Graph
    alone: frozenset[str]
    equal: Equal
    dims: dict[str, Dim | int] = field(factory=dict)
    taken: set[str] = field(factory=set)

    def shape(self, name: str, lengths: Sequence[Length]) -> tuple[int | Dim, ...]:
        """Returns the shape of the input with this name."""
        return tuple(n if isinstance(n, int) else self._dim(n, f"{name}_{axis}") for axis, n in enumerate(lengths))

    def _dim(self, text: str, stem: str) -> Dim | int:
        if not text:
            return self._fresh(stem)
        if text not in self.dims:
            self.dims[text] = self._sum(text) or self._fresh(text)
        return self.dims[text]

    def _sum(self, text: str) -> Dim | int:
        """Returns a sum of dimensions and numbers; 0 where the text is none."""
        parts = [part.strip() for part in text.split("+")]
        if len(parts) < 2 or not all(p in self.alone or p.isdecimal() for p in parts):
            return 0
        total: Dim | int = 0
        for part in parts:
            total = total + (int(part) if part.isdecimal() else self._dim(part, part))
        return total

    def _fresh(self, stem: str) -> Dim | int:
        name = self._free(stem)
        while name in self.equal:
            replacement = self.equal[name]
            if isinstance(replacement, int):
                return replacement
            name = replacement
        return self.graph.dim(name)

    def _free(self, stem: str) -> str:
        wanted = re.sub(r"\W+", "_", stem).strip("_") or "dim"
        wanted = f"_{wanted}" if wanted[0].isdecimal() else wanted
        name, number = wanted, 1
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


def symbols_of(graph: Graph, shapes: Mapping[str, Sequence[Length]], equal: Equal) -> Symbols:
    """Returns the dimensions for the inputs of a model with these shapes."""
    return Symbols(graph, frozenset(_names(shapes.values())), equal)


def equal_names(error: LengthsError) -> dict[str, str | int]:
    """Returns what must replace names so that the operator of this error fits; {} where no replacement helps."""
    replacements = same_lengths(error.attempt)
    return {name: to if isinstance(to, int) else to.text for name, to in replacements.items()}


def _names(shapes: Iterable[Sequence[Length]]) -> set[str]:
    return {n for shape in shapes for n in shape if isinstance(n, str) and n and "+" not in n}
