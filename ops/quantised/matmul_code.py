"""What zero points take from products of bytes, compiled. Imports numba: loaded by ops.native.door."""

from numba.extending import register_jitable

from ops.native.memory import ints, octets, share, signed_octets, word


@register_jitable
def _zero(address: int, signed: int) -> int:
    if address == 0:
        return 0
    return int(signed_octets(address, 1)[0]) if signed else int(octets(address, 1)[0])


def begin(words: int, part: int, parts: int) -> None:
    """What sums begin with: minus the zero point of a, as uint8, times sums of columns of b.

    The words: zero point (0: none), 1 where it is of int8, sums of columns, target, and their number.
    """
    first, last = share(word(words, 4), part, parts)
    zero = _zero(word(words, 0), word(words, 1)) + (128 if word(words, 1) else 0)
    sums, target = ints(word(words, 2), word(words, 4)), ints(word(words, 3), word(words, 4))
    for i in range(first, last):
        target[i] = -zero * sums[i]


def correct(words: int, part: int, parts: int) -> None:
    """Takes zero points of b times sums of rows of a - a_zero from the product.

    The words: zero point of a (0: none), 1 where a is of int8, a, its columns, y, its columns, rows, zero points of b.
    """
    depth, columns, signed = word(words, 3), word(words, 5), word(words, 1)
    zero, zeros = _zero(word(words, 0), signed), ints(word(words, 7), columns)
    first, last = share(word(words, 6), part, parts)
    for row in range(first, last):
        total, place = -zero * depth, word(words, 2) + row * depth
        if signed:
            for code in signed_octets(place, depth):
                total += code
        else:
            for code in octets(place, depth):
                total += code
        y = ints(word(words, 4) + 4 * row * columns, columns)
        for i in range(columns):
            y[i] -= zeros[i] * total
