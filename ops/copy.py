"""A dense copy; what a plan inserts where a kernel needs dense data and would be given strides."""

from ops.backward import Backward, Terms
from ops.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk, any_strides
from ops.thunks import copier


def _infer(inputs: Specs, _: Attrs) -> Specs:
    return inputs


def _copy(call: Binding) -> Thunk:
    return copier(call.x, call.y)


def _gradient(b: Backward) -> Terms:
    return (b.dy,)


COPY = OpSchema(
    name="copy",
    summary="The same elements in bytes of their own, dense in C order.",
    infer=_infer,
    kernels=(Kernel("numpy", _copy, writes=any_strides),),
    gradient=_gradient,
)
OPS = (COPY,)
