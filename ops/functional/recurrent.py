"""Recurrent layers on vars: x (time, batch, inputs), w (directions, gates * hidden, inputs), r likewise for the state.

With `layout` 1 the batch comes first in x, y and all states. `lengths` (batch,) end sequences early. `direction` is
forward, reverse or bidirectional. y is (time, directions, batch, hidden), a state (directions, batch, hidden).
"""

from typing import Any, cast

from ops.functional.apply import Operand, V, apply
from ops.recurrent.recurrent import GRU, LSTM, RNN
from ops.recurrent.shapes import OPTIONAL
from ops.schema.schema import OpSchema


def _apply(schema: OpSchema, required: tuple[Operand, ...], optional: dict[str, Operand], attrs: dict[str, Any]) -> Any:
    given = tuple(n for n in OPTIONAL if optional.get(n) is not None)
    return apply(schema, (*required, *(optional[n] for n in given)), given=given, **attrs)


def rnn(
    x: V,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    *,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    **options: Any,
) -> tuple[V, V]:
    """h = f(x w + h r + bias); y and the last h.

    Options: direction, layout, clip, activations with activation_alpha and activation_beta.
    """
    more = {"bias": bias, "lengths": lengths, "initial_h": initial_h}
    return cast(tuple[V, V], _apply(RNN, (x, w, r), more, options))


def gru(
    x: V,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    *,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    **options: Any,
) -> tuple[V, V]:
    """Gated recurrent units, gates z, r, h; y and the last h. Options as in rnn, and linear_before_reset."""
    more = {"bias": bias, "lengths": lengths, "initial_h": initial_h}
    return cast(tuple[V, V], _apply(GRU, (x, w, r), more, options))


def lstm(
    x: V,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    *,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    initial_c: Operand | None = None,
    peepholes: Operand | None = None,
    **options: Any,
) -> tuple[V, V, V]:
    """Long short-term memory, gates i, o, f, c; y, the last h, the last cell. Options as in rnn, and input_forget.

    `peepholes` (directions, 3 * hidden) are of i, o and f.
    """
    states = {"initial_h": initial_h, "initial_c": initial_c}
    more = {"bias": bias, "lengths": lengths, "peepholes": peepholes, **states}
    return cast(tuple[V, V, V], _apply(LSTM, (x, w, r), more, options))
