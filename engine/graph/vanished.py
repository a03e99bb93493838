"""The tensors and operators that passes took out of a graph: what became of each, by its old name."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from engine.graph.operator import Operator
from engine.graph.var import Var

INSIDE, SAME, FOLDED, UNUSED = "inside", "same", "folded", "unused"
"""An operator computes it among others; another tensor has the same elements; a constant has them; nothing needs it."""

FED = "feed"
"""The operator in place of a writer of inputs and parameters, as in explanations and traces."""


@frozen
class Fate:
    """What became of a tensor or an operator: one of INSIDE, SAME, FOLDED, UNUSED.

    `place` is the name of the operator inside which it is computed, or of the tensor or constant that has its elements;
    "" where nothing needs it.
    """

    how: str
    place: str = ""

    def text(self, name: str) -> str:
        """Returns a sentence about the tensor or operator of that name."""
        sentences = {
            INSIDE: f"{name} is computed within operator {self.place}",
            SAME: f"{name} is not computed: tensor {self.place} has the same elements",
            FOLDED: f"{name} was computed before the run: constant {self.place} has its result",
            UNUSED: f"{name} is not computed: nothing needs it any more",
        }
        return f"{sentences[self.how]} (passes over the graph)."


Fates = Mapping[str, Fate]


@frozen
class Vanished:
    """The fates of tensors and of operators, by the names that they had."""

    tensors: Fates = MappingProxyType({})
    operators: Fates = MappingProxyType({})

    def all_parts(self) -> dict[str, tuple[str, ...]]:
        """Returns the names of the operators that are computed within others, by the names of these."""
        parts: dict[str, tuple[str, ...]] = {}
        for name, fate in self.operators.items():
            if fate.how == INSIDE:
                parts[fate.place] = (*parts.get(fate.place, ()), name)
        return parts


NOTHING_VANISHED = Vanished()


def vanished(
    operators: Sequence[Operator], earlier: Vanished, writers: Mapping[str, str], same: Mapping[Var, str]
) -> Vanished:
    """Returns what became of the operators and tensors of a graph that was rewritten.

    `operators` are those that it had, in a runnable order, and `earlier` is what had vanished from it. `writers` has
    all tensors of the new graph with the name of the operator that computes each: "" for a constant, FED for what the
    caller feeds. `same` has tensors of the old graph that others took the place of, with the names of these.
    """
    readers: dict[Var, list[str]] = {}
    for operator in operators:
        for var in operator.inputs:
            readers.setdefault(var, []).append(operator.name)
    present = set(writers.values())
    tensors, places = dict[str, Fate](), dict[str, Fate]()
    for operator in reversed(operators):
        fates = [_fate(var, [places[name] for name in readers.get(var, ())], writers, same) for var in operator.outputs]
        tensors |= {v.name: fate for v, fate in zip(operator.outputs, fates, strict=True) if v.name not in writers}
        places[operator.name] = Fate(INSIDE, operator.name) if operator.name in present else _likeliest(fates)
    gone = {name: fate for name, fate in places.items() if name not in present}
    kept = {name: _later(fate, tensors, gone) for name, fate in earlier.tensors.items() if name not in writers}
    older = {name: _later(fate, tensors, gone) for name, fate in earlier.operators.items() if name not in present}
    inside: dict[str, list[str]] = {}
    for name in older:
        inside.setdefault(earlier.operators[name].place, []).append(name)
    all_fates = older | gone
    for operator in operators:  # what had vanished into an operator was computed in front of it
        for name in (*inside.get(operator.name, ()), operator.name):
            if name in all_fates:
                all_fates[name] = all_fates.pop(name)
    return Vanished(kept | tensors, all_fates)


def _fate(var: Var, read_by: list[Fate], writers: Mapping[str, str], same: Mapping[Var, str]) -> Fate:
    """Returns where a tensor of the old graph is computed; `read_by` has the fates of its readers."""
    if var.name in writers:
        return Fate(INSIDE, writers[var.name]) if writers[var.name] else Fate(FOLDED, var.name)
    if var in same:
        return Fate(SAME if writers[same[var]] else FOLDED, same[var])
    return _likeliest([fate for fate in read_by if fate.how != SAME])


def _likeliest(fates: list[Fate]) -> Fate:
    """Returns the fate of what several outputs or readers tell about."""
    order = (INSIDE, FOLDED, SAME, UNUSED)
    return min(fates, key=lambda fate: order.index(fate.how), default=Fate(UNUSED))


def _later(fate: Fate, tensors: Fates, operators: Fates) -> Fate:
    """Returns the fate after one more rewriting, in which tensors and operators vanished."""
    table = operators if fate.how == INSIDE else tensors
    return table.get(fate.place, fate)
