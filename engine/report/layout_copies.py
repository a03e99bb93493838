"""Copies of tensors whose last axes change places with those in front: what is left of changes between layouts."""

from attrs import frozen

from engine.lower.calls import Call
from engine.planning.placed import PlacedPlan
from ops.tensor.layout import Layout


@frozen
class Conversion:
    """A tensor that is copied in another order of its axes, its bytes, and the operator that reads the copy first."""

    tensor: str
    bytes: int
    reader: str


def conversions(plan: PlacedPlan) -> tuple[Conversion, ...]:
    """All of them, in order. A kernel that reads axes as they lie has none, and neither has a view that nobody copies.

    Operators that only write their input elsewhere are counted, copies of the planner too. Where axes change places in
    another way, as in a channel shuffle, that is what the network is to compute, and no change of a layout.
    """
    found, values = [], plan.lowered.values
    for call in plan.lowered.calls:
        if _copies(call) and _is_turned(plan, call):
            tensor = values[values[call.inputs[0]].owner].name
            found.append(Conversion(tensor, values[call.outputs[0]].spec.nbytes, _reader(plan, call)))
    return tuple(found)


def _copies(call: Call) -> bool:
    """Whether the output is the input, element by element, perhaps with other axes."""
    return not call.operators or call.operators[0].shows_its_input


def _is_turned(plan: PlacedPlan, call: Call) -> bool:
    """Whether what is written lies in memory as what is read would with its last axes behind the first."""
    read, written = plan.places[call.inputs[0]].layout, plan.places[call.outputs[0]].layout
    shown = call.operators[0].schema.views(read, call.signature)[0] if call.operators else read
    if shown is None:  # no strides say it: a reshape of what lies in another order, or with holes
        return _are_rotated(_order(read), tuple(sorted(_order(read))))
    return _are_rotated(_order(shown), _order(written))


def _are_rotated(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether the two begin elsewhere in one round of axes, but for a first one that they share."""
    if one[:1] == other[:1]:
        one, other = one[1:], other[1:]
    starts = range(1, len(one))
    return any(one[i:] + one[:i] == other for i in starts)


def _order(layout: Layout) -> tuple[int, ...]:
    """The axes from the widest step to the narrowest; those that take no step do not count."""
    steps = [(-abs(s), axis) for axis, (n, s) in enumerate(zip(layout.shape, layout.strides, strict=True)) if n > 1]
    return tuple(axis for step, axis in sorted(steps) if step)


def _reader(plan: PlacedPlan, call: Call) -> str:
    readers = (c.name for c in plan.lowered.calls if call.outputs[0] in c.inputs)
    return call.operators[0].name if call.operators else next(readers, "")
