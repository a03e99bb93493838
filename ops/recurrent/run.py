"""Recurrent operators over time: one product for a block of time steps, then the steps one after the other.

A block is as long as fits into a fixed number of bytes, so that the workspace does not grow with the length of the
sequences. Sequences that have ended keep their state, and their y is 0.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from ops.common.boxes import pieces
from ops.common.indices import IndexRangeError
from ops.common.thunks import in_turn
from ops.recurrent.cells import Cell, Step
from ops.recurrent.scratch import Buffers, steps_of, temporaries
from ops.recurrent.shapes import Case, Family, case_for
from ops.schema.schema import Binding, Kernel, Thunk, all_contiguous
from ops.tensor.spec import Array


@frozen(eq=False)
class _Direction:
    """The tensors that one direction reads and writes, as (time, batch, ...) views."""

    case: Case
    call: Binding
    buffers: Buffers
    number: int
    operands: dict[str, Array]

    @property
    def backwards(self) -> bool:
        """Returns whether time runs from the end."""
        return self.number == 1 or self.call.attrs["direction"] == "reverse"

    def times(self) -> Iterator[range]:
        """Yields blocks of time steps in the order in which they run."""
        blocks = [range(*p) for p in pieces(self.case.time, steps_of(self.case))]
        return (b[::-1] for b in reversed(blocks)) if self.backwards else iter(blocks)

    def weights(self, name: str, buffer: Array) -> tuple[list[Thunk], Array]:
        """Returns a matrix in the type that is computed in, and the steps that convert it."""
        source = self.operands[name][self.number]
        if not buffer.size:
            return [], source
        target = buffer.reshape(source.shape)
        return [partial(np.copyto, target, source)], target

    def states(self, array: Array) -> Array:
        """Returns the first or last state of this direction: (batch, hidden)."""
        return array[:, self.number] if self.case.layout else array[self.number]

    def start(self, name: str, state: Array) -> Thunk:
        """Returns the step that sets a state to its first value."""
        if name not in self.operands:
            return partial(state.fill, 0)
        return partial(np.copyto, state, self.states(self.operands[name]))

    def alive(self, t: int) -> list[Thunk]:
        """Returns the steps that find which sequences are longer than `t`; none where there are no lengths."""
        if not self.buffers.live.size:
            return []
        lengths = self.operands["lengths"]
        return [partial(np.greater, lengths, np.asarray(t, lengths.dtype), self.buffers.live)]


def _bias(direction: _Direction, *, linear: bool) -> tuple[list[Thunk], Array, Array]:
    """Returns the sum of both biases; where `linear`, that of the last gate of r is returned separately."""
    case, buffer = direction.case, direction.buffers.bias
    none = buffer[:0]
    if "bias" not in direction.operands:
        return [], none, none
    summed, alone = buffer[: case.width], buffer[2 * case.width - case.hidden :]
    count = case.width - case.hidden * linear
    steps: list[Thunk] = [
        partial(np.copyto, buffer, direction.operands["bias"][direction.number]),
        partial(np.add, summed[:count], buffer[case.width : case.width + count], summed[:count]),
    ]
    return steps, summed, alone if linear else none


def _projected(direction: _Direction, times: range, w: Array, bias: Array) -> tuple[list[Thunk], Array]:
    """Returns the gates of a block (time, batch, width): x w, and the bias."""
    case, buffers, first, last = direction.case, direction.buffers, min(times), max(times) + 1
    x = np.swapaxes(direction.call.x, 0, 1) if case.layout else direction.call.x
    part, steps = x[first:last], list[Thunk]()
    gates = buffers.gates[: len(times) * case.batch * case.width].reshape(len(times), case.batch, case.width)
    if buffers.inputs.size:
        wide = buffers.inputs[: part.size].reshape(part.shape)
        steps.append(partial(np.copyto, wide, part))
        part = wide
    if part.flags.c_contiguous:
        rows = len(times) * case.batch
        steps.append(partial(np.matmul, part.reshape(rows, case.inputs), w.T, gates.reshape(rows, case.width)))
    else:
        steps.append(partial(np.matmul, part, w.T, gates))
    if bias.size:
        steps.append(partial(np.add, gates, bias, gates))
    return steps, gates


def _kept(states: Sequence[Array], fresh: Sequence[Array], y: Array, live: Array) -> list[Thunk]:
    """Returns the steps that take over new states, and write the first one to y.

    Where sequences have lengths, only those that still run take part.
    """
    if not live.size:
        kept: list[Thunk] = [partial(np.copyto, s, f) for s, f in zip(states, fresh, strict=True)]
        return [*kept, partial(np.copyto, y, fresh[0], casting="same_kind")] if y.size else kept
    column = live[:, None]
    kept = [partial(np.copyto, s, f, where=column) for s, f in zip(states, fresh, strict=True)]
    if y.size:
        kept += [partial(y.fill, 0), partial(np.copyto, y, fresh[0], casting="same_kind", where=column)]
    return kept


def _cell(direction: _Direction, r: Array, reset_bias: Array) -> Cell:
    case, buffers = direction.case, direction.buffers
    shape = (case.batch, case.hidden)
    h, temporary, mask = (a.reshape(shape) for a in (buffers.h, buffers.temporary, buffers.mask))
    c = buffers.c.reshape(shape) if buffers.c.size else h
    active, attrs = case.of_direction(direction.number), direction.call.attrs
    return Cell(active, attrs, r, h, c, buffers.product, temporary, mask, buffers.peepholes, reset_bias)


def _sequences(direction: _Direction) -> Array:
    """Returns y of this direction as (time, batch, hidden); an empty row for each time step where y is not wanted."""
    if not direction.call.attrs["with_y"]:
        return np.empty((direction.case.time, 0))
    y = direction.call.y
    return np.swapaxes(y[:, :, direction.number], 0, 1) if direction.case.layout else y[:, direction.number]


def _prepared(direction: _Direction) -> tuple[list[Thunk], Array, Array, Cell]:
    """Returns steps, and what they prepare: the weights of x, the bias of their products, and the cell."""
    loads, w = direction.weights("w", direction.buffers.w)
    more, r = direction.weights("r", direction.buffers.r)
    biased, bias, reset_bias = _bias(direction, linear=bool(direction.call.attrs.get("linear_before_reset", False)))
    steps = [*loads, *more, *biased]
    if "peepholes" in direction.operands:
        steps.append(partial(np.copyto, direction.buffers.peepholes, direction.operands["peepholes"][direction.number]))
    return steps, w, bias, _cell(direction, r, reset_bias)


def _run(direction: _Direction, step: Step, count: int) -> Iterator[Thunk]:
    """Returns all steps of one direction of a cell that carries `count` states."""
    steps, w, bias, cell = _prepared(direction)
    yield from steps
    states, y, live = (cell.h, cell.c)[:count], _sequences(direction), direction.buffers.live
    yield from (direction.start(n, s) for n, s in zip(("initial_h", "initial_c"), states, strict=False))
    for times in direction.times():
        steps, gates = _projected(direction, times, w, bias)
        yield from steps
        for t in times:
            yield from direction.alive(t)
            steps, fresh = step(cell, gates[t - min(times)])
            yield from (*steps, *_kept(states, fresh, y[t], live))
    for state, output in zip(states, direction.call.outputs[-count:], strict=True):
        yield partial(np.copyto, direction.states(output), state, casting="same_kind")


def _length_check(lengths: Array, time: int) -> Thunk:
    """Raises IndexRangeError for a sequence that is longer than the data, or negative."""

    def check() -> None:
        for length in lengths:
            if not 0 <= length <= time:
                raise IndexRangeError(f"a sequence of length {int(length)} in {time} steps")

    return check


def recurrent_kernel(family: Family, step: Step) -> Kernel:
    """Returns the kernel of a family whose cell takes that step."""

    def bind(call: Binding) -> Thunk:
        case = case_for(family, call.signature)
        buffers = Buffers(*call.temporaries)
        operands = dict(zip(("w", "r", *call.attrs["given"]), call.inputs[1:], strict=True))
        steps = [_length_check(operands["lengths"], case.time)] if "lengths" in operands else []
        for number in range(case.directions):
            steps += _run(_Direction(case, call, buffers, number, operands), step, family.states)
        return in_turn(*steps)

    return Kernel("blas", bind, partial(temporaries, family), all_contiguous)
