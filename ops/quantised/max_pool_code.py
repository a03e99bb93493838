"""Maximum pooling of channels-last bytes, compiled. Imports numba: a door loads it."""

from collections.abc import Sequence

from llvmlite import ir  # type: ignore[import-untyped]

from allocator.machine_code.entry import entry
from ops.native.emit.builder import BYTE, WORD, Value, advance, constant, load, loop, splat, store
from ops.native.intrinsics import intrinsic_of
from ops.native.memory import record_at, share
from ops.quantised.args import MAX_POOL_ARGS
from ops.windows.clip_code import taps_inside

LANES = 64
_BYTES = ir.VectorType(BYTE, LANES)


def _emit(b: Value, *words: Value) -> None:
    source, target, lanes, flip, counts, hops = *words[:4], words[4:7], words[7:]
    whole = b.select(b.icmp_signed("<", lanes, ir.Constant(WORD, LANES)), lanes, ir.Constant(WORD, LANES))
    mask = b.icmp_unsigned("<", ir.Constant(_BYTES, list(range(LANES))), splat(b, b.trunc(whole, BYTE), LANES))
    flipped = splat(b, b.trunc(flip, BYTE), LANES)

    def walk(axis: int, place: Value, largest: list[Value]) -> Sequence[Value]:
        if axis == 3:
            values = b.xor(load(b, place, _BYTES, mask), flipped)
            return [b.select(b.icmp_unsigned(">", values, largest[0]), values, largest[0])]
        step = lambda number, inner: walk(axis + 1, advance(b, place, number, hops[axis]), inner)  # noqa: E731
        return loop(b, counts[axis], largest, step)

    (largest,) = walk(0, source, [constant(_BYTES, 0)])
    store(b, target, b.xor(largest, flipped), mask)


_window = intrinsic_of(_emit)


@entry()
def largest(address: int, part: int, parts: int) -> None:
    """Writes the largest value of each window; the arguments are a MAX_POOL_ARGS record."""
    args = record_at(address, MAX_POOL_ARGS)
    depth, height, width = args.outputs[0], args.outputs[1], args.outputs[2]
    line_hop = args.sizes[2] * args.x_pitch
    hops = args.sizes[1] * line_hop, line_hop, args.x_pitch
    steps = hops[0] * args.dilations[0], hops[1] * args.dilations[1], hops[2] * args.dilations[2]
    first, last = share(args.images * depth * height, part, parts)
    for line in range(first, last):
        n, z, v = line // (depth * height), line // height % depth, line % height
        iz, z0, z1 = taps_inside(args, 0, z)
        iv, v0, v1 = taps_inside(args, 1, v)
        base = args.x + n * args.sizes[0] * hops[0] + iz * hops[0] + iv * hops[1]
        for u in range(width):
            iu, u0, u1 = taps_inside(args, 2, u)
            y = args.y + (line * width + u) * args.y_pitch
            for c in range(0, args.channels, LANES):
                x, lanes = base + iu * args.x_pitch + c, args.channels - c
                _window((x, y + c, lanes, args.flip, z1 - z0, v1 - v0, u1 - u0, steps[0], steps[1], steps[2]))
