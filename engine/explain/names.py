"""The names by which tensors and operators are asked for: those of a plan, and those that the model has besides."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import NoReturn

from attrs import frozen

from engine.explain.sentences import quoted, shown
from engine.graph.vanished import FOLDED, INSIDE, READ, SAME, UNUSED, Fate
from engine.lower.calls import Lowered
from engine.text.errors import OptionError
from ops.schema.body import bodies

FEED, FETCH = "feed", "fetch"
_COMPARED = 200
"""Characters of names that are compared: the time of difflib grows with the square of that."""
_LEAST_ALIKE = 0.4


class UnknownNameError(OptionError, KeyError):
    """The name of a tensor or an operator that a plan does not have; the message has the nearest names."""

    def __str__(self) -> str:  # KeyError shows the repr of its message
        return str(self.args[0])


@frozen
class NameMatch:
    """The name that a plan has for what was asked for; `fate` is a sentence about both names, where they differ."""

    name: str
    fate: str = ""


def find_tensor(lowered: Lowered, name: str) -> NameMatch:
    """Returns the tensor of that name, or the one in its place. Raises UnknownNameError."""
    names, vanished = dict.fromkeys(v.name for v in lowered.values), lowered.graph.vanished
    if name in names:
        return NameMatch(name)
    if name in lowered.outputs:
        tensor = lowered.values[lowered.outputs[name]].name
        return NameMatch(tensor, f"Output {quoted(name)} is tensor {shown(tensor)}.")
    fate = vanished.tensors.get(name) or _in_body(lowered, name)
    if fate is None:
        _refuse("tensor", name, names, lowered)
    writes = {op.name: op.outputs[0].name for op in reversed(lowered.graph.operators)}
    place = writes.get(fate.place, "") if fate.how == INSIDE else fate.place
    if place not in names:
        _refuse_fate(fate, name, lowered)
    return NameMatch(place, _became(fate, name))


def find_operator(lowered: Lowered, name: str) -> NameMatch:
    """Returns the operator of that name, the one that computes it, or FEED or FETCH. Raises UnknownNameError."""
    names, vanished = dict.fromkeys((FEED, *(s.name for s in lowered.instructions), FETCH)), lowered.graph.vanished
    said, place = _namesakes(vanished.namesakes.get(name, ()), name), name
    if name not in names:
        fate = vanished.operators.get(name) or _in_body(lowered, name)
        if fate is None:
            _refuse("operator", name, names, lowered)
        if fate.how != INSIDE or fate.place not in names:
            _refuse_fate(fate, name, lowered)
        said, place = f"{said}{_became(fate, name)}", fate.place
    return NameMatch(place, said.rstrip())


def _in_body(lowered: Lowered, name: str) -> Fate | None:
    """Returns the fate of what a body of control flow computes; None where no body has that name.

    Names in a body begin with the name of its operator and a slash, which a model leaves out.
    """
    for operator in (op for call in lowered.calls for op in call.operators):
        names = (inner for body in bodies(operator.schema, operator.attrs) for inner in body.names)
        if any(inner == name or inner.endswith(f"/{name}") for inner in names):
            return Fate(INSIDE, operator.name)
    return None


def _namesakes(operators: tuple[str, ...], name: str) -> str:
    """Returns a sentence about operators that have one name in the model; "" where there is one operator."""
    if not operators:
        return ""
    here = f"{', '.join(map(shown, operators[:-1]))} and {shown(operators[-1])}"
    return f"{len(operators)} operators of the model are named {quoted(name)}, here {here}; this is the first. "


def _became(fate: Fate, name: str) -> str:
    """Returns a sentence about the tensor or operator of that name, which the graph lacks."""
    text = (_OF_CONSTANTS if fate.was_constant else _FATES)[fate.how].format(shown(fate.place))
    return f"{quoted(name)} {text}."


_FATES = {
    INSIDE: "is computed within operator {}",
    SAME: "is not computed: tensor {} has the same elements",
    FOLDED: "was computed before the run: constant {} has its result",
    UNUSED: "is not computed: nothing needs it any more",
    READ: "was needed only to read the model: no operator reads it",
}
_OF_CONSTANTS = _FATES | {
    INSIDE: "is a constant that operator {} reads in another form",
    SAME: "is a constant that is kept once: constant {} has the same elements",
    FOLDED: "is a constant that was used before the run: constant {} was computed from it",
    UNUSED: "is a constant that nothing needs any more",
}


def _refuse_fate(fate: Fate, name: str, lowered: Lowered) -> NoReturn:
    """Raises UnknownNameError for what has no place in the plan."""
    elsewhere = " That is not in this stage." if fate.place and lowered.hands_over else ""
    raise UnknownNameError(f"{shown(lowered.graph.name)}: {_became(fate, name)}{elsewhere}")


def _refuse(what: str, name: str, names: Collection[str], lowered: Lowered) -> NoReturn:
    """Raises UnknownNameError for a name that is not known at all, with the most similar ones."""
    short = {other[:_COMPARED]: other for other in reversed(list(names))}
    near = get_close_matches(name[:_COMPARED], list(short), 3, _LEAST_ALIKE)
    inside = [other for other in names if name and name in other and other not in near]
    hints = ", ".join(quoted(other) for other in [*(short[n] for n in near), *inside][:3])
    more = f"did you mean {hints}?" if hints else f"`arenaplan trace` lists all {len(names)} of them"
    model = shown(lowered.graph.name) + (", this stage alone," if lowered.hands_over else "")
    raise UnknownNameError(f"{model} has no {what} {quoted(name)}; {more}")
