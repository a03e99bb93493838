"""Recurrent layers (ONNX LSTM-22, GRU-22, RNN-22): both directions, lengths of sequences, first states, peepholes."""

import math
from collections.abc import Sequence
from typing import Any, cast

from ops.common.apply import Operand, V, apply
from ops.recurrent.cells import Step, gru_step, lstm_step, rnn_step
from ops.recurrent.compiled import lstm_kernel
from ops.recurrent.run import recurrent_kernel
from ops.recurrent.shapes import ATTRIBUTES, OPTIONAL, Family, inference
from ops.schema.attributes import Attribute, flag
from ops.schema.schema import Cost, Kernel, OpSchema, Signature

_PLAIN = frozenset(("bias", "lengths", "initial_h"))
_RNN = Family(1, ("tanh",), _PLAIN, states=1)
_GRU = Family(3, ("sigmoid", "tanh"), _PLAIN, states=1)
_LSTM = Family(4, ("sigmoid", "tanh", "tanh"), _PLAIN | {"initial_c", "peepholes"}, states=2)


def _cost(signature: Signature) -> Cost:
    """Counts two operations a weight, time step and sequence; activations are not counted."""
    x, w, r = signature.inputs[:3]
    return Cost(2 * math.prod(x.shape[:2]) * (w.size + r.size), signature.nbytes)


def _schema(
    name: str,
    family: Family,
    step: Step,
    own: tuple[Attribute, ...],
    summary: str,
    *,
    compiled: tuple[Kernel, ...] = (),
) -> OpSchema:
    return OpSchema(
        name=name,
        summary=summary,
        infer=inference(family),
        kernels=(recurrent_kernel(family, step), *compiled),
        arity=(3, 3 + len(family.operands)),
        attributes=(*ATTRIBUTES, *own),
        cost=_cost,
    )


RNN = _schema(
    "rnn", _RNN, rnn_step, (), "h = f(x w + h r + b) for each time step: all h (if `with_y`), and the last one."
)
GRU = _schema(
    "gru",
    _GRU,
    gru_step,
    (Attribute("linear_before_reset", flag, False),),
    "Gated recurrent units over time: all h (if `with_y`), and the last one.",
)
LSTM = _schema(
    "lstm",
    _LSTM,
    lstm_step,
    (Attribute("input_forget", flag, False),),
    "Long short-term memory over time: all h (if `with_y`), the last h and the last cell.",
    compiled=(lstm_kernel(_LSTM),),
)
OPS = (RNN, GRU, LSTM)


def _apply(schema: OpSchema, required: tuple[Operand, ...], optional: dict[str, Operand], attrs: dict[str, Any]) -> Any:
    names = tuple(n for n in OPTIONAL if optional.get(n) is not None)
    return apply(schema, (*required, *(optional[n] for n in names)), given=names, **attrs)


def rnn(
    x: V,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    *,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
) -> tuple[V, V]:
    """Computes h = f(x w + h r + bias); returns y and the last h.

    x is (time, batch, inputs), w (directions, gates * hidden, inputs), r likewise for the state, y (time, directions,
    batch, hidden), a state (directions, batch, hidden). `lengths` (batch,) end sequences early. `direction` is forward,
    reverse or bidirectional; `layout` 1 puts the batch first; `clip` limits what an activation is given;
    `activations` are names of ONNX, with their `activation_alpha` and `activation_beta`.
    """
    more = {"bias": bias, "lengths": lengths, "initial_h": initial_h}
    attrs: dict[str, object] = {"direction": direction, "layout": layout, "clip": clip, "activations": activations}
    attrs |= {"activation_alpha": activation_alpha, "activation_beta": activation_beta}
    return cast(tuple[V, V], _apply(RNN, (x, w, r), more, attrs))


def gru(
    x: V,
    w: Operand,
    r: Operand,
    bias: Operand | None = None,
    *,
    lengths: Operand | None = None,
    initial_h: Operand | None = None,
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    linear_before_reset: bool = False,
) -> tuple[V, V]:
    """Computes gated recurrent units (gates z, r, h); returns y and the last h.

    Operands and options are those of `rnn`. With `linear_before_reset`, r scales the product of
    the state and its weights, not the state.
    """
    more = {"bias": bias, "lengths": lengths, "initial_h": initial_h}
    attrs: dict[str, object] = {"direction": direction, "layout": layout, "clip": clip, "activations": activations}
    attrs |= {"activation_alpha": activation_alpha, "activation_beta": activation_beta}
    attrs["linear_before_reset"] = linear_before_reset
    return cast(tuple[V, V], _apply(GRU, (x, w, r), more, attrs))


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
    direction: str = "forward",
    layout: int = 0,
    clip: float | None = None,
    activations: Sequence[str] = (),
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    input_forget: bool = False,
) -> tuple[V, V, V]:
    """Computes long short-term memory (gates i, o, f, c); returns y, the last h and the last cell.

    Operands and options are those of `rnn`. `peepholes` (directions, 3 * hidden) are those of i, o and f. With
    `input_forget`, f is 1 - i.
    """
    states = {"initial_h": initial_h, "initial_c": initial_c}
    more = {"bias": bias, "lengths": lengths, "peepholes": peepholes, **states}
    attrs: dict[str, object] = {"direction": direction, "layout": layout, "clip": clip, "activations": activations}
    attrs |= {"activation_alpha": activation_alpha, "activation_beta": activation_beta}
    attrs["input_forget"] = input_forget
    return cast(tuple[V, V, V], _apply(LSTM, (x, w, r), more, attrs))
