"""What a sliding window reads along an axis. Imports numba: only modules of compiled code load it."""

from typing import Any

from allocator.machine_code.memory import jitable
from ops.windows.args import AVERAGE_PADDED

Clip = tuple[int, int, int, int]


@jitable
def taps_inside(args: Any, axis: int, output: int) -> tuple[int, int, int]:
    """Returns the first element of x inside a window, and its taps [first, last) there.

    `args` is a record with the fields of GEOMETRY; `output` is the number of the window along the axis.

        x                 .  .  0  1  2  3  4  5      2 of padding
        window 0          t0 t1 t2 t3                 first element 0, taps [2, 4)
    """
    size, kernel, dilation = args.sizes[axis], args.kernel[axis], args.dilations[axis]
    start = output * args.strides[axis] - args.begins[axis]
    first = min(max(-(start // dilation), 0), kernel)
    last = max(first, min(kernel, (size - 1 - start) // dilation + 1))
    return start + first * dilation, first, last


@jitable
def clip(args: Any, axis: int, output: int) -> Clip:
    """Returns what `taps_inside` returns, and how many taps count in a mean; the record has a kind, too."""
    element, first, last = taps_inside(args, axis, output)
    counted = last - first
    if args.kind == AVERAGE_PADDED:
        start, behind = output * args.strides[axis] - args.begins[axis], args.sizes[axis] + args.ends[axis]
        counted = min(args.kernel[axis], max((behind - 1 - start) // args.dilations[axis] + 1, 0))
    return element, first, last, counted
