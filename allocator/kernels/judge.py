"""The judge's own sweep over time, for many chunks. Nobody else imports it, and it imports nothing of those judged.

Ranges of bytes in use are told by their places, which go by address. `tree` is a tournament over places: node k stands
above nodes 2 k and 2 k + 1, the leaves are the second half; it says whether any place below a node is in use.
"""

from allocator.kernels.numbers import Numbers

NOBODY = -1


def find_overlap(
    enter: Numbers, end: Numbers, low: Numbers, high: Numbers, entering: Numbers, leaving: Numbers,
    place: Numbers, holder: Numbers, tree: Numbers,
) -> tuple[int, int]:  # fmt: skip
    """The first two rows, newcomer first, that are in use in one tick and share a byte; (NOBODY, NOBODY) if none do.

    A row is bytes [low, high) from tick `enter` until `end`. `entering` are the rows by tick, then address; `leaving`
    by tick; `place` is the place of each row, `holder` the row of each place; nothing is marked in the tree yet.
    """
    left = 0
    for at in range(len(entering)):
        row = entering[at]
        while left < len(leaving) and end[leaving[left]] <= enter[row]:
            clear(tree, place[leaving[left]])
            left += 1
        below, above = used_below(tree, place[row]), used_above(tree, place[row])
        if below != NOBODY and high[holder[below]] > low[row]:
            return row, holder[below]
        if above != NOBODY and low[holder[above]] < high[row]:
            return row, holder[above]
        mark(tree, place[row])
    return NOBODY, NOBODY


def mark(tree: Numbers, place: int) -> None:
    """A place comes into use."""
    node = len(tree) // 2 + place
    while node and not tree[node]:
        tree[node] = 1
        node //= 2


def clear(tree: Numbers, place: int) -> None:
    """A place is in use no more."""
    node = len(tree) // 2 + place
    tree[node] = 0
    while node > 1 and not tree[node ^ 1]:
        node //= 2
        tree[node] = 0


def used_below(tree: Numbers, place: int) -> int:
    """The nearest place in use below this one, or NOBODY."""
    leaves = len(tree) // 2
    node = leaves + place
    while node > 1 and not (node & 1 and tree[node - 1]):
        node //= 2
    if node <= 1:
        return NOBODY
    node -= 1
    while node < leaves:
        node = 2 * node + tree[2 * node + 1]
    return node - leaves


def used_above(tree: Numbers, place: int) -> int:
    """The nearest place in use above this one, or NOBODY."""
    leaves = len(tree) // 2
    node = leaves + place
    while node > 1 and (node & 1 or not tree[node + 1]):
        node //= 2
    if node <= 1:
        return NOBODY
    node += 1
    while node < leaves:
        node = 2 * node + 1 - tree[2 * node]
    return node - leaves
