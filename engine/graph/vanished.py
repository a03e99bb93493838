"""The names that a user knows and a graph lacks, since the model was read or by passes: what became of each."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, field, frozen

from engine.graph.operator import Operator
from engine.graph.var import Var

INSIDE, SAME, FOLDED, UNUSED, READ = "inside", "same", "folded", "unused", "read"
"""An operator computes it among others; another tensor has the same elements; a constant has them; nothing needs it;
it was needed only to read the model."""

FED = "feed"
"""The operator in place of a writer of inputs and parameters, as in explanations and traces."""


@frozen
class Fate:
    """What became of a tensor or an operator: one of INSIDE, SAME, FOLDED, UNUSED, READ.

    `place` is the name of the operator inside which it is computed, or of the tensor or constant that has its elements;
    "" where nothing needs it. Of a constant (`was_constant`), `place` is what was made of it.
    """

    how: str
    place: str = ""
    was_constant: bool = False


Fates = Mapping[str, Fate]


@frozen
class Vanished:
    """The fates of tensors and of operators, by the names that they had.

    `namesakes` has names that several operators of the model share, with the names that these have in the graph.
    `added` has the names of operators that passes added, which no user knows.
    """

    tensors: Fates = field(factory=dict)
    operators: Fates = field(factory=dict)
    namesakes: Mapping[str, tuple[str, ...]] = field(factory=dict)
    added: frozenset[str] = frozenset()

    def all_parts(self) -> dict[str, tuple[str, ...]]:
        """Returns the names of the operators that are computed within others, by the names of these."""
        parts: dict[str, tuple[str, ...]] = {}
        for name, fate in self.operators.items():
            if fate.how == INSIDE and name not in self.added:
                parts[fate.place] = (*parts.get(fate.place, ()), name)
        return parts


NOTHING_VANISHED = Vanished()


def vanished(
    operators: Sequence[Operator],
    constants: Iterable[Var],
    earlier: Vanished,
    writers: Mapping[str, str],
    same: Mapping[Var, str],
) -> Vanished:
    """Returns what became of the operators and tensors of a graph that was rewritten.

    `operators` are those that it had, in a runnable order, `constants` its constants, and `earlier` is what had
    vanished from it. `writers` has all tensors of the new graph with the name of the operator that computes each: ""
    for a constant, FED for what the caller feeds. `same` has tensors of the old graph that others took the place of,
    with the names of these.
    """
    readers: dict[Var, list[str]] = {}
    for operator in operators:
        for var in operator.inputs:
            readers.setdefault(var, []).append(operator.name)
    present = set(writers.values())
    tensors, places = dict[str, Fate](), dict[str, Fate]()
    for operator in reversed(operators):
        is_present = operator.name in present
        lost = [var for var in operator.outputs if not is_present or var.name not in writers]
        fates = [_fate(var, [places[name] for name in readers.get(var, ())], writers, same) for var in lost]
        tensors |= {v.name: fate for v, fate in zip(lost, fates, strict=True) if v.name not in writers}
        places[operator.name] = Fate(INSIDE, operator.name) if is_present else _likeliest(fates)
    for var in constants:
        if var.name not in writers:
            fate = _likeliest([places[name] for name in readers.get(var, ()) if places[name].how != SAME])
            fate = Fate(SAME, same[var]) if var in same else fate
            tensors[var.name] = evolve(fate, was_constant=True)
    gone = {name: fate for name, fate in places.items() if name not in present}
    inputs = {op.name: {v.name for v in op.inputs} for op in operators if op.name in gone}
    later = _Later(tensors, gone, inputs, writers)
    kept = {name: later.of(fate) for name, fate in earlier.tensors.items() if name not in writers}
    older = {name: later.of(fate) for name, fate in earlier.operators.items() if name not in present}
    inside: dict[str, list[str]] = {}
    for name in older:
        inside.setdefault(earlier.operators[name].place, []).append(name)
    all_fates = older | gone
    for operator in operators:  # what had vanished into an operator was computed in front of it
        for name in (*inside.get(operator.name, ()), operator.name):
            if name in all_fates:
                all_fates[name] = all_fates.pop(name)
    added = present - places.keys() - earlier.operators.keys() - {"", FED}
    return evolve(earlier, tensors=kept | tensors, operators=all_fates, added=earlier.added | added)


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


@frozen
class _Later:
    """What one more rewriting means for earlier fates: the fates of its tensors and operators, and its writers.

    `inputs` has the inputs of the operators that vanished.
    """

    tensors: Fates
    operators: Fates
    inputs: Mapping[str, set[str]]
    writers: Mapping[str, str]

    def of(self, fate: Fate) -> Fate:
        """Returns the fate after the rewriting."""
        after = (self.operators if fate.how == INSIDE else self.tensors).get(fate.place, fate)
        if after is fate:
            return fate
        if fate.how == INSIDE and after.how == SAME:
            undone = after.place in self.inputs[fate.place]  # the operator became one that changes nothing
            after = Fate(UNUSED) if undone else Fate(INSIDE, self.writers[after.place])
        return evolve(after, was_constant=fate.was_constant)
