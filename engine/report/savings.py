"""What need not be copied: values inside others, views, and outputs that are written over what dies."""

from attrs import frozen

from engine.lower.calls import Alias, Call, Join
from engine.planning.placed import PlacedPlan


@frozen
class Saving:
    """How many tensors, and their bytes."""

    tensors: int
    bytes: int


@frozen
class Savings:
    """What a plan avoids in each run, and the copies that it is left with (those of operators not counted).

    `nested`: inputs that were computed inside the output of the operator that puts them together, so that it has
    nothing to copy. `views`: outputs that are views, those of a split among them. `overwrites`: outputs that are
    written over an operand that dies, as in a residual addition: they need no bytes of their own.
    """

    nested: Saving
    views: Saving
    overwrites: Saving
    copies: Saving


def savings(plan: PlacedPlan) -> Savings:
    """Counts what is left of the operators of a plan."""
    lowered, chunks = plan.lowered, plan.chunks
    copied = {v for c in lowered.calls if not c.operators for v in c.outputs}
    joined = [v for s in lowered.stages if isinstance(s, Join) for v in s.inputs if v not in copied]
    viewed = [v for s in lowered.stages if isinstance(s, Alias) for v in s.outputs]
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
    """Bytes of what calls compute inside other values."""
    values = plan.lowered.values
    return _total(plan, [v for c in plan.lowered.calls for v in c.outputs + c.workspace if values[v].is_view]).bytes


def _in_place(plan: PlacedPlan, call: Call, value: int) -> bool:
    """Whether a call writes a value that lies inside another over one of its inputs there."""
    if not plan.lowered.values[value].is_view:
        return False
    here = plan.places[value].layout.extent
    return any(plan.places[v].layout.extent == here for v in call.inputs if plan.lowered.values[v].is_view)


def _total(plan: PlacedPlan, values: list[int]) -> Saving:
    return Saving(len(values), sum(plan.lowered.values[v].spec.nbytes for v in values))
