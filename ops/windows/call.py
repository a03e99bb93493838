"""Calls of the compiled sliding windows over channels-last pixels."""

import math

from attrs import frozen

from allocator.machine_code.door import address
from ops.common.windows import Windows
from ops.native.call import Native, native_call
from ops.tensor.spec import Array
from ops.windows.args import WINDOWS, geometry
from ops.windows.pixels import pitch


@frozen(eq=False)
class Activation:
    """The last step of the sums: those below 0 are multiplied by the slope, then all are held between bounds."""

    low: float = -math.inf
    high: float = math.inf
    slope: float = 1.0


def windows_call(
    kind: int,
    w: Windows,
    x: Array,
    y: Array,
    *,
    operands: tuple[Array, ...] = (),
    activation: Activation | None = None,
) -> Native:
    """Returns the thunk; `kind` is one of ops.windows.args.

    Operands of a depthwise convolution are weights (taps, C), bias and, if there is any, a tensor to add. All are
    float32; the pixels of x, y and what is added are dense, each at a pitch of its own.
    """
    limits = activation or Activation()
    weights, bias, added = (*operands, None, None, None)[:3]
    return native_call(
        address("ops.windows.code", "windows"),
        WINDOWS,
        kind=kind,
        x=x,
        y=y,
        images=x.shape[0],
        channels=y.shape[-1],
        **geometry(w),
        x_pitch=4 * pitch(x),
        y_pitch=4 * pitch(y),
        weights=weights,
        bias=bias,
        added=added,
        added_pitch=0 if added is None else 4 * pitch(added),
        low=limits.low,
        high=limits.high,
        slope=limits.slope,
        outputs_per_channel=y.shape[-1] // max(x.shape[-1], 1),
    )
