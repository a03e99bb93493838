"""MegEngine's INTERVAL_MOVE: inserts a unit where the peak rises least, and moves up what is in the way.

Units come in the order of insertion. Those that are placed stand in `order` by address; units that are alive together
keep their order in it for ever, as moves only push up. `load` is the height of the tallest pile that stands on a unit
once all slack between its units is squeezed out. So with `size` bytes put into a gap that begins at `floor`, the peak
has to be floor + size + the tallest pile above the gap, and need not be more.
"""

from allocator.kernels.numbers import Numbers, kernel

INSERTED, PEAK = range(2)
"""Places of the cursor."""
FITS = -1
"""Instead of a rise of the peak, where nothing has to move. Better than a rise of 0."""


def find_gaps(
    begin: Numbers, end: Numbers, size: Numbers, address: Numbers, order: Numbers, unit: int,
    met: Numbers, floor: Numbers,
) -> int:  # fmt: skip
    """Lists what a unit meets in address order, and where the space below each of them begins. Returns their number.

    The first `unit` places of `order` are in use, as units enter by number. floor[that number] is where all ends.
    """
    count, top = 0, 0
    for place in range(unit):
        other = order[place]
        if begin[unit] < end[other] and begin[other] < end[unit]:
            met[count], floor[count] = other, top
            count += 1
            top = max(top, address[other] + size[other])
    floor[count] = top
    return count


def best_floor(
    want: int, peak: int, size: Numbers, address: Numbers, load: Numbers, met: Numbers, floor: Numbers, count: int
) -> int:
    """Returns where the gap for a unit of `want` bytes begins.

    That is the tightest gap that fits, else the one that raises the peak least, of those the one that others have to
    move up least for; the lowest of equals.
    """
    chosen, pile = floor[count], 0
    spare = peak - chosen - want
    best, cost = (FITS, spare) if spare >= 0 else (-spare, -spare)
    for k in range(count - 1, -1, -1):
        pile = max(pile, load[met[k]] + size[met[k]])
        spare = address[met[k]] - floor[k] - want
        if spare < -want:
            continue
        rise = FITS if spare >= 0 else max(floor[k] + want + pile - peak, 0)
        if rise < best or (rise == best and abs(spare) <= cost):
            chosen, best, cost = floor[k], rise, abs(spare)
    return chosen


def enter(address: Numbers, order: Numbers, unit: int) -> int:
    """Sorts a unit in by its address, below others at the same address. Returns its place."""
    place = unit
    while place and address[order[place - 1]] >= address[unit]:
        order[place] = order[place - 1]
        place -= 1
    order[place] = unit
    return place


def add_load(
    begin: Numbers, end: Numbers, size: Numbers, load: Numbers, order: Numbers, place: int, count: int, grown: Numbers
) -> None:
    """Finds the load of the unit at `place`, and what it adds to the loads of those below it; highest first."""
    unit = order[place]
    load[unit], grown[unit] = 0, 1
    low, high = begin[unit], end[unit]
    for above in range(place + 1, count):
        other = order[above]
        if begin[other] < high and low < end[other]:
            load[unit] = max(load[unit], load[other] + size[other])
            low, high = rest(begin, end, other, low, high)
    for at in range(place, -1, -1):
        if grown[order[at]]:
            grown[order[at]] = 0
            pass_load(begin, end, size, load, order, at, grown)


def rest(begin: Numbers, end: Numbers, unit: int, low: int, high: int) -> tuple[int, int]:
    """Returns the part of the ticks [low, high) that is left to look at behind a unit.

    Where the unit covers a part at either end, it stands for all that lies farther away there.
    """
    if begin[unit] <= low:
        return end[unit], high
    return low, (begin[unit] if end[unit] >= high else high)


def pass_load(
    begin: Numbers, end: Numbers, size: Numbers, load: Numbers, order: Numbers, place: int, grown: Numbers
) -> None:
    """Passes the load of the unit at `place` to those right below it; marks those that carry more than before."""
    unit = order[place]
    pile, low, high = load[unit] + size[unit], begin[unit], end[unit]
    while place and low < high:
        place -= 1
        other = order[place]
        if begin[other] < high and low < end[other]:
            if load[other] < pile:
                load[other], grown[other] = pile, 1
            low, high = rest(begin, end, other, low, high)


def push_up(
    begin: Numbers, end: Numbers, size: Numbers, address: Numbers, order: Numbers, place: int, count: int,
    moved: Numbers,
) -> int:  # fmt: skip
    """Moves up what the unit at `place` lies in the way of, and what that meets in turn. Returns the highest end."""
    top = address[order[place]] + size[order[place]]
    moved[order[place]] = 1
    for at in range(place, count):
        unit = order[at]
        if not moved[unit] and address[unit] >= top:
            break
        if not moved[unit]:
            continue
        moved[unit] = 0
        reach, low, high = address[unit] + size[unit], begin[unit], end[unit]
        top = max(top, reach)
        for above in range(at + 1, count):
            other = order[above]
            if low >= high:
                break
            if begin[other] < high and low < end[other]:
                if address[other] < reach:
                    address[other], moved[other] = reach, 1
                low, high = rest(begin, end, other, low, high)
    return top


def sort_again(address: Numbers, order: Numbers, count: int) -> None:
    """Puts `order` right after moves. Insertion: few units have changed places."""
    for place in range(1, count):
        unit, at = order[place], place
        while at and address[order[at - 1]] > address[unit]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = unit


@kernel
def insert_units(
    begin: Numbers, end: Numbers, size: Numbers, address: Numbers, order: Numbers,
    load: Numbers, met: Numbers, floor: Numbers, marks: Numbers, cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Inserts units; `marks` is all 0, before and after. O(n^2) where few units move at once.

    `cursor` has how many are inserted, and the peak. Ends when all are, or when it looked at so many others; returns
    how many they are.
    """
    looked = 0
    while cursor[INSERTED] < len(begin) and looked < looks:
        unit, peak = cursor[INSERTED], cursor[PEAK]
        count = find_gaps(begin, end, size, address, order, unit, met, floor)
        address[unit] = best_floor(size[unit], peak, size, address, load, met, floor, count)
        place = enter(address, order, unit)
        add_load(begin, end, size, load, order, place, unit + 1, marks)
        peak = max(peak, push_up(begin, end, size, address, order, place, unit + 1, marks))
        sort_again(address, order, unit + 1)
        cursor[INSERTED], cursor[PEAK] = unit + 1, peak
        looked += unit + 1
    return looked


@kernel
def settle(
    begin: Numbers, end: Numbers, size: Numbers, alignment: Numbers, order: Numbers, address: Numbers, count: int
) -> None:
    """Computes the addresses of units from their order alone: each as low as those below it and its alignment allow."""
    for place in range(count):
        unit, least, below = order[place], 0, place
        low, high = begin[unit], end[unit]
        while below and low < high:
            below -= 1
            other = order[below]
            if begin[other] < high and low < end[other]:
                least = max(least, address[other] + size[other])
                low, high = rest(begin, end, other, low, high)
        address[unit] = -(-least // alignment[unit]) * alignment[unit]
