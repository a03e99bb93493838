"""The judge's own sweep over time, for many chunks. Only the judge imports it, and it imports no maker of plans.

Ranges of bytes in use are numbered by places, in the order of addresses. `tree` is a tournament over places: node k
stands above nodes 2 k and 2 k + 1, the leaves are the second half; it says whether any place below a node is in use.
"""

from allocator.kernels.numbers import Flags, Numbers, kernel

NO_ROW = -1
ENTERED, LEFT, OTHER = range(3)
"""Places of the cursor: rows that have entered, rows that have left, and the row that a newcomer overlaps."""
CURSOR = 3


@kernel
def find_overlap(
    enter: Numbers, end: Numbers, low: Numbers, high: Numbers, entering: Numbers, leaving: Numbers,
    place: Numbers, holder: Numbers, tree: Flags, cursor: Numbers, most: int,
) -> int:  # fmt: skip
    """Finds the first two rows that are in use in one tick and share a byte: returns the newcomer, or NO_ROW.

    The other one is written to `cursor[OTHER]`. Looks at `most` rows, and goes on where it ended before: all is right
    when all rows have entered. The cursor begins with zeros.

    A row is bytes [low, high) from tick `enter` until `end`. `entering` are the rows by tick, then address; `leaving`
    by tick; `place` is the place of each row, `holder` the row of each place; nothing is marked in the tree yet.
    """
    left, first = cursor[LEFT], cursor[ENTERED]
    for at in range(first, min(first + most, len(entering))):
        row = entering[at]
        while left < len(leaving) and end[leaving[left]] <= enter[row]:
            clear(tree, place[leaving[left]])
            left += 1
        below, above = used_below(tree, place[row]), used_above(tree, place[row])
        if below != NO_ROW and high[holder[below]] > low[row]:
            cursor[OTHER] = holder[below]
            return row
        if above != NO_ROW and low[holder[above]] < high[row]:
            cursor[OTHER] = holder[above]
            return row
        mark(tree, place[row])
        cursor[ENTERED], cursor[LEFT] = at + 1, left
    return NO_ROW


def mark(tree: Flags, place: int) -> None:
    """Marks a place as used."""
    node = len(tree) // 2 + place
    while node and not tree[node]:
        tree[node] = 1
        node //= 2


def clear(tree: Flags, place: int) -> None:
    """Marks a place as unused."""
    node = len(tree) // 2 + place
    tree[node] = 0
    while node > 1 and not tree[node ^ 1]:
        node //= 2
        tree[node] = 0


def used_below(tree: Flags, place: int) -> int:
    """Returns the nearest place in use below this one, or NO_ROW."""
    leaves = len(tree) // 2
    node = leaves + place
    while node > 1 and not (node & 1 and tree[node - 1]):
        node //= 2
    if node <= 1:
        return NO_ROW
    node -= 1
    while node < leaves:
        node = 2 * node + tree[2 * node + 1]
    return node - leaves


def used_above(tree: Flags, place: int) -> int:
    """Returns the nearest place in use above this one, or NO_ROW."""
    leaves = len(tree) // 2
    node = leaves + place
    while node > 1 and (node & 1 or not tree[node + 1]):
        node //= 2
    if node <= 1:
        return NO_ROW
    node += 1
    while node < leaves:
        node = 2 * node + 1 - tree[2 * node]
    return node - leaves
