"""Copies that change the layout of a tensor: its last axes change places with those in front of them."""

from attrs import frozen

from engine.lower.calls import Call
from engine.planning.placed import PlacedPlan
from ops.tensor.layout import Layout


@frozen
class Conversion:
    """A tensor that is copied into another order of its axes, its bytes, and the first operator that reads the copy."""

    tensor: str
    bytes: int
    reader: str


def conversions(plan: PlacedPlan) -> tuple[Conversion, ...]:
    """Returns all copies that change a layout, in order of ticks.

    Operators that only copy their input count, and so do copies that the planner added. A permutation of another kind,
    such as a channel shuffle, is part of the network and does not count.
    """
    copies, values = list[Conversion](), plan.lowered.values
    for call in plan.lowered.calls:
        if _copies(call) and _is_turned(plan, call):
            tensor = values[values[call.inputs[0]].owner].name
            copies.append(Conversion(tensor, values[call.outputs[0]].spec.nbytes, _reader(plan, call)))
    return tuple(copies)


def _copies(call: Call) -> bool:
    """Returns whether the output has the elements of the input, perhaps in another order of axes."""
    return not call.operators or call.operators[0].shows_its_input


def _is_turned(plan: PlacedPlan, call: Call) -> bool:
    """Returns whether the output lies in memory as the input would with its last axes moved to the front."""
    read, written = plan.places[call.inputs[0]].layout, plan.places[call.outputs[0]].layout
    shown = call.operators[0].schema.views(read, call.signature)[0] if call.operators else read
    if shown is None:  # no strides say it: a reshape of what lies in another order, or with holes
        return _are_rotated(_order(read), tuple(sorted(_order(read))))
    return _are_rotated(_order(shown), _order(written))


def _are_rotated(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Returns whether two orders of axes are rotations of each other, apart from a first axis that they share."""
    if one[:1] == other[:1]:
        one, other = one[1:], other[1:]
    starts = range(1, len(one))
    return any(one[i:] + one[:i] == other for i in starts)


def _order(layout: Layout) -> tuple[int, ...]:
    """Returns the axes from the largest stride to the smallest; axes of length 1 or stride 0 are left out."""
    steps = [(-abs(s), axis) for axis, (n, s) in enumerate(zip(layout.shape, layout.strides, strict=True)) if n > 1]
    return tuple(axis for step, axis in sorted(steps) if step)


def _reader(plan: PlacedPlan, call: Call) -> str:
    readers = (c.name for c in plan.lowered.calls if call.outputs[0] in c.inputs)
    return call.operators[0].name if call.operators else next(readers, "")
