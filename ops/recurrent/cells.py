"""One time step of LSTM, GRU and RNN (ONNX, version 22), on arrays (batch, hidden); gates hold what x gives already.

Hochreiter, Schmidhuber, "Long Short-Term Memory" (1997), with the peepholes of Gers, Schmidhuber (2000); Cho et al.,
"Learning Phrase Representations using RNN Encoder-Decoder" (2014).
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from attrs import frozen

from ops.recurrent.activations import Activation, Scratch, clipped
from ops.schema.schema import Attrs, Thunk
from ops.tensor.spec import Array


@frozen(eq=False)
class Cell:
    """One direction: activations, recurrent weights (gates * hidden, hidden), states, and temporaries.

    `product` (batch * gates * hidden) and `temporary` (batch, hidden) are of the type of the states, `mask` is boolean.
    `peepholes` (3 * hidden) and `reset_bias` (hidden) are empty where there are none.
    """

    activations: tuple[Activation, ...]
    attrs: Attrs
    r: Array
    h: Array
    c: Array
    product: Array
    temporary: Array
    mask: Array
    peepholes: Array
    reset_bias: Array

    @property
    def hidden(self) -> int:
        """Returns the number of elements of a state."""
        return int(self.h.shape[1])

    def gate(self, gates: Array, first: int, count: int = 1) -> Array:
        """Returns some neighbouring gates."""
        return gates[:, first * self.hidden : (first + count) * self.hidden]

    def apply(self, which: int, x: Array) -> Iterator[Thunk]:
        """Clips, and applies the activation of that number, in place."""
        limit = self.attrs["clip"]
        if limit is not None:
            yield from clipped(x, -limit, limit)
        for first in range(0, x.shape[1], max(self.hidden, 1)):
            part = x[:, first : first + self.hidden]
            yield from self.activations[which].steps(Scratch(part, self.temporary, self.mask))

    def multiplied(self, state: Array, first: int, count: int) -> tuple[Thunk, Array]:
        """Returns the step that multiplies a state with the weights of some gates, and its (batch, count * hidden)."""
        rows = self.r[first * self.hidden : (first + count) * self.hidden]
        product = self.product[: len(state) * len(rows)].reshape(len(state), len(rows))
        return partial(np.matmul, state, rows.T, product), product


Step = Callable[[Cell, Array], tuple[list[Thunk], tuple[Array, ...]]]
"""The steps of a cell on its gates, in place, and where the new states are then."""


def rnn_step(cell: Cell, gates: Array) -> tuple[list[Thunk], tuple[Array, ...]]:
    """Returns the steps of an RNN, h = f(x w + h r + b), and where the new state is."""
    multiply, product = cell.multiplied(cell.h, 0, 1)
    return [multiply, partial(np.add, gates, product, gates), *cell.apply(0, gates)], (gates,)


def gru_step(cell: Cell, gates: Array) -> tuple[list[Thunk], tuple[Array, ...]]:
    """Returns the steps of a GRU, and where the new state is; the gates are z, r, h.

    h = (1 - z) h' + z h, where h' is made of x and of what r lets through.
    """
    update, reset, fresh = (cell.gate(gates, i) for i in range(3))
    both = cell.gate(gates, 0, 2)
    multiply, product = cell.multiplied(cell.h, 0, 2)
    steps: list[Thunk] = [multiply, partial(np.add, both, product, both), *cell.apply(0, both)]
    if cell.attrs["linear_before_reset"]:
        multiply, product = cell.multiplied(cell.h, 2, 1)
        biased = [partial(np.add, product, cell.reset_bias, product)] if cell.reset_bias.size else []
        steps += [multiply, *biased, partial(np.multiply, product, reset, product)]
    else:
        multiply, product = cell.multiplied(reset, 2, 1)
        steps += [partial(np.multiply, reset, cell.h, reset), multiply]
    steps += [partial(np.add, fresh, product, fresh), *cell.apply(1, fresh)]
    temporary = cell.temporary
    steps += [partial(np.subtract, cell.h, fresh, temporary), partial(np.multiply, temporary, update, temporary)]
    return [*steps, partial(np.add, fresh, temporary, fresh)], (fresh,)


def lstm_step(cell: Cell, gates: Array) -> tuple[list[Thunk], tuple[Array, ...]]:
    """Returns the steps of an LSTM, and where the new states are; the gates are i, o, f, c.

    C = f C + i c, h = o tanh(C). Clipping bounds gates, not C, as in onnxruntime.
    """
    admit, out, forget, fresh = (cell.gate(gates, i) for i in range(4))
    multiply, product = cell.multiplied(cell.h, 0, 4)
    steps: list[Thunk] = [multiply, partial(np.add, gates, product, gates)]
    steps += [*_peep(cell, 0, cell.c, admit), *_peep(cell, 2, cell.c, forget), *cell.apply(0, admit)]
    steps += _coupled(admit, forget) if cell.attrs["input_forget"] else cell.apply(0, forget)
    steps += cell.apply(1, fresh)
    steps += [partial(np.multiply, forget, cell.c, forget), partial(np.multiply, admit, fresh, admit)]
    steps += [partial(np.add, forget, admit, forget), *_peep(cell, 1, forget, out), *cell.apply(0, out)]
    unclipped = Scratch(fresh, cell.temporary, cell.mask)
    steps += [partial(np.copyto, fresh, forget), *cell.activations[2].steps(unclipped)]
    return [*steps, partial(np.multiply, fresh, out, fresh)], (fresh, forget)


def _coupled(admit: Array, forget: Array) -> list[Thunk]:
    """Returns the steps of an input gate that admits what the other gate does not keep."""
    return [partial(np.subtract, np.ones((), admit.dtype), admit, forget)]


def _peep(cell: Cell, which: int, state: Array, gate: Array) -> list[Thunk]:
    """Returns the steps of gate += peephole * state."""
    if not cell.peepholes.size:
        return []
    weights = cell.peepholes[which * cell.hidden : (which + 1) * cell.hidden]
    return [partial(np.multiply, state, weights, cell.temporary), partial(np.add, gate, cell.temporary, gate)]
