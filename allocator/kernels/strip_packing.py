"""Strip packing over offset lines: the skyline of what is placed, always worked on where it is lowest.

A line is a range of ticks over which the skyline is level; it is named by its first tick. `tree` is a tournament over
ticks (node k stands above nodes 2 k and 2 k + 1, the leaves are the second half): the least height of a line that
begins below a node, NOTHING where none does. `until` is where a line ends; `since` is the line that ends in a tick.
Neighbouring lines differ in height.

By best fit, the lowest line gets one unit. By covers, it gets the units that cover it best, side by side: a set of
waiting units that live one after the other within the line, with the greatest sum of price times worth. The *prospect*
of a tick is the height of the skyline there plus the bytes of what waits: no plan that goes on from here is smaller.
Where a line is lifted, or a unit aligned, bytes are lost and the prospect of those ticks rises. That costs nothing
where it is low, so the price of a tick grows fast with its prospect.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, kernel

NOTHING = 2**62
"""The height of a line that is not there, or beyond the first or last tick; the rank and end of a unit that is not."""
NO_UNIT = -1
MOST_WORTH = 1 << 10
"""The worth of a unit is from 1 to this, and 0 where it waits no more."""
_ONE, _MOST = 1 << 12, 3 << 11
"""A prospect as large as the peak, as a number to compute with, and the most that it counts for."""
_SQUARINGS = 5
"""A price grows with the 32nd power of the prospect: ticks that are 2 % lower have half of it."""
_PRECISION = 40
"""Bits of a prospect that count."""
_STEP = 100
"""Numbers that a step of best fit looks at, roughly."""


class Waiting(NamedTuple):
    """Units by begin: unit k lives in ticks [begin, end). Those that begin in tick t start with number first[t].

    All between unit k and before[k] wait no more.
    """

    begin: Numbers
    end: Numbers
    size: Numbers
    alignment: Numbers
    worth: Numbers
    first: Numbers
    before: Numbers


class Skyline(NamedTuple):
    """The lines of `allocator.kernels.strip_packing`."""

    tree: Numbers
    until: Numbers
    since: Numbers


class Cover(NamedTuple):
    """By tick: the prospect, the price, and scratch for what covers best from there to the end of a line.

    That is the sum of the prices, the value of the best cover, and its first unit, if that begins in the tick.
    """

    prospect: Numbers
    price: Numbers
    prices: Numbers
    value: Numbers
    unit: Numbers


def set_height(tree: Numbers, line: int, height: int) -> None:
    """Gives a line a height, or takes it away. Where a node keeps its number, so do all above it."""
    node = len(tree) // 2 + line
    tree[node] = height
    while node > 1:
        node //= 2
        least = min(tree[2 * node], tree[2 * node + 1])
        if least == tree[node]:
            return
        tree[node] = least


def lowest(tree: Numbers) -> int:
    """Returns the first of the lowest lines."""
    node = 1
    while node < len(tree) // 2:
        node = 2 * node + (tree[2 * node] != tree[node])
    return node - len(tree) // 2


def raise_line(tree: Numbers, until: Numbers, since: Numbers, line: int, end: int, height: int) -> None:
    """Makes [line, end) a line of that height and joins it with neighbours of the same height."""
    leaf, last = len(tree) // 2, len(since) - 1
    while end < last and tree[leaf + end] == height:
        set_height(tree, end, NOTHING)
        end = until[end]
    if line > 0 and tree[leaf + since[line]] == height:
        set_height(tree, line, NOTHING)
        line = since[line]
    set_height(tree, line, height)
    until[line], since[end] = end, line


def lift(tree: Numbers, until: Numbers, since: Numbers, line: int) -> int:
    """Lifts a line to its lower neighbour. Returns its new height."""
    leaf, end = len(tree) // 2, until[line]
    left = tree[leaf + since[line]] if line > 0 else NOTHING
    right = tree[leaf + end] if end < len(since) - 1 else NOTHING
    height = min(left, right)
    raise_line(tree, until, since, line, end, height)
    return height


def put(tree: Numbers, until: Numbers, since: Numbers, line: int, begin: int, end: int, top: int) -> None:
    """Raises the part [begin, end) of a line; what is left of it on either side stays."""
    height, last = tree[len(tree) // 2 + line], until[line]
    if end < last:
        set_height(tree, end, height)
        until[end], since[last] = last, end
    if line < begin:
        until[line], since[begin] = begin, line
    raise_line(tree, until, since, begin, end, top)


def summarize(best: Numbers, nearest: Numbers, farthest: Numbers, node: int) -> None:
    """Updates a node from the two below it."""
    one, other = 2 * node, 2 * node + 1
    best[node] = min(best[one], best[other])
    nearest[node] = min(nearest[one], nearest[other])
    farthest[node] = max(farthest[one], farthest[other])


def plant(end: Numbers, rank: Numbers, best: Numbers, nearest: Numbers, farthest: Numbers) -> None:
    """Grows the tree of the waiting units, by their begins: the least rank, first and last end below a node."""
    leaf = len(best) // 2
    for unit in range(leaf):
        best[leaf + unit], nearest[leaf + unit], farthest[leaf + unit] = NOTHING, NOTHING, 0
    for unit in range(len(end)):
        best[leaf + unit], nearest[leaf + unit], farthest[leaf + unit] = rank[unit], end[unit], end[unit]
    for node in range(leaf - 1, 0, -1):
        summarize(best, nearest, farthest, node)


def drop(best: Numbers, nearest: Numbers, farthest: Numbers, unit: int) -> None:
    """Takes out a unit that has been placed. Where a node keeps its numbers, so do all above it."""
    node = len(best) // 2 + unit
    was, near, far = best[node], nearest[node], farthest[node]
    best[node], nearest[node], farthest[node] = NOTHING, NOTHING, 0
    while node > 1 and (best[node] != was or nearest[node] != near or farthest[node] != far):
        node //= 2
        was, near, far = best[node], nearest[node], farthest[node]
        summarize(best, nearest, farthest, node)


def least_below(best: Numbers, nearest: Numbers, farthest: Numbers, root: int, until: int, least: int) -> int:
    """Returns the least rank of the units below a node that end by `until`, if it is below `found`; else `found`."""
    node = root
    while True:
        is_left_out = best[node] >= least or nearest[node] > until
        if not is_left_out and farthest[node] > until:
            node = 2 * node
            continue
        if not is_left_out:
            least = best[node]
        while node != root and node % 2:
            node //= 2
        if node == root:
            return least
        node += 1


def least_fitting(best: Numbers, nearest: Numbers, farthest: Numbers, start: int, stop: int, until: int) -> int:
    """Returns the least rank of the waiting units [start, stop) that end by `until`, or NOTHING."""
    least, low, high = NOTHING, start + len(best) // 2, stop + len(best) // 2
    while low < high:
        if low % 2:
            least = least_below(best, nearest, farthest, low, until, least)
            low += 1
        if high % 2:
            high -= 1
            least = least_below(best, nearest, farthest, high, until, least)
        low, high = low // 2, high // 2
    return least


@kernel
def begin_strip(
    end: Numbers, rank: Numbers, best: Numbers, nearest: Numbers, farthest: Numbers,
    tree: Numbers, until: Numbers, since: Numbers,
) -> None:  # fmt: skip
    """Makes an empty strip for `pack_strip`. Ticks go from 0 to len(since) - 1, the last end."""
    for node in range(len(tree)):
        tree[node] = NOTHING
    plant(end, rank, best, nearest, farthest)
    raise_line(tree, until, since, 0, len(since) - 1, 0)


@kernel
def pack_strip(
    begin: Numbers, end: Numbers, size: Numbers, alignment: Numbers, unit_of: Numbers, first: Numbers,
    best: Numbers, nearest: Numbers, farthest: Numbers, tree: Numbers, until: Numbers, since: Numbers, offset: Numbers,
    looks: int,
) -> int:  # fmt: skip
    """Computes offsets of units given by their first tick; those that begin in tick t start with number first[t].

    `unit_of` has the unit of each rank; least ranks are placed first. Ends when all have an offset, or when it looked
    at so many numbers, roughly; returns how many they are.
    """
    looked = 0
    while best[1] < NOTHING and looked < looks:
        looked += _STEP
        line = lowest(tree)
        last = until[line]
        chosen = least_fitting(best, nearest, farthest, first[line], first[last], last)
        if chosen == NOTHING:
            lift(tree, until, since, line)
            continue
        unit = unit_of[chosen]
        offset[unit] = -(-tree[1] // alignment[unit]) * alignment[unit]
        put(tree, until, since, line, begin[unit], end[unit], offset[unit] + size[unit])
        drop(best, nearest, farthest, unit)
    return looked


@kernel
def clear_strip(skyline: Skyline, cover: Cover, peak: int) -> None:
    """Makes an empty strip; the prospects are given, and `peak` is the greatest of them."""
    last = len(skyline.since) - 1
    for node in range(len(skyline.tree)):
        skyline.tree[node] = NOTHING
    raise_line(skyline.tree, skyline.until, skyline.since, 0, last, 0)
    lose(cover, 0, last, 0, peak)


@kernel
def cover_lines(
    waiting: Waiting, skyline: Skyline, cover: Cover, peak: int, ticks: int, offset: Numbers, left: Numbers
) -> int:  # fmt: skip
    """Covers the lowest lines until none waits of the units, whose number `left` holds, or it looked at so many ticks.

    A unit that begins in a tick counts as one more. Returns how many they are.
    """
    looked = 0
    while left[0] and looked < ticks:
        line, height = lowest(skyline.tree), skyline.tree[1]
        end = skyline.until[line]
        looked += end - line + waiting.first[end] - waiting.first[line]
        if find_cover(waiting, cover, line, end):
            left[0] -= lay(waiting, skyline, cover, line, peak, offset)
        else:
            lifted = lift(skyline.tree, skyline.until, skyline.since, line)
            lose(cover, line, end, lifted - height, peak)
    return looked


def lose(cover: Cover, since: int, until: int, lost: int, peak: int) -> None:
    """Raises the prospects of ticks [since, until) by bytes that nothing will use, and their prices."""
    grain = 1 + (peak >> _PRECISION)
    whole = 1 + peak // grain
    for tick in range(since, until):
        cover.prospect[tick] += lost
        price = min(min(cover.prospect[tick] // grain, 2 * whole) * _ONE // whole, _MOST)
        for _ in range(_SQUARINGS):
            price = price * price // _ONE
        cover.price[tick] = 1 + price


def find_cover(waiting: Waiting, cover: Cover, line: int, until: int) -> int:
    """Finds the best cover of a line, from its last tick to its first. Returns its value; 0 where no unit fits."""
    end, worth, first, before = waiting.end, waiting.worth, waiting.first, waiting.before
    price, prices, value, chosen = cover.price, cover.prices, cover.value, cover.unit
    prices[until] = value[until] = 0
    unit = last_waiting(worth, before, first[until] - 1)
    for tick in range(until - 1, line - 1, -1):
        prices[tick] = prices[tick + 1] + price[tick]
        most, best = value[tick + 1], NO_UNIT
        while unit >= first[tick]:
            if end[unit] <= until:
                gained = worth[unit] * (prices[tick] - prices[end[unit]]) + value[end[unit]]
                if gained > most:
                    most, best = gained, unit
            before[unit] = last_waiting(worth, before, before[unit])
            unit = before[unit]
        value[tick], chosen[tick] = most, best
    return value[line]


def last_waiting(worth: Numbers, before: Numbers, unit: int) -> int:
    """Returns this unit if it waits, else the last one before it that does, or NO_UNIT."""
    while unit != NO_UNIT and worth[unit] == 0:
        unit = before[unit]
    return unit


def lay(waiting: Waiting, skyline: Skyline, cover: Cover, line: int, peak: int, offset: Numbers) -> int:
    """Places the units of the cover that was found for the lowest line. Returns their number."""
    tick, until, height, count = line, skyline.until[line], skyline.tree[1], 0
    while tick < until:
        unit = cover.unit[tick]
        if unit == NO_UNIT:
            tick += 1
            continue
        tick = waiting.end[unit]
        offset[unit] = -(-height // waiting.alignment[unit]) * waiting.alignment[unit]
        top = offset[unit] + waiting.size[unit]
        put(skyline.tree, skyline.until, skyline.since, line, waiting.begin[unit], tick, top)
        if offset[unit] > height:
            lose(cover, waiting.begin[unit], tick, offset[unit] - height, peak)
        waiting.worth[unit] = 0
        line, count = tick, count + 1
    return count
