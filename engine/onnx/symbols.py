"""Names of an ONNX model for dimensions that it leaves open, as dimensions of a graph."""

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from engine.graph.graph import Graph
from engine.onnx.inputs import Length
from ops.symbolic.equal_lengths import same_lengths
from ops.symbolic.infer import LengthsError
from ops.tensor.dims import Dim


@define(eq=False)
class Symbols:
    """The dimensions of a graph by what the model calls them.

    A name becomes an identifier; so does an expression, unless it is a sum of numbers and of names that `alone` are
    the length of some axis, which tells what they are. What has no name is called after its input and its axis.
    `equal` has names or numbers that stand in place of other names.
    """

    graph: Graph
    alone: frozenset[str]
    equal: Mapping[str, str | int]
    known: dict[str, Dim | int] = field(factory=dict)
    taken: set[str] = field(factory=set)

    def shape(self, name: str, lengths: Sequence[Length]) -> tuple[int | Dim, ...]:
        """The shape of the input of that name."""
        return tuple(n if isinstance(n, int) else self._dim(n, f"{name}_{axis}") for axis, n in enumerate(lengths))

    def _dim(self, text: str, stem: str) -> Dim | int:
        if not text:
            return self._fresh(stem)
        if text not in self.known:
            self.known[text] = self._sum(text) or self._fresh(text)
        return self.known[text]

    def _sum(self, text: str) -> Dim | int:
        """A sum of what is known without it; 0 where it is none."""
        parts = [part.strip() for part in text.split("+")]
        if len(parts) < 2 or not all(p in self.alone or p.isdecimal() for p in parts):
            return 0
        total: Dim | int = 0
        for part in parts:
            total = total + (int(part) if part.isdecimal() else self._dim(part, part))
        return total

    def _fresh(self, stem: str) -> Dim | int:
        found = self._free(stem)
        while found in self.equal:
            replaced = self.equal[found]
            if isinstance(replaced, int):
                return replaced
            found = replaced
        return self.graph.dim(found)

    def _free(self, stem: str) -> str:
        wanted = re.sub(r"\W+", "_", stem).strip("_") or "dim"
        wanted = f"_{wanted}" if wanted[0].isdecimal() else wanted
        name, number = wanted, 1
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name


def symbols_of(graph: Graph, shapes: Mapping[str, Sequence[Length]], equal: Mapping[str, str | int]) -> Symbols:
    """For the inputs of a model, of these shapes."""
    return Symbols(graph, frozenset(_names(shapes.values())), equal)


def equal_names(error: BaseException) -> dict[str, str | int]:
    """What to put in place of names so that the operator fits that did not; nothing where that is no help."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, LengthsError):
        cause = cause.__cause__
    found = same_lengths(cause.attempt) if isinstance(cause, LengthsError) else {}
    return {name: to if isinstance(to, int) else to.text for name, to in found.items()}


def _names(shapes: Iterable[Sequence[Length]]) -> set[str]:
    return {n for shape in shapes for n in shape if isinstance(n, str) and n and "+" not in n}
