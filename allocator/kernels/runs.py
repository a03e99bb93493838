"""What stacks of chunks of several alignments waste at least, by prices of chunks: a Lagrangian relaxation.

A *run* is a chunk and all that lies on it up to the next one of its alignment or a wider one. So a stack is a row of
runs of the widest chunks, which consist of runs of less alignment, and so on. Each run but the topmost ends at a
multiple of its alignment, which may waste bytes. If a run pays less for each chunk that lies in it, by the chunk's
price, then each is as cheap as the chunks make it that suit it best, whatever other runs do with these. The cheapest
runs and all prices together waste no more than any stack, in which each chunk lies just once. Prices change until that
is nearly so: they fall where a chunk lies in several runs, and rise where it lies in none (Held and Karp 1971, "The
traveling-salesman problem and minimum spanning trees: Part II"; for packing, Gilmore and Gomory 1961, "A linear
programming approach to the cutting-stock problem"). All numbers are whole, so that all machines agree.
"""

from typing import NamedTuple

from allocator.kernels.numbers import Numbers, fill, kernel
from allocator.kernels.stacks import NO_CHUNK

UNIT = 1 << 10
"""Prices are counted in so many parts of a byte."""
ENDLESS = 1 << 50
OPEN = -1
"""The reach of a topmost run, which ends anywhere."""
ROUNDS, LEVEL, PLACE = range(3)
"""Places of the cursor: changes of prices so far; where a walk is looked at from its end."""
_FULL, _KEPT = 1 << 16, 70
"""Strength of a change of prices at first; the part of each change, in percent, that goes on in the next one."""
_MOST_USED, _MOST_GAP = UNIT, 1 << 36
"""How often a chunk is used, and the parts of a byte that a sum is too low, at most, so that products have 64 bits."""
_PATIENCE, _PART = 30, 20
"""Changes without a better sum, after which the strength of changes gets less: so many, or this part of all rounds if
that is more."""


class Runs(NamedTuple):
    """Chunks by level of alignment, loosest first; those of the last level, the widest, are as many as its runs.

    By chunk: its `size` modulo the widest alignment; but for the widest, its `price`, the `best` price so far, the last
    `change` of it, and how often it is `used`.
    By level: `alignment`, the chunk that is `first` (and one number more), and the begin of its `row` and its `stage`.
    Behind `row` there is, for each chunk of the level and for none before, the least cost of runs of these chunks that
    reach so many alignments further, modulo the widest: `series`. `run` has the costs of the chunk's own run there.
    `times` says how often it is part of others. `opened` is the least cost of a topmost run of each level, and
    `opener` its chunk, which then `is_open`. A walk up from a chunk has, from `stage` on, the least costs to reach each
    place `before` and `after` the runs of each level.
    """

    size: Numbers
    price: Numbers
    best: Numbers
    change: Numbers
    used: Numbers
    is_open: Numbers
    alignment: Numbers
    first: Numbers
    row: Numbers
    stage: Numbers
    series: Numbers
    run: Numbers
    times: Numbers
    opened: Numbers
    opener: Numbers
    before: Numbers
    after: Numbers
    cursor: Numbers


@kernel
def least_waste(s: Runs, target: int, rounds: int) -> int:
    """Returns what stacks surely waste, in parts of a byte (`UNIT`).

    Some stack wastes no more than the `target`. Each change of prices goes on in the direction of those before
    (Camerini, Fratta and Maffioli 1975, "On improving relaxation methods by modified gradient techniques").
    """
    best, strength, stalled, count = -ENDLESS, _FULL, 0, len(s.price)
    patience = max(_PATIENCE, rounds // _PART)
    for _ in range(rounds):
        value = waste_at_prices(s)
        s.cursor[ROUNDS] += 1
        stalled += 1
        if value > best:
            best, stalled = value, 0
            copy(s.price, s.best)
        norm = 0
        for chunk in range(count):
            s.change[chunk] = (1 - min(s.used[chunk], _MOST_USED)) * UNIT + s.change[chunk] * _KEPT // 100
            norm += s.change[chunk] * s.change[chunk]
        if best >= target or strength == 0 or norm < UNIT:
            break
        if stalled > patience:
            strength, stalled = strength // 2, 0
            copy(s.best, s.price)
            fill(s.change, 0)
        else:
            change_prices(s, min(target - value, _MOST_GAP) * strength // _FULL, norm // UNIT)
    return best


def change_prices(s: Runs, gap: int, norm: int) -> None:
    """Changes prices by parts of a gap. No price is above the waste of a whole cell, or as far below zero."""
    most = s.alignment[len(s.alignment) - 1] * UNIT
    for chunk in range(len(s.price)):
        s.price[chunk] = min(max(s.price[chunk] + gap * s.change[chunk] // norm, -most), most)


def copy(source: Numbers, target: Numbers) -> None:
    """Writes the numbers of a row over those of another."""
    for k in range(len(source)):
        target[k] = source[k]


def waste_at_prices(s: Runs) -> int:
    """Returns the waste of the cheapest runs and the sum of all prices. Counts how often chunks are used."""
    fill(s.used, 0)
    last, total, gain, topmost = len(s.alignment) - 1, 0, -1, NO_CHUNK
    for chunk in range(s.first[last]):
        total += s.price[chunk]
    for level in range(last):
        fill_level(s, level)
    for chunk in range(s.first[last] - 1, s.first[last + 1]):
        opened = walk(s, start_of(s, chunk), last)
        cost = s.before[s.stage[last]]
        total += cost
        if cost - opened > gain:
            topmost, gain = chunk, cost - opened
    for chunk in range(s.first[last] - 1, s.first[last + 1]):
        walk(s, start_of(s, chunk), last)
        unfold(s, start_of(s, chunk), last, OPEN if chunk == topmost else 0, 1)
    for level in range(last - 1, 0, -1):
        unfold_level(s, level)
    return total - gain


def start_of(s: Runs, chunk: int) -> int:
    """Returns where the walk up from a widest chunk begins; that before the first of them is the bottom."""
    return s.size[chunk] if chunk >= s.first[len(s.alignment) - 1] else 0


def places(s: Runs, level: int) -> int:
    """Returns how many multiples of a level's alignment are in the widest one."""
    return s.alignment[len(s.alignment) - 1] // s.alignment[level]


def row_of_all(s: Runs, level: int) -> int:
    """Returns where the row of series of all chunks of a level begins."""
    return s.row[level] + (s.first[level + 1] - s.first[level]) * places(s, level)


def fill_level(s: Runs, level: int) -> None:
    """Finds the costs of the runs of a level, and of series of them."""
    count, at = places(s, level), s.row[level]
    s.opened[level], s.opener[level] = 0, NO_CHUNK
    clear(s.series, at, count)
    s.series[at] = 0
    for chunk in range(s.first[level], s.first[level + 1]):
        at += count
        if level == 0:
            clear(s.run, at, count)
            s.run[at + s.size[chunk]] = -s.price[chunk]
        else:
            cost = walk(s, s.size[chunk], level) - s.price[chunk]
            if cost < s.opened[level]:
                s.opened[level], s.opener[level] = cost, chunk
            for place in range(count):
                s.run[at + place] = s.before[s.stage[level] + place] - s.price[chunk]
        for place in range(count):
            s.series[at + place] = s.series[at - count + place]
        extend(s.series, at, s.run, at, s.series, at - count, count)


def clear(row: Numbers, at: int, count: int) -> None:
    """Writes into a part of a row that no place is reached."""
    for place in range(at, at + count):
        row[place] = ENDLESS


def extend(result: Numbers, to: int, one: Numbers, at: int, other: Numbers, by: int, count: int) -> None:
    """Lowers a row to the least sums of two rows, of places that add up modulo `count`."""
    for place in range(count):
        cost = one[at + place]
        if cost < ENDLESS:
            for k in range(count - place):
                result[to + place + k] = min(result[to + place + k], cost + other[by + k])
            for k in range(count - place, count):
                result[to + place + k - count] = min(result[to + place + k - count], cost + other[by + k])


def walk(s: Runs, start: int, top: int) -> int:
    """Finds the least costs to get from a place to each multiple of a level's alignment, by runs of lower levels.

    Returns the least cost of what need not end there.
    """
    count, full, least = places(s, 0), row_of_all(s, 0), ENDLESS
    for place in range(count):
        to = place + start if place + start < count else place + start - count
        s.after[s.stage[0] + to] = s.series[full + place]
        least = min(least, s.series[full + place])
    for level in range(1, top + 1):
        round_up(s, level)
        if level < top:
            count, at = places(s, level), s.stage[level]
            clear(s.after, at, count)
            extend(s.after, at, s.before, at, s.series, row_of_all(s, level), count)
            for place in range(count):
                least = min(least, s.after[at + place] + s.opened[level])
    return least


def round_up(s: Runs, level: int) -> None:
    """Finds the costs to reach multiples of a level's alignment from what is reached by the level below."""
    step = s.alignment[level] // s.alignment[level - 1]
    at, below, count = s.stage[level], s.stage[level - 1], places(s, level - 1)
    for place in range(places(s, level)):
        least = ENDLESS
        for k in range(step):
            source = place * step - k if place * step >= k else place * step - k + count
            least = min(least, s.after[below + source] + k * s.alignment[level - 1] * UNIT)
        s.before[at + place] = least


def unfold_level(s: Runs, level: int) -> None:
    """Unfolds the runs of a level that are part of others."""
    count, at = places(s, level), s.row[level]
    for chunk in range(s.first[level], s.first[level + 1]):
        at += count
        if s.used[chunk]:
            walk(s, s.size[chunk], level)
            if s.is_open[chunk]:
                unfold(s, s.size[chunk], level, OPEN, 1)
            s.is_open[chunk] = 0
            for reach in range(count):
                if s.times[at + reach]:
                    unfold(s, s.size[chunk], level, reach, s.times[at + reach])
                s.times[at + reach] = 0


def unfold(s: Runs, start: int, top: int, reach: int, times: int) -> None:
    """Counts the runs of which the cheapest run that reaches so far consists. The last walk began at its start."""
    if reach == OPEN:
        end_anywhere(s, top)
    else:
        s.cursor[LEVEL], s.cursor[PLACE] = top, reach
        end_below(s)
    while s.cursor[LEVEL]:
        place = s.cursor[PLACE]
        begin_series(s)
        unfold_series(s, place - s.cursor[PLACE], times)
        end_below(s)
    unfold_series(s, s.cursor[PLACE] - start, times)


def end_anywhere(s: Runs, top: int) -> None:
    """Finds where the last walk is cheapest, with a topmost run, which is counted, or without one."""
    least = ENDLESS
    for level in range(top):
        for place in range(places(s, level)):
            cost = s.after[s.stage[level] + place] + s.opened[level]
            if cost < least:
                least, s.cursor[LEVEL], s.cursor[PLACE] = cost, level, place
    topmost = s.opener[s.cursor[LEVEL]]
    if topmost != NO_CHUNK:
        s.used[topmost] += 1
        s.is_open[topmost] = 1


def end_below(s: Runs) -> None:
    """Goes down from a multiple of a level's alignment to the place from which it was rounded up."""
    level = s.cursor[LEVEL]
    below, count = s.stage[level - 1], places(s, level - 1)
    step, cost = s.alignment[level] // s.alignment[level - 1], s.before[s.stage[level] + s.cursor[PLACE]]
    source = s.cursor[PLACE] * step % count
    while s.after[below + source] != cost:
        source, cost = source - 1 if source else count - 1, cost - s.alignment[level - 1] * UNIT
    s.cursor[LEVEL], s.cursor[PLACE] = level - 1, source


def begin_series(s: Runs) -> None:
    """Goes back from the end of a series of runs to the place at which it begins."""
    level, place = s.cursor[LEVEL], s.cursor[PLACE]
    at, count, full, begin = s.stage[level], places(s, level), row_of_all(s, level), 0
    while s.before[at + begin] + s.series[full + (place - begin) % count] != s.after[at + place]:
        begin += 1
    s.cursor[PLACE] = begin


def unfold_series(s: Runs, reach: int, times: int) -> None:
    """Counts the runs of the cheapest series that reaches so far."""
    level = s.cursor[LEVEL]
    width, at = places(s, level), row_of_all(s, level)
    for chunk in range(s.first[level + 1] - 1, s.first[level] - 1, -1):
        reach, cost = reach % width, s.series[at + reach % width]
        if cost != s.series[at - width + reach]:
            part = s.size[chunk] if level == 0 else 0
            while s.series[at - width + (reach - part) % width] + s.run[at + part] != cost:
                part += 1
            s.used[chunk] += times
            if level:
                s.times[at + part] += times
            reach -= part
        at -= width
