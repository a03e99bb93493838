"""A dense copy; what a plan inserts where a kernel needs dense data and would be given strides."""

from ops.movement.copies import Move
from ops.movement.kernels import movement
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, OpSchema, Specs, any_strides


def _infer(inputs: Specs, _: Attrs) -> Specs:
    return inputs


def _moves(call: Binding) -> tuple[Move, ...]:
    return ((call.x, call.y),)


def _gradient(b: Backward) -> Terms:
    return (b.dy,)


COPY = OpSchema(
    name="copy",
    summary="The same elements in bytes of their own, dense in C order.",
    infer=_infer,
    kernels=movement(_moves, writes=any_strides),
    gradient=_gradient,
    bit_copies=True,
)
OPS = (COPY,)
