"""Running sums and products, and sequences turned round (ONNX CumSum-14, CumProd-26, ReverseSequence-10)."""

from functools import partial

import numpy as np

from ops.common.apply import Operand, V, apply1
from ops.common.indices import INT64, IndexRangeError
from ops.common.thunks import in_turn
from ops.schema.attributes import Attribute, flag, integer
from ops.schema.backward import Backward, Terms
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.tensor.errors import DtypeError, ShapeError
from ops.tensor.spec import NUMBERS, normalize_axis


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    (x,) = inputs
    if x.dtype not in NUMBERS:
        raise DtypeError(f"takes numbers, not {x.dtype}")
    normalize_axis(attrs["axis"], x.ndim)
    return (x,)


def _running(add: np.ufunc, call: Binding) -> Thunk:
    axis, step = normalize_axis(call.attrs["axis"], call.x.ndim), -1 if call.attrs["reverse"] else 1
    ahead = (slice(None),) * axis
    x, y = (array[(*ahead, slice(None, None, step))] for array in (call.x, call.y))
    if not call.attrs["exclusive"]:
        return partial(add.accumulate, x, axis=axis, dtype=x.dtype, out=y)
    x, first, y = x[(*ahead, slice(None, -1))], y[(*ahead, slice(0, 1))], y[(*ahead, slice(1, None))]
    return in_turn(partial(first.fill, add.identity), partial(add.accumulate, x, axis=axis, dtype=x.dtype, out=y))


def _reverse_infer(inputs: Specs, attrs: Attrs) -> Specs:
    x, lengths = inputs
    batch, time = attrs["batch_axis"], attrs["time_axis"]
    if x.ndim < 2 or {batch, time} != {0, 1}:
        raise ShapeError(f"batch axis {batch} and time axis {time} must be 0 and 1 of shape {x.shape}")
    if lengths.shape != (x.shape[batch],) or lengths.dtype != INT64:
        raise ShapeError(f"lengths must be int64[{x.shape[batch]}], not {lengths}")
    return (x,)


def _reverse_sequence(call: Binding) -> Thunk:
    lengths, order = call.inputs[1], (call.attrs["batch_axis"], call.attrs["time_axis"])
    pairs = tuple(zip(*(np.moveaxis(array, order, (0, 1)) for array in (call.x, call.y)), strict=True))
    most = call.x.shape[call.attrs["time_axis"]]

    def run() -> None:
        for (x, y), length in zip(pairs, lengths, strict=True):
            n = int(length)
            if not 0 <= n <= most:
                raise IndexRangeError(f"a sequence of length {n} in {most} steps")
            np.copyto(y[:n], x[:n][::-1])
            np.copyto(y[n:], x[n:])

    return run


def _cum_sum_gradient(b: Backward) -> Terms:
    return (b.apply1(CUM_SUM, b.dy, **{**b.attrs, "reverse": not b.attrs["reverse"]}),)


def _reverse_gradient(b: Backward) -> Terms:
    return b.terms(lambda: b.apply1(REVERSE_SEQUENCE, b.dy, b.inputs[1], **b.attrs))


_RUNNING = (Attribute("axis", integer), Attribute("exclusive", flag, False), Attribute("reverse", flag, False))
CUM_SUM = OpSchema(
    name="cum_sum",
    summary="Sums of the elements up to each along `axis`, without it where `exclusive`, from the end where `reverse`.",
    infer=_infer,
    kernels=(Kernel("numpy", partial(_running, np.add)),),
    attributes=_RUNNING,
    gradient=_cum_sum_gradient,
)
CUM_PROD = OpSchema(
    name="cum_prod",
    summary="Products of the elements up to each along `axis`, without it where `exclusive`, from the end where "
    "`reverse`.",
    infer=_infer,
    kernels=(Kernel("numpy", partial(_running, np.multiply)),),
    attributes=_RUNNING,
)
REVERSE_SEQUENCE = OpSchema(
    name="reverse_sequence",
    summary="The first lengths[b] time steps of each sequence b backwards, the others as they are.",
    infer=_reverse_infer,
    kernels=(Kernel("numpy", _reverse_sequence),),
    arity=(2, 2),
    attributes=(Attribute("batch_axis", integer, 1), Attribute("time_axis", integer, 0)),
    gradient=_reverse_gradient,
)
OPS = (CUM_SUM, CUM_PROD, REVERSE_SEQUENCE)


def cum_sum(x: V, axis: int, exclusive: bool = False, reverse: bool = False) -> V:
    """Returns sums of the elements up to each along `axis`."""
    return apply1(CUM_SUM, x, axis=axis, exclusive=exclusive, reverse=reverse)


def cum_prod(x: V, axis: int, exclusive: bool = False, reverse: bool = False) -> V:
    """Returns products of the elements up to each along `axis`."""
    return apply1(CUM_PROD, x, axis=axis, exclusive=exclusive, reverse=reverse)


def reverse_sequence(x: V, lengths: Operand, batch_axis: int = 1, time_axis: int = 0) -> V:
    """Returns each sequence b with its first lengths[b] time steps in reverse order."""
    return apply1(REVERSE_SEQUENCE, x, lengths, batch_axis=batch_axis, time_axis=time_axis)
