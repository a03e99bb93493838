"""Pooling of (N, C, spatial...) in float32, compiled: rows of outputs, tap by tap, vectors along the row.

Imports numba: a door loads it, on first use.
"""

from typing import Any

import numpy as np

from allocator.machine_code.entry import ANY_ORDER, entry
from allocator.machine_code.memory import jitable
from ops.native.intrinsics import intrinsic_of_two
from ops.native.memory import floats, ints, record_at, share
from ops.pool.args import GLOBAL, PLANES
from ops.windows import planes_emit
from ops.windows.args import AVERAGE_PADDED, LARGEST
from ops.windows.clip_code import clip
from ops.windows.planes_emit import Plane

_maxima_1, _maxima_2, _maxima_any = (intrinsic_of_two(planes_emit.maxima(n)) for n in (1, 2, 0))
_means_1, _means_2, _means_any = (intrinsic_of_two(planes_emit.means(n)) for n in (1, 2, 0))
_VECTOR = 16
"""Outputs of a tile."""
_NAN, _INFINITY = np.int32(0x7FFFFFFF), np.int32(0x7F800000)
"""A key above those of all numbers; the bits of infinity."""
_SUM = 256
"""Elements that are summed in float32, before such sums are added up in float64."""


@jitable
def _tile(kind: int, plane: Plane, numbers: Any) -> None:
    if kind == LARGEST:
        if plane.stride == 1:
            _maxima_1(plane, numbers)
        elif plane.stride == 2:
            _maxima_2(plane, numbers)
        else:
            _maxima_any(plane, numbers)
    elif plane.stride == 1:
        _means_1(plane, numbers)
    elif plane.stride == 2:
        _means_2(plane, numbers)
    else:
        _means_any(plane, numbers)


@jitable
def _row(args: Any, row: int) -> None:
    """Computes one row of outputs of one channel."""
    kind, height, width = args.kind, args.sizes[1], args.sizes[2]
    deep, high, wide = args.outputs[0], args.outputs[1], args.outputs[2]
    plane, oz, oy = row // (deep * high), row // high % deep, row % high
    image, channel = plane // args.channels, plane % args.channels
    z, z0, z1, counted_z = clip(args, 0, oz)
    v, v0, v1, counted_y = clip(args, 1, oy)
    x = args.x + image * args.x_image + 4 * ((channel * args.sizes[0] + z) * height + v) * width
    y = args.y + image * args.y_image + 4 * ((channel * deep + oz) * high + oy) * wide
    begin = args.begins[2]
    counted_begin, counted_end = (-begin, width + args.ends[2]) if kind == AVERAGE_PADDED else (0, width)
    for ox in range(0, wide, _VECTOR):
        tile = Plane(
            x=x,
            y=y + 4 * ox,
            lanes=min(wide - ox, _VECTOR),
            column=ox * args.strides[2] - begin,
            columns=width,
            begin=counted_begin,
            counted=counted_end,
            taps_z=z1 - z0,
            taps_y=v1 - v0,
            hop_z=4 * args.dilations[0] * height * width,
            hop_y=4 * args.dilations[1] * width,
            taps_x=args.kernel[2],
            step=args.dilations[2],
            stride=args.strides[2],
        )
        _tile(kind, tile, (float(counted_z * counted_y),))


@entry()
def pool(address: int, part: int, parts: int) -> None:
    """Computes this part's rows of outputs; the arguments are a PLANES record."""
    args = record_at(address, PLANES)
    first, last = share(args.images * args.channels * args.outputs[0] * args.outputs[1], part, parts)
    for row in range(first, last):
        _row(args, row)


@jitable
def _largest(bits: Any) -> Any:
    """Returns a key of the largest float: its bits, compared as integers in the same order; NaN is above all.

    The bits of positive floats are in their order as integers; those of negative ones are a sign and a magnitude.
    """
    most = np.int32(-0x7FFFFFFF)
    for i in range(len(bits)):
        magnitude = bits[i] & np.int32(0x7FFFFFFF)
        key = magnitude if bits[i] >= 0 else -magnitude
        key = _NAN if magnitude > _INFINITY else key
        most = max(most, key)
    return most


@jitable
def _mean(x: Any) -> Any:
    total = 0.0
    for start in range(0, len(x), _SUM):
        chunk = x[start : start + _SUM]
        part: Any = np.float32(0)
        for i in range(len(chunk)):
            part += chunk[i]
        total += part
    return total / len(x)


@entry(fastmath=ANY_ORDER)
def pool_all(address: int, part: int, parts: int) -> None:
    """Computes the largest element, or the mean, of this part's rows; the arguments are a GLOBAL record."""
    args = record_at(address, GLOBAL)
    rows, length = args.rows, args.length
    first, last = share(rows, part, parts)
    y, bits = floats(args.y, rows), ints(args.y, rows)
    for row in range(first, last):
        x = args.x + 4 * row * length
        if args.kind == LARGEST:
            key = _largest(ints(x, length))
            if key == _NAN:
                y[row] = np.nan
            elif length == 0:
                y[row] = -np.inf
            else:
                bits[row] = key if key >= 0 else np.int32(-0x80000000) | np.int32(-key)
        else:
            y[row] = _mean(floats(x, length))
