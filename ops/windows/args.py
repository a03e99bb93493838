"""The words of a call of `ops.windows.code.windows`: sliding windows over channels-last pixels."""

import math

from attrs import frozen

from ops.common.windows import Windows
from ops.native.call import Native, Step, Word
from ops.native.door import address
from ops.tensor.spec import Array, Shape
from ops.windows.pixels import pitch

_NOWHERE = 0, 0, 0


@frozen(eq=False)
class Finish:
    """What happens to sums: low, high and slope of the activation."""

    low: float = -math.inf
    high: float = math.inf
    slope: float = 1.0


def spatial(values: Shape, default: int) -> Shape:
    """One entry for each of three dimensions; those that are not there come first."""
    return (default,) * (3 - len(values)) + values


def geometry(w: Windows) -> Shape:
    """Sizes, outputs, kernel, strides, dilations, begin and end pads, three of each."""
    ones = (w.sizes, w.outputs, w.kernel, w.strides, w.dilations)
    entries = [*(spatial(v, 1) for v in ones), *(spatial(v, 0) for v in (w.begins, w.ends))]
    return tuple(n for entry in entries for n in entry)


def windows_call(
    kind: int, w: Windows, x: Array, y: Array, *, operands: tuple[Array, ...] = (), finish: Finish | None = None
) -> Native:
    """The thunk; `kind` is one of ops.windows.kinds.

    Operands of a depthwise convolution are weights (taps, C), bias and, if there is any, a tensor to add. All are
    float32; the pixels of x, y and what is added are dense, each at a pitch of its own.
    """
    held = finish or Finish()
    places = tuple(a.ctypes.data for a in operands)
    added_pitch = 4 * pitch(operands[2]) if len(operands) > 2 else 0
    words: tuple[Word, ...] = (
        *(kind, x.ctypes.data, y.ctypes.data, x.shape[0], y.shape[-1]),
        *geometry(w),
        *(4 * pitch(x), 4 * pitch(y)),
        *(*places, *_NOWHERE[len(places) :], added_pitch),
        *map(float, (held.low, held.high, held.slope)),
        y.shape[-1] // max(x.shape[-1], 1),
    )
    return Native((Step(address("ops.windows.code", "windows"), words),), (x, y, *operands))
