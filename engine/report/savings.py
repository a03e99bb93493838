"""Copies that a plan avoids: inputs written directly into a concatenation, views, and outputs computed in place."""

from attrs import frozen

from engine.lower.calls import Alias, Call, Join, Storage
from engine.planning.placed import PlacedPlan


@frozen
class Saving:
    """A number of tensors, and their bytes."""

    tensors: int
    bytes: int


@frozen
class Savings:
    """The copies that a plan avoids in each run, and the copies that it still makes (without those of operators).

    `nested`: inputs of a concatenation that are written directly into its output. `views`: outputs that are views, such
    as those of a split. `overwrites`: outputs that are computed in place, over an operand that is read for the last
    time, as in a residual addition. `copies`: inputs that are copied into place.
    """

    nested: Saving
    views: Saving
    overwrites: Saving
    copies: Saving


def savings(plan: PlacedPlan) -> Savings:
    """Counts the copies that a plan avoids, and those that it makes."""
    lowered, chunks = plan.lowered, plan.chunks
    copied = {v for c in lowered.calls if not c.operators for v in c.outputs}
    joined = [v for s in lowered.instructions if isinstance(s, Join) for v in s.inputs if v not in copied]
    viewed = [v for s in lowered.instructions if isinstance(s, Alias) for v in s.outputs]
    taken = int(chunks.size[chunks.src].sum())
    inside = [v for c in lowered.calls for v in c.outputs if _in_place(plan, c, v)]
    over = _total(plan, inside)
    return Savings(
        _total(plan, joined),
        _total(plan, viewed),
        Saving(len(chunks.src) + over.tensors, taken + over.bytes),
        _total(plan, sorted(copied)),
    )


def nested_bytes(plan: PlacedPlan) -> int:
    """Returns the bytes of outputs and workspaces that lie inside other values."""
    values = plan.lowered.values
    return _total(plan, [v for c in plan.lowered.calls for v in c.outputs + c.workspace if values[v].is_view]).bytes


def _in_place(plan: PlacedPlan, call: Call, value: int) -> bool:
    """Returns whether a call writes a value inside another one over an input in the same bytes."""
    if not plan.lowered.values[value].is_view:
        return False
    here = plan.places[value]
    if here.storage is Storage.ARENA:
        inside = (plan.places[v] for v in call.inputs if plan.lowered.values[v].is_view)
    else:  # in an array of the caller
        inside = (plan.places[v] for v in call.inputs if plan.places[v].owner == here.owner)
    return any(place.layout.extent == here.layout.extent for place in inside)


def _total(plan: PlacedPlan, values: list[int]) -> Saving:
    return Saving(len(values), sum(plan.lowered.values[v].spec.nbytes for v in values))
