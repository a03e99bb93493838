"""How an order of placement changes in a climb: what stuck out is placed before something that was in its way."""

from allocator.kernels.numbers import Numbers, kernel

NO_PLACE = -1
"""Place of a body that does not exist; offset of one that lies nowhere."""
MULTIPLIER, MODULUS = 48271, 2**31 - 1
"""The constants of the random number generator (Park and Miller 1988, with the multiplier of 1993)."""


@kernel
def advance(
    order: Numbers, offset: Numbers, begin: Numbers, end: Numbers, start: Numbers, near: Numbers,
    seen: Numbers, met: Numbers, draws: int, chance: Numbers,
) -> int:  # fmt: skip
    """Moves the last body of an order that was placed. Returns its new place, or NO_PLACE where nothing was in its way.

    It goes before one of those that it meets, drawn by chance: the latest in the order of so many draws. Two bodies
    meet if their lives [begin, end) do; where no lives are given, near[start[i] : start[i + 1]] are those that body i
    meets. Scratch by body: `seen`, 0 at first, and `met`. `chance` holds one number in [1, MODULUS).
    """
    at = len(order) - 1
    while at >= 0 and offset[order[at]] == NO_PLACE:
        at -= 1
    if at < 0:
        return NO_PLACE
    by_life = len(begin) > 0
    count = met_by_life(order, at, begin, end, met) if by_life else met_by_list(order, at, start, near, seen, met)
    if count == 0:
        return NO_PLACE
    to = met[latest(count, draws, chance)]
    body = order[at]
    for place in range(at, to, -1):
        order[place] = order[place - 1]
    order[to] = body
    return to


def met_by_life(order: Numbers, at: int, begin: Numbers, end: Numbers, met: Numbers) -> int:
    """Lists the places before `at` of bodies that live at the same time. Returns their number."""
    since, until, count = begin[order[at]], end[order[at]], 0
    for place in range(at):
        other = order[place]
        met[count] = place
        count += (begin[other] < until) & (since < end[other])
    return count


def met_by_list(order: Numbers, at: int, start: Numbers, near: Numbers, seen: Numbers, met: Numbers) -> int:
    """Lists the same places as `met_by_life`, from a list of neighbours. Returns their number.

    `seen` marks a body with the last one that saw it, plus 1.
    """
    body, count = order[at], 0
    for k in range(start[body], start[body + 1]):
        seen[near[k]] = body + 1
    for place in range(at):
        met[count] = place
        count += seen[order[place]] == body + 1
    return count


def latest(count: int, draws: int, chance: Numbers) -> int:
    """Returns the largest of some random numbers in [0, count)."""
    largest = 0
    for _ in range(draws):
        chance[0] = chance[0] * MULTIPLIER % MODULUS
        largest = max(largest, chance[0] % count)
    return largest
