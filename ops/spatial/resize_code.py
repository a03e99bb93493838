"""Resizing of float32 along one or two axes, compiled. Imports numba: a door loads it, on first use."""

from typing import Any

from allocator.machine_code.entry import entry
from allocator.machine_code.memory import jitable, longs
from ops.native.memory import floats, octets, record_at, share
from ops.spatial.args import MIDDLE, OUTER, RESIZE, TAIL, A, B


@jitable
def _pixel(args: Any, x: int, y: int, a: int, b: int) -> None:
    """Computes all elements behind two places: sums over the taps of both axes, each element by itself."""
    taps_a, taps_b, outputs_a, outputs_b = args.taps[0], args.taps[1], args.outputs_a, args.outputs_b
    indices_a, indices_b = longs(args.indices[0], taps_a * outputs_a), longs(args.indices[1], taps_b * outputs_b)
    weights_a, weights_b = floats(args.weights[0], taps_a * outputs_a), floats(args.weights[1], taps_b * outputs_b)
    step_a, step_b, count = args.x_steps[A], args.x_steps[B], args.inner
    out = floats(y, count)
    if taps_a == 2 and taps_b == 2:
        # Two by two taps are those of linear resizing: all four products in one pass, with the sums in registers.
        second_a, second_b = a + outputs_a, b + outputs_b
        p, q = weights_a[a] * weights_b[b], weights_a[a] * weights_b[second_b]
        r, s = weights_a[second_a] * weights_b[b], weights_a[second_a] * weights_b[second_b]
        row, below = indices_a[a] * step_a, indices_a[second_a] * step_a
        left, right = indices_b[b] * step_b, indices_b[second_b] * step_b
        one, two = floats(x + 4 * (row + left), count), floats(x + 4 * (row + right), count)
        three, four = floats(x + 4 * (below + left), count), floats(x + 4 * (below + right), count)
        for c in range(count):
            out[c] = (one[c] * p + two[c] * q) + (three[c] * r + four[c] * s)
        return
    for tap in range(taps_a * taps_b):
        i, j = tap // taps_b * outputs_a + a, tap % taps_b * outputs_b + b
        source = floats(x + 4 * (indices_a[i] * step_a + indices_b[j] * step_b), count)
        weight = weights_a[i] * weights_b[j]
        if tap == 0:
            for c in range(count):
                out[c] = source[c] * weight
        else:
            for c in range(count):
                out[c] += source[c] * weight


@jitable
def _line(args: Any, x: int, y: int, a: int) -> None:
    """Computes a row of outputs that lie side by side, where the second axis is the last one."""
    taps_a, taps_b, outputs_a, outputs_b = args.taps[0], args.taps[1], args.outputs_a, args.outputs_b
    indices_a, indices_b = longs(args.indices[0], taps_a * outputs_a), longs(args.indices[1], taps_b * outputs_b)
    weights_a, weights_b = floats(args.weights[0], taps_a * outputs_a), floats(args.weights[1], taps_b * outputs_b)
    out = floats(y, outputs_b)
    for i in range(taps_a):
        row = floats(x + 4 * indices_a[i * outputs_a + a] * args.x_steps[A], args.length_b)
        weight = weights_a[i * outputs_a + a]
        for j in range(taps_b):
            begin, end = j * outputs_b, (j + 1) * outputs_b
            places, factors = indices_b[begin:end], weights_b[begin:end]
            if i == 0 and j == 0:
                for b in range(outputs_b):
                    out[b] = row[places[b]] * (weight * factors[b])
            else:
                for b in range(outputs_b):
                    out[b] += row[places[b]] * (weight * factors[b])


@jitable
def _fill_outside(args: Any, y: int, beyond: bool) -> None:
    """Writes the value for places outside: all of a row, or those that are outside along the second axis."""
    outputs_b, value = args.outputs_b, args.value
    outside = octets(args.outside[1], outputs_b)
    for b in range(outputs_b):
        if beyond or outside[b]:
            for t in range(args.tail):
                out = floats(y + 4 * (b * args.y_steps[B] + t * args.y_steps[TAIL]), args.inner)
                out[:] = value


@entry()
def resize(address: int, part: int, parts: int) -> None:
    """Computes this part of the outputs; the arguments are a RESIZE record."""
    args = record_at(address, RESIZE)
    outputs_a, middle, outputs_b, tail = args.outputs_a, args.middle, args.outputs_b, args.tail
    outside = octets(args.outside[0], outputs_a)
    first, last = share(args.outer * outputs_a * middle, part, parts)
    for job in range(first, last):
        n, a, m = job // (outputs_a * middle), job // middle % outputs_a, job % middle
        x = args.x + 4 * (n * args.x_steps[OUTER] + m * args.x_steps[MIDDLE])
        y = args.y + 4 * (n * args.y_steps[OUTER] + a * args.y_steps[A] + m * args.y_steps[MIDDLE])
        if args.is_last:
            _line(args, x, y, a)
        else:
            for b in range(outputs_b):
                for t in range(tail):
                    target = y + 4 * (b * args.y_steps[B] + t * args.y_steps[TAIL])
                    _pixel(args, x + 4 * t * args.x_steps[TAIL], target, a, b)
        _fill_outside(args, y, outside[a] != 0)
