"""Recurrent layers (ONNX LSTM-22, GRU-22, RNN-22): both directions, lengths of sequences, first states, peepholes."""

import math

from ops.recurrent.cells import Step, gru_step, lstm_step, rnn_step
from ops.recurrent.run import recurrent_kernel
from ops.recurrent.shapes import ATTRIBUTES, Family, inference
from ops.schema.attributes import Attribute, flag
from ops.schema.schema import Cost, OpSchema, Signature

_PLAIN = frozenset(("bias", "lengths", "initial_h"))
_RNN = Family(1, ("tanh",), _PLAIN, states=1)
_GRU = Family(3, ("sigmoid", "tanh"), _PLAIN, states=1)
_LSTM = Family(4, ("sigmoid", "tanh", "tanh"), _PLAIN | {"initial_c", "peepholes"}, states=2)


def _cost(signature: Signature) -> Cost:
    """Two operations a weight, time step and sequence; activations not counted."""
    x, w, r = signature.inputs[:3]
    touched = sum(s.nbytes for s in signature.inputs + signature.outputs)
    return Cost(2 * math.prod(x.shape[:2]) * (w.size + r.size), touched)


def _schema(name: str, family: Family, step: Step, own: tuple[Attribute, ...], summary: str) -> OpSchema:
    return OpSchema(
        name=name,
        summary=summary,
        infer=inference(family),
        kernels=(recurrent_kernel(family, step),),
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
)
OPS = (RNN, GRU, LSTM)
