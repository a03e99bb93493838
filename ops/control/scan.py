"""A body that runs once for each row of its inputs (ONNX Scan-11).

The operands are the first states, then the tensors that are read row by row, then what every turn reads. The body reads
states, one row of each tensor, and the rest; it gives the next states, and one row of each further output. A tensor
has its rows along one axis (the first unless told), and they are taken or put forwards or backwards.
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from ops.control.loop_buffers import Carried, Turns, bind_turns, needs_swap, swaps_first
from ops.schema.attributes import Attribute, integer, integers
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
    elementwise_cost,
)
from ops.tensor.errors import ArityError, AttributeValueError, ShapeError
from ops.tensor.spec import Array, Shape, TensorSpec, normalize_axis


@frozen
class _Way:
    """How a tensor is cut into rows."""

    axis: int
    backwards: bool

    def row(self, tensor: TensorSpec) -> TensorSpec:
        """Returns the spec of one row of a tensor."""
        return tensor.with_shape(tensor.shape[: self.axis] + tensor.shape[self.axis + 1 :])

    def stack(self, row: TensorSpec, count: int) -> TensorSpec:
        """Returns the spec of a tensor of `count` rows."""
        return row.with_shape((*row.shape[: self.axis], count, *row.shape[self.axis :]))

    def rows(self, array: Array) -> Array:
        """Returns the array with its rows along the first axis, in the order of turns; no copy."""
        return np.moveaxis(array, self.axis, 0)[:: -1 if self.backwards else 1]


@frozen(eq=False)
class _Form:
    """The numbers of a scan: its states, how each tensor is cut into rows, and `turns`, the rows of each tensor."""

    body: Body
    states: int
    turns: int
    inputs: tuple[_Way, ...]
    outputs: tuple[_Way, ...]

    @property
    def captured(self) -> int:
        """Returns the index of the first operand that every turn reads."""
        return self.states + len(self.inputs)

    def slots(self) -> tuple[Specs, Specs]:
        """Returns the specs of one row of each input, and of each output."""
        return self.body.inputs[self.states : self.captured], self.body.outputs[self.states :]

    def temporaries(self) -> Specs:
        """Returns rows that are read, rows that are written, and buffers to swap."""
        reads, writes = self.slots()
        swap = self.body.inputs[: self.states] if needs_swap(self.turns) else ()
        return *reads, *writes, *swap


def _ways(attrs: Attrs, side: str, ranks: Sequence[int]) -> tuple[_Way, ...]:
    axes, directions = attrs[f"{side}_axes"] or (0,) * len(ranks), attrs[f"{side}_directions"] or (0,) * len(ranks)
    if len(axes) != len(ranks) or len(directions) != len(ranks):
        raise AttributeValueError(f"{len(axes)} axes and {len(directions)} directions for {len(ranks)} {side}s of rows")
    if not set(directions) <= {0, 1}:
        raise AttributeValueError(f"directions {directions}: 0 is forwards, 1 backwards")
    return tuple(_Way(normalize_axis(a, n), d == 1) for a, d, n in zip(axes, directions, ranks, strict=True))


def _form(inputs: Specs, attrs: Attrs) -> _Form:
    body, states = attrs["body"], attrs["states"]
    tensors = inputs[states : states + attrs["scan_inputs"]]
    if not body.outputs:
        raise ArityError("the body gives nothing")
    if not tensors or len(tensors) < attrs["scan_inputs"] or len(body.outputs) < states:
        raise ArityError(f"{states} states and {attrs['scan_inputs']} inputs of rows, of {len(inputs)} operands")
    reads = _ways(attrs, "input", [t.ndim for t in tensors])
    writes = _ways(attrs, "output", [row.ndim + 1 for row in body.outputs[states:]])
    lengths: Shape = tuple(t.shape[way.axis] for t, way in zip(tensors, reads, strict=True))
    if len(set(lengths)) != 1:
        raise ShapeError(f"inputs have {', '.join(map(str, lengths))} rows, which should be as many")
    return _Form(body, states, lengths[0], reads, writes)


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    form = _form(inputs, attrs)
    states, tensors = inputs[: form.states], inputs[form.states : form.captured]
    rows = (way.row(t) for way, t in zip(form.inputs, tensors, strict=True))
    check_operands("inputs of the body", form.body.inputs, (*states, *rows, *inputs[form.captured :]))
    check_operands("states that the body gives", states, form.body.outputs[: form.states])
    return *states, *(way.stack(r, form.turns) for way, r in zip(form.outputs, form.slots()[1], strict=True))


def _of(signature: Signature) -> _Form:
    return _form(signature.inputs, signature.attrs)


def _temporaries(signature: Signature) -> Specs:
    form = _of(signature)
    return *form.temporaries(), workspace_of(form.body)


def _contiguous(signature: Signature) -> tuple[int, ...]:
    """Returns the inputs that must be contiguous: all but those that are read row by row.

    Rows are copied out of tensors, whatever their strides.
    """
    form = _of(signature)
    return tuple(i for i in range(len(signature.inputs)) if not form.states <= i < form.captured)


def _overwrites(signature: Signature) -> tuple[Overwrite, ...]:
    """Returns where outputs may lie over inputs.

    States may as `ops.control.loop_buffers` says; rows may take the place of rows that were read a moment ago.
    """
    form = _of(signature)
    overwrites = [Overwrite(i, i) for i in range(form.states) if swaps_first(form.turns)]
    for o, write in enumerate(form.outputs, form.states):
        for i, read in enumerate(form.inputs, form.states):
            one, other = signature.inputs[i], signature.outputs[o]
            if write == read and one.shape == other.shape and one.dtype.itemsize == other.dtype.itemsize:
                overwrites.append(Overwrite(o, i))
    return tuple(overwrites)


@frozen(eq=False)
class _Run:
    """One run of a scan: each turn takes a row of `reads` into its slot, and puts a row of each slot into `writes`."""

    count: int
    turns: Turns
    reads: tuple[tuple[Array, Array], ...]
    writes: tuple[tuple[Array, Array], ...]

    def __call__(self) -> None:
        for number in range(self.count):
            for slot, rows in self.reads:
                np.copyto(slot, rows[number, ...])
            self.turns.turn(number)
            for slot, rows in self.writes:
                np.copyto(rows[number, ...], slot)
        self.turns.finish(self.count)


def _bind(call: Binding) -> Thunk:
    form = _of(call.signature)
    *temporaries, inside = call.temporaries
    reads, behind = temporaries[: len(form.inputs)], len(form.inputs) + len(form.outputs)
    writes, swap = temporaries[len(form.inputs) : behind], temporaries[behind:]
    captured = call.inputs[form.captured :]

    def bind(before: tuple[Array, ...], after: tuple[Array, ...]) -> Thunk:
        return form.body.bind((*before, *reads, *captured), (*after, *writes), inside)

    turns = bind_turns(form.turns, Carried(call.inputs[: form.states], call.outputs[: form.states], tuple(swap)), bind)
    taken = (way.rows(a) for way, a in zip(form.inputs, call.inputs[form.states : form.captured], strict=True))
    put = (way.rows(a) for way, a in zip(form.outputs, call.outputs[form.states :], strict=True))
    return _Run(form.turns, turns, tuple(zip(reads, taken, strict=True)), tuple(zip(writes, put, strict=True)))


def _cost(signature: Signature) -> Cost:
    """Returns the cost of all turns."""
    form = _of(signature)
    once, around = form.body.cost, elementwise_cost(signature)
    return Cost(form.turns * once.flops, form.turns * once.bytes + around.bytes)


SCAN = OpSchema(
    name="scan",
    summary="Runs `body` once for each row of `scan_inputs` tensors; `states` go round, further outputs become rows.",
    infer=_infer,
    kernels=(Kernel("bodies", _bind, _temporaries, contiguous=_contiguous),),
    arity=(1, 2**31),
    attributes=(
        body_attribute("body"),
        Attribute("states", integer, 0),
        Attribute("scan_inputs", integer, 1),
        Attribute("input_axes", integers, ()),
        Attribute("input_directions", integers, ()),
        Attribute("output_axes", integers, ()),
        Attribute("output_directions", integers, ()),
    ),
    overwrites=_overwrites,
    cost=_cost,
)
OPS = (SCAN,)
