"""Best-gap placement: one by one, each into the tightest gap between those placed before that it must not overlap.

(Greedy by size for offset calculation, Pisarchyk and Lee 2020; any order will do.) What is placed is a body: a chain of
overwrites, which moves as one. The neighbours of body i are near[start[i] : start[i + 1]]. Where neighbour near[k] lies
at x, it bars all offsets above x + low[k] and below x + high[k]; chains may stand there several times.
"""

from allocator.kernels.numbers import Numbers

NOWHERE = -1
"""Offset of a body that has none; pinned offset of one that may lie anywhere."""


def place(
    start: Numbers, near: Numbers, low: Numbers, high: Numbers, size: Numbers, alignment: Numbers, pinned: Numbers,
    order: Numbers, kept: int, limit: int, offset: Numbers, floors: Numbers, ceilings: Numbers,
) -> int:  # fmt: skip
    """Offsets of all bodies, pinned ones first, then in this order; gives the bytes of the arena.

    The first `kept` of the order keep the offsets that they have. Ends early, with the rest nowhere, as soon as the
    arena is above `limit`. `floors` and `ceilings` are scratch: as many as one body has neighbours.
    """
    top = 0
    for at in range(kept, len(order)):
        offset[order[at]] = NOWHERE
    for body in range(len(size)):
        if pinned[body] != NOWHERE:
            offset[body] = pinned[body]
        if offset[body] != NOWHERE:
            top = max(top, offset[body] + size[body])
    for at in range(kept, len(order)):
        body = order[at]
        if top > limit:
            break
        if pinned[body] == NOWHERE:
            count = gather(start, near, low, high, offset, body, floors, ceilings)
            offset[body] = tightest(floors, ceilings, count, alignment[body])
            top = max(top, offset[body] + size[body])
    return top


def gather(
    start: Numbers, near: Numbers, low: Numbers, high: Numbers, offset: Numbers, body: int,
    floors: Numbers, ceilings: Numbers,
) -> int:  # fmt: skip
    """Lists the ranges of offsets that are barred to a body, from `ceilings` to `floors`; gives their number."""
    count = 0
    for k in range(start[body], start[body + 1]):
        at = offset[near[k]]
        if at != NOWHERE:
            ceilings[count], floors[count] = at + low[k], at + high[k]
            count += 1
    return count


def sort(floors: Numbers, ceilings: Numbers, count: int) -> None:
    """By ceiling, lowest first (Shell 1959; steps of Gonnet and Baeza-Yates 1991): needs no scratch."""
    step = count
    while step > 1:
        step = max(5 * step // 11, 1)
        for at in range(step, count):
            ceiling, floor, to = ceilings[at], floors[at], at
            while to >= step and ceilings[to - step] > ceiling:
                ceilings[to], floors[to] = ceilings[to - step], floors[to - step]
                to -= step
            ceilings[to], floors[to] = ceiling, floor


def tightest(floors: Numbers, ceilings: Numbers, count: int, alignment: int) -> int:
    """The offset to take: the lowest in the gap that leaves least over (the lowest such gap), else behind all."""
    sort(floors, ceilings, count)
    found, least, floor = NOWHERE, 0, 0
    for k in range(count):
        if ceilings[k] >= floor:
            offset = -(-floor // alignment) * alignment
            spare = ceilings[k] - offset
            if spare >= 0 and (found == NOWHERE or spare < least):
                found, least = offset, spare
        floor = max(floor, floors[k])
    return found if found != NOWHERE else -(-floor // alignment) * alignment
