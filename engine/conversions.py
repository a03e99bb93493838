"""Copies that bring the axes of a tensor into another order: what is left of changes between layouts."""

from attrs import frozen

from engine.calls import Call
from engine.placed import PlacedPlan
from ops.layout import Layout


@frozen
class Conversion:
    """A tensor that is copied in another order of its axes, its bytes, and the operator that reads the copy first."""

    tensor: str
    bytes: int
    reader: str


def conversions(plan: PlacedPlan) -> tuple[Conversion, ...]:
    """All of them, in order. A kernel that reads axes as they lie has none, and neither has a view that nobody copies.

    Operators that write their input to where its layout is another one are counted, copies of the planner too.
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
    """Whether the two do not lie in memory in one order of axes, as the operator names them."""
    read, written = plan.places[call.inputs[0]].layout, plan.places[call.outputs[0]].layout
    shown = call.operators[0].schema.views(read, call.signature)[0] if call.operators else read
    if shown is None:  # no strides say it: a reshape of what lies in another order, or with holes
        return _order(read) != tuple(sorted(_order(read)))
    return _order(shown) != _order(written)


def _order(layout: Layout) -> tuple[int, ...]:
    """The axes from the widest step to the narrowest; those that take no step do not count."""
    steps = [(-abs(s), axis) for axis, (n, s) in enumerate(zip(layout.shape, layout.strides, strict=True)) if n > 1]
    return tuple(axis for step, axis in sorted(steps) if step)


def _reader(plan: PlacedPlan, call: Call) -> str:
    readers = (c.name for c in plan.lowered.calls if call.outputs[0] in c.inputs)
    return call.operators[0].name if call.operators else next(readers, "")
