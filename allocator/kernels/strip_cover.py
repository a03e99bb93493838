"""Strip packing by covers: the lowest line of the skyline gets the units that cover it best, side by side.

The *prospect* of a tick is the height of the skyline there plus the bytes of what waits: no plan that goes on from here
is smaller. Where a line is lifted, or a unit aligned, bytes are lost and the prospect of those ticks rises. It may rise
at no cost where it is low. So a tick has a price, which grows fast with its prospect. A cover is a set of waiting units
that live one after the other, within the line; the best one has the greatest sum of price times worth.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, kernel
from allocator.kernels.strip_packing import NOTHING, lift, lowest, put, raise_line

NO_UNIT = -1
MOST_WORTH = 1 << 10
"""The worth of a unit is from 1 to this, and 0 where it waits no more."""
_ONE, _MOST = 1 << 12, 3 << 11
"""A prospect as large as the peak, as a number to compute with, and the most that it counts for."""
_SQUARINGS = 5
"""A price grows with the 32nd power of the prospect: ticks that are 2 % lower have half of it."""
_PRECISION = 40
"""Bits of a prospect that count."""


class Waiting(NamedTuple):
    """Units by begin: unit k lives in ticks [begin, end). Those that begin in tick t start with number first[t]."""

    begin: Numbers
    end: Numbers
    size: Numbers
    alignment: Numbers
    worth: Numbers
    first: Numbers


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


@kernel
def clear_strip(skyline: Skyline, cover: Cover, peak: int) -> None:
    """Makes an empty strip; the prospects are given, and `peak` is the greatest of them."""
    last = len(skyline.since) - 1
    for node in range(len(skyline.tree)):
        skyline.tree[node] = NOTHING
    raise_line(skyline.tree, skyline.until, skyline.since, 0, last, 0)
    lose(cover, 0, last, 0, peak)


@kernel
def cover_lines(waiting: Waiting, skyline: Skyline, cover: Cover, peak: int, least: int, offset: Numbers) -> int:
    """Covers the lowest lines until at least so many units are placed, of those that wait. Returns how many are."""
    count = 0
    while count < least:
        line, height = lowest(skyline.tree), skyline.tree[1]
        end = skyline.until[line]
        if find_cover(waiting, cover, line, end):
            count += lay(waiting, skyline, cover, line, peak, offset)
        else:
            lifted = lift(skyline.tree, skyline.until, skyline.since, line)
            lose(cover, line, end, lifted - height, peak)
    return count


def lose(cover: Cover, since: int, until: int, lost: int, peak: int) -> None:
    """Raises the prospects of ticks [since, until) by bytes that nothing will use, and their prices."""
    grain = 1 + (peak >> _PRECISION)
    for tick in range(since, until):
        cover.prospect[tick] += lost
        price = min(cover.prospect[tick] // grain * _ONE // (1 + peak // grain), _MOST)
        for _ in range(_SQUARINGS):
            price = price * price // _ONE
        cover.price[tick] = 1 + price


def find_cover(waiting: Waiting, cover: Cover, line: int, until: int) -> int:
    """Finds the best cover of a line, from its last tick to its first. Returns its value; 0 where no unit fits."""
    end, worth, prices, value = waiting.end, waiting.worth, cover.prices, cover.value
    prices[until] = value[until] = 0
    unit = waiting.first[until] - 1
    for tick in range(until - 1, line - 1, -1):
        prices[tick] = prices[tick + 1] + cover.price[tick]
        most, best = value[tick + 1], NO_UNIT
        while unit >= waiting.first[tick]:
            if end[unit] <= until:
                gained = worth[unit] * (prices[tick] - prices[end[unit]]) + value[end[unit]]
                if gained > most:
                    most, best = gained, unit
            unit -= 1
        value[tick], cover.unit[tick] = most, best
    return value[line]


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
