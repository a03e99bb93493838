"""LLVM code that writes the taps of the table of an indirect convolution: up to 16 addresses at a time.

Imports llvmlite: `indirect_code` alone loads it. Coordinates and addresses are words; a coordinate below 0 is a huge
number without sign, so that one comparison finds both ends.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from llvmlite import ir  # type: ignore[import-untyped]

from ops.convolution.args import MOST_TILE_ROWS
from ops.native.emit.builder import (
    BIT,
    INT,
    VOID,
    WORD,
    Value,
    call,
    define,
    loop,
    pointer,
    splat,
)

_WORDS = ir.VectorType(WORD, MOST_TILE_ROWS)
_BITS = ir.VectorType(BIT, MOST_TILE_ROWS)
PLACES = 4
"""Rows of MOST_TILE_ROWS words: where windows begin, and the coordinates of these places along three dimensions."""


class TapArgs(NamedTuple):
    """The words of `write_taps`.

    table: where the addresses of the first tap go; those of the next stand `pitch` bytes behind. places: PLACES rows.
    count: how many pixels there are. zeros: the address that padding is read from. Then bytes from tap to tap, the
    distance of taps in elements, the sizes of x and the taps, along three dimensions each.
    """

    table: Value
    pitch: Value
    places: Value
    count: Value
    zeros: Value
    hops: tuple[Value, Value, Value]
    dilations: tuple[Value, Value, Value]
    sizes: tuple[Value, Value, Value]
    kernel: tuple[Value, Value, Value]


def emit_taps(b: Value, *words: Value) -> None:
    """Calls the function that writes the taps; its words are the fields of TapArgs, one after the other."""
    b.call(define(b.module, "arenaplan_taps", len(words), _emit), words)


def _emit(b: Value, words: Sequence[Value]) -> None:
    triples = (tuple(words[i : i + 3]) for i in range(5, len(words), 3))
    args = TapArgs(*words[:5], *triples)
    rows = [b.load(pointer(b, args.places, _WORDS, 8 * MOST_TILE_ROWS * i), align=8) for i in range(PLACES)]
    numbers = ir.Constant(_WORDS, list(range(MOST_TILE_ROWS)))
    present = b.icmp_signed("<", numbers, splat(b, args.count, MOST_TILE_ROWS))
    zeros = splat(b, args.zeros, MOST_TILE_ROWS)

    def write(target: Value, addresses: Value, inside: Value) -> Value:
        place = b.inttoptr(target, _WORDS.as_pointer())
        chosen = b.select(inside, addresses, zeros)
        call(b, f"llvm.masked.store.v{MOST_TILE_ROWS}i64.p0", VOID, [chosen, place, ir.Constant(INT, 8), present])
        return b.add(target, args.pitch)

    def along(axis: int, addresses: Value, inside: Value, number: Value, carried: list[Value]) -> list[Value]:
        """Writes the code for one tap along an axis."""
        moved = b.add(rows[axis + 1], splat(b, b.mul(number, args.dilations[axis]), MOST_TILE_ROWS))
        here = b.and_(inside, b.icmp_unsigned("<", moved, splat(b, args.sizes[axis], MOST_TILE_ROWS)))
        hop = b.mul(b.mul(number, args.dilations[axis]), args.hops[axis])
        there = b.add(addresses, splat(b, hop, MOST_TILE_ROWS))
        if axis == len(args.kernel) - 1:
            return [write(carried[0], there, here)]
        return taps(axis + 1, there, here, carried)

    def taps(axis: int, addresses: Value, inside: Value, carried: list[Value]) -> list[Value]:
        step: Callable[[Value, list[Value]], list[Value]] = partial(along, axis, addresses, inside)
        return loop(b, args.kernel[axis], carried, step)

    taps(0, rows[0], ir.Constant(_BITS, [1] * MOST_TILE_ROWS), [args.table])
