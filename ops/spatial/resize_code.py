"""Resizing of float32 along one or two axes, compiled. Imports numba: ops.native.door loads it, on first use."""

from numba.extending import register_jitable

from ops.native.memory import floats, longs, octets, real, share, word


@register_jitable
def _pixel(words: int, x: int, y: int, a: int, b: int) -> None:
    """All elements behind two places: sums over the taps of both axes, each element by itself."""
    taps_a, taps_b, outs_a, outs_b = word(words, 10), word(words, 11), word(words, 3), word(words, 5)
    at_a, at_b = longs(word(words, 12), taps_a * outs_a), longs(word(words, 15), taps_b * outs_b)
    of_a, of_b = floats(word(words, 13), taps_a * outs_a), floats(word(words, 16), taps_b * outs_b)
    hop_a, hop_b, count = word(words, 19), word(words, 21), word(words, 7)
    out = floats(y, count)
    if taps_a == 2 and taps_b == 2:
        p, q, r, s = of_a[a] * of_b[b], of_a[a] * of_b[b + outs_b], of_a[a + outs_a] * of_b[b], of_a[a + outs_a]
        s = s * of_b[b + outs_b]
        row, below, left, right = at_a[a] * hop_a, at_a[a + outs_a] * hop_a, at_b[b] * hop_b, at_b[b + outs_b] * hop_b
        one, two = floats(x + 4 * (row + left), count), floats(x + 4 * (row + right), count)
        three, four = floats(x + 4 * (below + left), count), floats(x + 4 * (below + right), count)
        for c in range(count):
            out[c] = (one[c] * p + two[c] * q) + (three[c] * r + four[c] * s)
        return
    for tap in range(taps_a * taps_b):
        i, j = tap // taps_b * outs_a + a, tap % taps_b * outs_b + b
        source, weight = floats(x + 4 * (at_a[i] * hop_a + at_b[j] * hop_b), count), of_a[i] * of_b[j]
        if tap == 0:
            for c in range(count):
                out[c] = source[c] * weight
        else:
            for c in range(count):
                out[c] += source[c] * weight


@register_jitable
def _line(words: int, x: int, y: int, a: int) -> None:
    """A row of outputs that lie side by side, where the second axis is the last one."""
    taps_a, taps_b, outs_a, outs_b = word(words, 10), word(words, 11), word(words, 3), word(words, 5)
    at_a, at_b = longs(word(words, 12), taps_a * outs_a), longs(word(words, 15), taps_b * outs_b)
    of_a, of_b = floats(word(words, 13), taps_a * outs_a), floats(word(words, 16), taps_b * outs_b)
    out = floats(y, outs_b)
    for i in range(taps_a):
        row, weight = floats(x + 4 * at_a[i * outs_a + a] * word(words, 19), word(words, 8)), of_a[i * outs_a + a]
        for j in range(taps_b):
            places, factors = at_b[j * outs_b : (j + 1) * outs_b], of_b[j * outs_b : (j + 1) * outs_b]
            if i == 0 and j == 0:
                for b in range(outs_b):
                    out[b] = row[places[b]] * (weight * factors[b])
            else:
                for b in range(outs_b):
                    out[b] += row[places[b]] * (weight * factors[b])


@register_jitable
def _fill_outside(words: int, y: int, beyond: bool) -> None:
    """The value for places outside: all of a row, or those that are outside along the second axis."""
    outs_b, value = word(words, 5), real(words, 28)
    outside = octets(word(words, 17), outs_b)
    for b in range(outs_b):
        if beyond or outside[b]:
            for t in range(word(words, 6)):
                out = floats(y + 4 * (b * word(words, 26) + t * word(words, 27)), word(words, 7))
                out[:] = value


def resize(words: int, part: int, parts: int) -> None:
    """The words of `ops.spatial.resize_compiled`: tensors are seen as (outer, a, middle, b, tail, inner)."""
    outs_a, middle, outs_b, tail = word(words, 3), word(words, 4), word(words, 5), word(words, 6)
    outside = octets(word(words, 14), outs_a)
    first, last = share(word(words, 2) * outs_a * middle, part, parts)
    for job in range(first, last):
        n, a, m = job // (outs_a * middle), job // middle % outs_a, job % middle
        x = word(words, 0) + 4 * (n * word(words, 18) + m * word(words, 20))
        y = word(words, 1) + 4 * (n * word(words, 23) + a * word(words, 24) + m * word(words, 25))
        if word(words, 9):
            _line(words, x, y, a)
        else:
            for b in range(outs_b):
                for t in range(tail):
                    _pixel(
                        words, x + 4 * t * word(words, 22), y + 4 * (b * word(words, 26) + t * word(words, 27)), a, b
                    )
        _fill_outside(words, y, outside[a] != 0)
