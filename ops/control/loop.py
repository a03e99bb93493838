"""A body that runs so many times, or as long as it says so itself (ONNX Loop-21).

The operands are `trips` and `cond` where they are given, then what is carried round, then what every turn reads. The
body reads the number of the turn (int64), what is carried, and the rest; it gives whether to go on (if `conditional`),
what is carried on, and one row of each further output. Outputs: what was carried last, the rows, and how many turns
there were (int64). Rows that no turn made are 0.
"""

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
from attrs import frozen

from ops.control.branch import check_condition
from ops.control.loop_buffers import UNKNOWN, Carried, Turns, bind_turns, needs_swap, swaps_first
from ops.schema.attributes import Attribute, flag, integer, optional
from ops.schema.body import Body, body_attribute, check_operands, workspace_of
from ops.schema.schema import (
    Attrs,
    Binding,
    Cost,
    Kernel,
    OpSchema,
    Overwrite,
    Signature,
    Specs,
    Thunk,
    all_contiguous,
    elementwise_cost,
)
from ops.tensor.errors import ArityError, AttributeValueError, DtypeError, ShapeError
from ops.tensor.spec import BOOL, Array, TensorSpec

COUNTER = TensorSpec((), np.dtype("int64"))
"""The number of a turn, and how many there were."""
_DECISION = TensorSpec((), BOOL)


def _natural(value: object) -> int:
    count = integer(value)
    if count < 0:
        raise ValueError("a number from 0 on is wanted")
    return count


@frozen(eq=False)
class _Form:
    """The numbers of a loop.

    Operands: `ahead` of trips and cond, then `carried`, then the others. Outputs: carried, rows, count.
    """

    body: Body
    ahead: int
    carried: int
    turns: int
    conditional: bool
    most: int

    @property
    def first_row(self) -> int:
        """Returns the index of the first output of the body that is a row."""
        return self.conditional + self.carried

    @property
    def rows(self) -> Specs:
        """Returns the spec of one row of each output that is made of rows."""
        return self.body.outputs[self.first_row :]

    def temporaries(self) -> tuple[TensorSpec, ...]:
        """Returns the specs of the number of the turn, of whether to go on, of rows, and of buffers to swap."""
        swap = self.body.inputs[1 : 1 + self.carried] if needs_swap(self.turns) else ()
        return COUNTER, _DECISION, *self.rows, *swap


def _form(attrs: Attrs) -> _Form:
    trips, conditional = attrs["trips"], attrs["conditional"]
    is_known = trips is not None and not conditional and not attrs["cond_given"]
    most = attrs["most"] if attrs["most"] is not None else trips
    ahead = attrs["trips_given"] + attrs["cond_given"]
    turns = trips if is_known else UNKNOWN
    return _Form(attrs["body"], ahead, attrs["carried"], turns, conditional, UNKNOWN if most is None else most)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    form = _form(attrs)
    if len(inputs) < form.ahead + form.carried:
        raise ArityError(f"carries {form.carried} values, and only {len(inputs) - form.ahead} are given")
    _check_ahead(inputs, attrs)
    body, carried = form.body, inputs[form.ahead : form.ahead + form.carried]
    check_operands("inputs of the body", body.inputs, (COUNTER, *inputs[form.ahead :]))
    if len(body.outputs) < form.first_row:
        raise ArityError(f"the body gives {len(body.outputs)} tensors, and at least {form.first_row} are wanted")
    if form.conditional:
        check_condition(body.outputs[0])
    check_operands("what the body carries on", carried, body.outputs[form.conditional : form.first_row])
    _check_rows(form)
    return *carried, *(row.with_shape((form.most, *row.shape)) for row in form.rows), COUNTER


def _check_ahead(inputs: Specs, attrs: Attrs) -> None:
    if attrs["trips_given"]:
        if attrs["trips"] is not None:
            raise AttributeValueError("the number of turns is both an attribute and an operand")
        if inputs[0].dtype != COUNTER.dtype or inputs[0].size != 1:
            raise DtypeError(f"the number of turns must be one int64, not {inputs[0]}")
    if attrs["cond_given"]:
        check_condition(inputs[attrs["trips_given"]])
    if attrs["trips"] is None and not attrs["trips_given"] and not attrs["conditional"]:
        raise AttributeValueError("without a number of turns and a condition of the body's the loop would never end")


def _check_rows(form: _Form) -> None:
    if form.rows and form.most == UNKNOWN:
        raise AttributeValueError("attribute 'most' must say how many rows there can be")
    if form.rows and form.turns > form.most:
        raise ShapeError(f"{form.turns} turns make more than {form.most} rows")


def _temporaries(signature: Signature) -> Specs:
    form = _form(signature.attrs)
    return *form.temporaries(), workspace_of(form.body)


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    form = _form(signature.attrs)
    return tuple(Overwrite(i, form.ahead + i) for i in range(form.carried) if swaps_first(form.turns))


@frozen(eq=False)
class _Run:
    """One run of a loop. `slots` hold the rows of the last turn; `stacks` keep the rows of all turns."""

    form: _Form
    turns: Turns
    trips: Array
    condition: Array
    number: Array
    decision: Array
    slots: Sequence[Array]
    stacks: Sequence[Array]
    count: Array

    def __call__(self) -> None:
        done, limit, goes_on = 0, self.trips.item(), self.condition.item()
        while goes_on and done < limit:
            self._turn(done)
            done += 1
            goes_on = self.decision.item()
        self.turns.finish(done)
        for stack in self.stacks:
            stack[done:].fill(0)
        self.count.fill(done)

    def _turn(self, number: int) -> None:
        if self.stacks and number == self.form.most:
            raise ValueError(f"the loop goes on after {number} turns, and there is room for {number} rows")
        self.number.fill(number)
        self.turns.turn(number)
        for slot, stack in zip(self.slots, self.stacks, strict=True):
            np.copyto(stack[number, ...], slot)


def _bind(call: Binding) -> Thunk:
    form, attrs = _form(call.attrs), call.attrs
    number, decision, *others, inside = call.temporaries
    slots, swap = others[: len(form.rows)], others[len(form.rows) :]
    captured = call.inputs[form.ahead + form.carried :]
    trips = np.asarray(sys.maxsize if attrs["trips"] is None else attrs["trips"])

    def bind(reads: Sequence[Array], writes: Sequence[Array]) -> Thunk:
        outputs = (*(decision.reshape(s.shape) for s in form.body.outputs[: form.conditional]), *writes, *slots)
        return form.body.bind((number, *reads, *captured), outputs, inside)

    inputs = call.inputs[form.ahead : form.ahead + form.carried]
    turns = bind_turns(form.turns, Carried(inputs, call.outputs[: form.carried], tuple(swap)), bind)
    run = _Run(
        form,
        turns,
        call.inputs[0] if attrs["trips_given"] else trips,
        call.inputs[attrs["trips_given"]] if attrs["cond_given"] else np.asarray(True),
        number,
        decision,
        slots,
        call.outputs[form.carried : -1],
        call.outputs[-1],
    )
    return run if form.conditional else partial(_run_on, run)


def _run_on(run: _Run) -> None:
    """Runs a body that does not say whether to go on."""
    run.decision.fill(True)
    run()


def _cost(signature: Signature) -> Cost:
    """Returns the cost of all turns, or of the most that make rows; of one where nothing is known."""
    form = _form(signature.attrs)
    turns = next((n for n in (form.turns, form.most) if n != UNKNOWN), 1)
    once, around = form.body.cost, elementwise_cost(signature)
    return Cost(turns * once.flops, turns * once.bytes + around.bytes)


LOOP = OpSchema(
    name="loop",
    summary="Runs `body` `trips` times or until it says stop; `carried` values go round, further outputs become rows.",
    infer=_infer,
    kernels=(Kernel("bodies", _bind, _temporaries, contiguous=all_contiguous),),
    arity=(0, 2**31),
    attributes=(
        body_attribute("body"),
        Attribute("carried", _natural),
        Attribute("trips", optional(_natural), None),
        Attribute("trips_given", flag, False),
        Attribute("cond_given", flag, False),
        Attribute("conditional", flag, False),
        Attribute("most", optional(_natural), None),
    ),
    overwrites=_overwrites,
    cost=_cost,
)
OPS = (LOOP,)
