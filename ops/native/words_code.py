"""The loop that finds what the words of a call point to. Imports numba: a door loads it, on first use."""

from allocator.machine_code.entry import CALL, entry
from allocator.machine_code.memory import longs
from ops.native.memory import record_at
from ops.native.runners import LOCATE


@entry(CALL)
def locate(address: int) -> int:
    """Does what `ops.native.runners.locate` says; the arguments are a LOCATE record."""
    args = record_at(address, LOCATE)
    words, pointee, spans = (
        longs(args.words, args.count),
        longs(args.pointee, args.count),
        longs(args.spans, 3 * args.rows),
    )
    for i in range(len(words)):
        pointee[i] = -1
        for j in range(args.rows):
            if spans[3 * j] <= words[i] < spans[3 * j + 1]:
                pointee[i] = j
                words[i] -= spans[3 * j + 2]
                break
    return 0
