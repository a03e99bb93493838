"""Best-gap placement by the bytes in use over time: the third search of `allocator.kernels.gaps`."""

from typing import NamedTuple

from allocator.kernels.gaps import ARENA, AT, BELOW, NOT_BEGUN, NOWHERE, Barred, Bodies, begin_placing, tightest
from allocator.kernels.numbers import Numbers, kernel


class Covering(NamedTuple):
    """The chunks of bodies: each lives in the leaves [since, until) of a tree over time.

    It takes the `room` bytes from `inner` on in its body. Body i has the members [first[i], first[i + 1]).
    """

    since: Numbers
    until: Numbers
    inner: Numbers
    room: Numbers
    first: Numbers


class RangeTree(NamedTuple):
    """Two lists of ranges for each node of a tree over time, which do not touch, lowest first.

    List 2 k is what is in use in all of node k (but for what the nodes above it have), list 2 k + 1 is what is in use
    anywhere in it. A list is a link behind[list]; a range is bytes [bottom, top), and a link; 0 ends it. Ranges that
    came to nothing hang on list 0, and the next new one is bottom[0]. Scratch: `nodes`, four a level.
    """

    nodes: Numbers
    bottom: Numbers
    top: Numbers
    behind: Numbers


@kernel
def place_covered(
    bodies: Bodies, members: Covering, order: Numbers, limit: int, offset: Numbers,
    leaves: int, tree: RangeTree, barred: Barred, cursor: Numbers, looks: int,
) -> int:  # fmt: skip
    """Places bodies as `place_near` does, with a tree over time that knows which bytes are in use."""
    first, looked = members.first, 0
    if cursor[ARENA] == NOT_BEGUN:
        begin_placing(bodies, order, offset, cursor)
        begin_cover(bodies, members, offset, leaves, tree)
    while cursor[AT] < len(order) and cursor[ARENA] <= limit and looked < looks:
        body = order[cursor[AT]]
        cursor[AT] += 1
        if bodies.pinned[body] == NOWHERE:
            count = 0
            for one in range(first[body], first[body + 1]):
                list_count = find_nodes(leaves, members.since[one], members.until[one], tree.nodes)
                count = from_tree(members.inner[one], members.room[one], tree, list_count, barred, count)
                looked += list_count
            offset[body] = tightest(barred, count, bodies.alignment[body])
            cover(members, offset, leaves, tree, body)
            cursor[ARENA] = max(cursor[ARENA], offset[body] + bodies.size[body])
            looked += count
    return looked


def begin_cover(bodies: Bodies, members: Covering, offset: Numbers, leaves: int, tree: RangeTree) -> None:
    """Enters the bodies that have an offset into an empty tree."""
    for k in range(4 * leaves):
        tree.behind[k] = 0
    tree.bottom[0] = 4 * leaves
    for body in range(len(bodies.size)):
        if offset[body] != NOWHERE:
            cover(members, offset, leaves, tree, body)


def find_nodes(leaves: int, since: int, until: int, nodes: Numbers) -> int:
    """Lists the lists that describe some leaves: 2 k + 1 for the largest nodes in them, 2 k for those above.

    Gives their number.
    """
    low, high, count = leaves + since, leaves + until, 0
    while low < high:
        if low % 2:
            nodes[count], count, low = 2 * low + 1, count + 1, low + 1
        if high % 2:
            nodes[count], count, high = 2 * high - 1, count + 1, high - 1
        low, high = low // 2, high // 2
    low, high, width = (leaves + since) // 2, (leaves + until - 1) // 2, 2
    while low:
        is_cut = low * width < leaves + since
        if is_cut:
            nodes[count], count = 2 * low, count + 1
        if (high + 1) * width > leaves + until and not (is_cut and low == high):
            nodes[count], count = 2 * high, count + 1
        low, high, width = low // 2, high // 2, 2 * width
    return count


def from_tree(above: int, room: int, tree: RangeTree, list_count: int, barred: Barred, count: int) -> int:
    """Adds what the first lists of `nodes` bar to the body in which a member has `room` bytes from `above` on.

    Returns the number of ranges.
    """
    bottom, top, behind = tree.bottom, tree.top, tree.behind
    for k in range(list_count):
        at = behind[tree.nodes[k]]
        while at:
            barred.ceilings[count], barred.floors[count] = max(bottom[at] - above - room, BELOW), top[at] - above
            count += 1
            at = behind[at]
    return count


def cover(members: Covering, offset: Numbers, leaves: int, tree: RangeTree, body: int) -> None:
    """Enters a placed body into the tree."""
    nodes = tree.nodes
    for one in range(members.first[body], members.first[body + 1]):
        low = offset[body] + members.inner[one]
        high = low + members.room[one]
        for at in range(find_nodes(leaves, members.since[one], members.until[one], nodes)):
            add_range(tree, nodes[at] | 1, low, high)
            if nodes[at] % 2:
                add_range(tree, nodes[at] - 1, low, high)


def add_range(tree: RangeTree, link: int, low: int, high: int) -> None:
    """Adds bytes [low, high) to a list, and joins what then touches."""
    bottom, top, behind = tree.bottom, tree.top, tree.behind
    while behind[link] and top[behind[link]] < low:
        link = behind[link]
    current = behind[link]
    if not current or bottom[current] > high:
        new = behind[0]
        if new:
            behind[0] = behind[new]
        else:
            new = bottom[0]
            bottom[0] = new + 1
        bottom[new], top[new], behind[new], behind[link] = low, high, current, new
        return
    high, above = max(high, top[current]), behind[current]
    while above and bottom[above] <= high:
        high = max(high, top[above])
        behind[current], behind[above], behind[0] = behind[above], behind[0], above
        above = behind[current]
    bottom[current], top[current] = min(bottom[current], low), high
