"""Search for an order of nodes in which few bytes are alive at once.

A state is a set of done nodes: which bytes are alive follows from it, whatever the order was. So the order with the
lowest peak is the path from none to all whose highest step is lowest (dynamic programming over such sets: Ahn et al.
2020, "Ordering chaos"; runs that go down again in trees: Liu 1987).

Live bytes are submodular in the set of done nodes: what is begun counts alike in all sets, and what is ended by a node
ends earlier the more is done. So a run of ready nodes, each enabled by the one before, that ends with no more bytes
alive than before it, and never needs more than any order must, can be taken at once: what comes after it in any other
order needs no more than it did. A state is `settled` when no such run is left. In most networks that decides nearly
everything. The other way round, a `lazy` node, which can free no bytes, waits for the first that needs it.
"""

from typing import NamedTuple

from allocator.kernels.numbers import fill, kernel
from allocator.machine_code.arrays import Longs, Table

BITS = 62
"""The bits of a set that one word holds."""
WAITING, AFTER, BEFORE, READS, WRITES, PAIRS, BITKEY, LAZY = range(8)
"""Rows of the nodes of a part: how many it waits for; where its lists begin: who waits for it, whom it waits for, the
chunks that it reads and writes, and pairs (chunk that is written, chunk that may be taken for it); a random number; 1
if it is best done right before another one that waits for it, else 0."""
LEFT, SIZE = range(2)
"""Rows of its chunks: how many nodes read it, and one more if it never ends; bytes."""
TRAIL, GROUP = 1, 2
"""Rows of the nodes of a board, behind WAITING (of those that it waits for, how many are not done; DONE_ITSELF): the
nodes that are done, in order; scratch."""
MARK = 1
"""Row of its chunks, behind LEFT."""
LIVE, COUNT, HASH, STAMP, LOOKED = range(5)
"""Cells of `cursor`: bytes alive; nodes done; the set as one number; the last mark on a chunk; how often a node was
looked at, which is what a search costs."""
PEAK, ALIVE, DONE, PARENT, VIA, KEY, NEXT, PLACE, HEAP = range(9)
"""Rows of `entry`: highest bytes on the way to a state, or what no order goes below; bytes alive in it; nodes done; the
state that it came from, and the node that was taken there; the set as one number; in a sweep, another state with as
many nodes done; where it stands in the heap, or NONE. The last row is the heap itself."""
NONE = -1
DONE_ITSELF = -1
FAR = 1 << 60
LONGEST = 64
"""Nodes of a run."""
SOLVED, LIMITED = range(2)


class OrderPart(NamedTuple):
    """Nodes and chunks; few arrays, as each costs time whenever a function is called."""

    node: Table
    """See the rows above; one column a node and one behind."""
    near: Longs
    """The lists of all nodes, one behind the other."""
    chunk: Table


class OrderState(NamedTuple):
    """The state of an order under construction."""

    node: Table
    chunk: Table
    cursor: Longs


class StateTable(NamedTuple):
    """States that were met."""

    entry: Table
    mask: Table
    slot: Longs
    """A hash table of states: number + 1, or 0."""
    tally: Longs
    """States; how many of them stand in the heap; nodes that were tried."""


STATES, HEAPED, TRIED = range(3)


@kernel
def clear(part: OrderPart, board: OrderState, live: int) -> None:
    """Resets the state: nothing is done."""
    for i in range(part.node.shape[1] - 1):
        board.node[WAITING, i] = part.node[WAITING, i]
    for c in range(part.chunk.shape[1]):
        board.chunk[LEFT, c] = part.chunk[LEFT, c]
    board.cursor[LIVE], board.cursor[COUNT], board.cursor[HASH] = live, 0, 0


def highest(part: OrderPart, board: OrderState, node: int) -> int:
    """Returns the bytes alive while a ready node runs."""
    board.cursor[LOOKED] += 1
    live = board.cursor[LIVE]
    for k in range(part.node[WRITES, node], part.node[WRITES, node + 1]):
        live += part.chunk[SIZE, part.near[k]]
    if part.node[PAIRS, node] < part.node[PAIRS, node + 1]:
        live -= overlap(part, board, node)
    return int(live)


def overlap(part: OrderPart, board: OrderState, node: int) -> int:
    """Returns the bytes of outputs that lie in inputs which end here; each takes one and is taken once."""
    board.cursor[STAMP] += 1
    stamp, total = board.cursor[STAMP], 0
    for k in range(part.node[PAIRS, node], part.node[PAIRS, node + 1], 2):
        src, dest = part.near[k], part.near[k + 1]
        if board.chunk[LEFT, dest] == 1 and board.chunk[MARK, src] != stamp and board.chunk[MARK, dest] != stamp:
            board.chunk[MARK, src] = board.chunk[MARK, dest] = stamp
            total += part.chunk[SIZE, src]
    return int(total)


def take(part: OrderPart, board: OrderState, node: int) -> None:
    """Runs a ready node."""
    live = board.cursor[LIVE]
    for k in range(part.node[WRITES, node], part.node[WRITES, node + 1]):
        if part.chunk[LEFT, part.near[k]] > 0:
            live += part.chunk[SIZE, part.near[k]]
    for k in range(part.node[READS, node], part.node[READS, node + 1]):
        chunk = part.near[k]
        board.chunk[LEFT, chunk] -= 1
        if board.chunk[LEFT, chunk] == 0:
            live -= part.chunk[SIZE, chunk]
    for k in range(part.node[AFTER, node], part.node[AFTER, node + 1]):
        board.node[WAITING, part.near[k]] -= 1
    board.node[WAITING, node] = DONE_ITSELF
    board.node[TRAIL, board.cursor[COUNT]] = node
    board.cursor[LIVE] = live
    board.cursor[COUNT] += 1
    board.cursor[HASH] ^= part.node[BITKEY, node]


def take_back(part: OrderPart, board: OrderState, count: int) -> None:
    """Undoes the last nodes until only `count` are done."""
    live = board.cursor[LIVE]
    while board.cursor[COUNT] > count:
        board.cursor[COUNT] -= 1
        node = board.node[TRAIL, board.cursor[COUNT]]
        for k in range(part.node[WRITES, node], part.node[WRITES, node + 1]):
            if part.chunk[LEFT, part.near[k]] > 0:
                live -= part.chunk[SIZE, part.near[k]]
        for k in range(part.node[READS, node], part.node[READS, node + 1]):
            chunk = part.near[k]
            if board.chunk[LEFT, chunk] == 0:
                live += part.chunk[SIZE, chunk]
            board.chunk[LEFT, chunk] += 1
        for k in range(part.node[AFTER, node], part.node[AFTER, node + 1]):
            board.node[WAITING, part.near[k]] += 1
        board.node[WAITING, node] = 0
        board.cursor[HASH] ^= part.node[BITKEY, node]
    board.cursor[LIVE] = live


def settle(part: OrderPart, board: OrderState, limit: int) -> None:
    """Takes all runs that cost nothing and never need more than `limit` bytes."""
    last, node = 0, 0
    total = part.node.shape[1] - 1
    while last < total:
        if board.node[WAITING, node] == 0 and run(part, board, node, limit):
            last = 0
        else:
            last += 1
        node = node + 1 if node + 1 < total else 0


def run(part: OrderPart, board: OrderState, node: int, limit: int) -> bool:
    """Takes a run of nodes from this one on if it ends with no more bytes alive than there are now."""
    live, count = board.cursor[LIVE], board.cursor[COUNT]
    for _ in range(LONGEST):
        if highest(part, board, node) > limit:
            break
        take(part, board, node)
        if board.cursor[LIVE] <= live:
            return True
        node = next_of_run(part, board, node, limit)
        if node == NONE:
            break
    take_back(part, board, count)
    return False


def next_of_run(part: OrderPart, board: OrderState, node: int, limit: int) -> int:
    """Returns, of the ready nodes that waited for this one, the one that leaves fewest bytes alive."""
    best, least = NONE, FAR
    for k in range(part.node[AFTER, node], part.node[AFTER, node + 1]):
        follower = part.near[k]
        if board.node[WAITING, follower] == 0 and highest(part, board, follower) <= limit:
            live = alive_after(part, board, follower)
            if live < least:
                best, least = follower, live
    return int(best)


def alive_after(part: OrderPart, board: OrderState, node: int) -> int:
    """Returns the bytes alive when a ready node is done."""
    live = board.cursor[LIVE]
    for k in range(part.node[WRITES, node], part.node[WRITES, node + 1]):
        if part.chunk[LEFT, part.near[k]] > 0:
            live += part.chunk[SIZE, part.near[k]]
    for k in range(part.node[READS, node], part.node[READS, node + 1]):
        if board.chunk[LEFT, part.near[k]] == 1:
            live -= part.chunk[SIZE, part.near[k]]
    return int(live)


@kernel
def follow(part: OrderPart, board: OrderState, order: Longs, peaks: Longs) -> None:
    """Runs all nodes in an order; notes the bytes alive while each runs."""
    for i in range(len(order)):
        peaks[i] = highest(part, board, order[i])
        take(part, board, order[i])


def load(part: OrderPart, board: OrderState, mask: Longs, live: int) -> None:
    """Puts the state of a set on the board. The trail is in no runnable order then."""
    clear(part, board, live)
    board.cursor[LOOKED] += part.node.shape[1]
    for node in range(part.node.shape[1] - 1):
        if mask[node // BITS] >> (node % BITS) & 1:
            take(part, board, node)
    board.cursor[LIVE] = live


def note(board: OrderState, mask: Longs, since: int) -> None:
    """Adds the nodes of the trail from a place on to a set."""
    for k in range(since, board.cursor[COUNT]):
        node = board.node[TRAIL, k]
        mask[node // BITS] |= 1 << (node % BITS)


def same_set(table: StateTable, one: int, other: int) -> bool:
    """Returns whether two states have the same nodes done."""
    for w in range(table.mask.shape[1]):  # noqa: SIM110 # numba knows no all() of a generator
        if table.mask[one, w] != table.mask[other, w]:
            return False
    return True


@kernel
def begin(part: OrderPart, board: OrderState, table: StateTable, live: int, floor: int) -> None:
    """Writes the first state, in which all that costs nothing is done."""
    clear(part, board, live)
    settle(part, board, floor)
    note(board, table.mask[0], 0)
    write_entry(table, board, 0, floor, NONE, NONE)
    table.entry[PLACE, 0] = NONE
    table.tally[STATES] = 1


def write_entry(table: StateTable, board: OrderState, number: int, peak: int, parent: int, via: int) -> None:
    """Writes the current state as an entry."""
    entry = table.entry
    entry[PEAK, number], entry[ALIVE, number], entry[DONE, number] = peak, board.cursor[LIVE], board.cursor[COUNT]
    entry[PARENT, number], entry[VIA, number], entry[KEY, number] = parent, via, board.cursor[HASH]


@kernel
def retrace(part: OrderPart, board: OrderState, table: StateTable, number: int, live: int, way: Longs) -> None:
    """Puts the order that led to a state on the trail. `way` is scratch."""
    count = 0
    while number != NONE:
        way[count] = number
        count += 1
        number = table.entry[PARENT, number]
    clear(part, board, live)
    while count > 0:
        count -= 1
        number = way[count]
        if table.entry[VIA, number] != NONE:
            take_group(part, board, gather(part, board, table.entry[VIA, number]), 0, FAR)
        settle(part, board, table.entry[PEAK, number])


@kernel
def explore(part: OrderPart, board: OrderState, table: StateTable, ceiling: int, nodes: int, looks: int) -> int:
    """Continues a best-first search for orders below the ceiling, up to `nodes` tried nodes or `looks` at nodes in all.

    LIMITED: no order goes below the peak of the state on top of the heap. SOLVED: if that state is complete and below
    the ceiling, it is a best one; else there is no order below the ceiling.
    """
    total, capacity = (part.node.shape[1] - 1), table.entry.shape[1]
    while table.tally[HEAPED] > 0:
        number = table.entry[HEAP, 0]
        if table.entry[DONE, number] == total or table.entry[PEAK, number] >= ceiling:
            return SOLVED
        if table.tally[TRIED] >= nodes or board.cursor[LOOKED] >= looks or table.tally[STATES] + total >= capacity:
            return LIMITED
        drop(table)
        expand(part, board, table, number, ceiling, table.tally[:0])
    return SOLVED


@kernel
def sweep(
    part: OrderPart, board: OrderState, table: StateTable, ceiling: int, width: int, heads: Longs, looks: int
) -> int:
    """Runs a beam search: of the states with equally many nodes done, only the best few are followed.

    Returns the final state, or NONE.

    Ends with NONE, too, when so many nodes were looked at.
    `heads` has a place for each number of nodes done, from 0 on.
    """
    total, capacity = (part.node.shape[1] - 1), table.entry.shape[1]
    fill(heads, NONE)
    heads[table.entry[DONE, 0]] = 0
    table.entry[NEXT, 0] = NONE
    for count in range(total):
        number = heads[count]
        while number != NONE:
            lift(table, number)
            number = table.entry[NEXT, number]
        for _ in range(width):
            if board.cursor[LOOKED] >= looks:
                return NONE
            if table.tally[HEAPED] > 0 and table.tally[STATES] + total < capacity:
                number = table.entry[HEAP, 0]
                drop(table)
                expand(part, board, table, number, ceiling, heads)
        while table.tally[HEAPED] > 0:
            drop(table)
    return int(heads[total])


def expand(part: OrderPart, board: OrderState, table: StateTable, number: int, ceiling: int, heads: Longs) -> None:
    """Visits all states that a node and a run lead to from one.

    They go to the heap, or to `heads` where there are any.
    """
    load(part, board, table.mask[number], table.entry[ALIVE, number])
    count = board.cursor[COUNT]
    for node in range(part.node.shape[1] - 1):
        if board.node[WAITING, node] != DONE_ITSELF and part.node[LAZY, node] == 0:
            group_size = gather(part, board, node)
            if group_size > 0:
                table.tally[TRIED] += 1
                peak = take_group(part, board, group_size, table.entry[PEAK, number], ceiling)
                if peak < ceiling:
                    settle(part, board, peak)
                    meet(board, table, number, node, peak, count, heads)
                take_back(part, board, count)


def gather(part: OrderPart, board: OrderState, node: int) -> int:
    """Notes a node, and the lazy ones that it still waits for, in a runnable order; 0 where it waits for others."""
    board.node[GROUP, 0] = node
    count, at = 1, 0
    while at < count:
        for k in range(part.node[BEFORE, board.node[GROUP, at]], part.node[BEFORE, board.node[GROUP, at] + 1]):
            other = part.near[k]
            if board.node[WAITING, other] == DONE_ITSELF:
                continue
            if part.node[LAZY, other] == 0:
                return 0
            count = insert(board.node[GROUP], count, other)
        at += 1
    sort(board.node[GROUP], count)
    return count


def sort(group: Longs, count: int) -> None:
    """Sorts the first `count` numbers, which are few."""
    for k in range(1, count):
        number, to = group[k], k
        while to > 0 and group[to - 1] > number:
            group[to] = group[to - 1]
            to -= 1
        group[to] = number


def insert(group: Longs, count: int, node: int) -> int:
    """Puts a node behind the others, if it does not stand there. Returns the new count."""
    for k in range(count):
        if group[k] == node:
            return count
    group[count] = node
    return count + 1


def take_group(part: OrderPart, board: OrderState, count: int, peak: int, ceiling: int) -> int:
    """Runs the nodes that were noted while they stay below the ceiling. Returns the highest of the peak and theirs."""
    for k in range(count):
        node = board.node[GROUP, k]
        peak = max(peak, highest(part, board, node))
        if peak >= ceiling:
            break
        take(part, board, node)
    return peak


def meet(board: OrderState, table: StateTable, parent: int, node: int, peak: int, count: int, heads: Longs) -> None:
    """Notes the state at hand, which has more nodes done than the parent's `count`, if the way to it is a new best."""
    number = table.tally[STATES]
    for w in range(table.mask.shape[1]):
        table.mask[number, w] = table.mask[parent, w]
    note(board, table.mask[number], count)
    state = find(table, number, board.cursor[HASH])
    if state == number:
        table.tally[STATES] += 1
    elif table.entry[PEAK, state] <= peak:
        return
    write_entry(table, board, state, peak, parent, node)
    if len(heads) == 0:
        lift(table, state)
    elif state == number:
        table.entry[NEXT, state] = heads[board.cursor[COUNT]]
        heads[board.cursor[COUNT]] = state


def find(table: StateTable, number: int, key: int) -> int:
    """Returns the state that has the same set, or the number itself, which is noted then."""
    size = len(table.slot)
    at = key % size
    while table.slot[at] != 0:
        other = table.slot[at] - 1
        if table.entry[KEY, other] == key and same_set(table, other, number):
            return int(other)
        at = at + 1 if at + 1 < size else 0
    table.slot[at] = number + 1
    table.entry[PLACE, number] = NONE
    return number


def is_before(entry: Table, one: int, other: int) -> bool:
    """Returns whether a state is looked at first: the lower peak, then more nodes done, then fewer bytes, then age."""
    if entry[PEAK, one] != entry[PEAK, other]:
        return bool(entry[PEAK, one] < entry[PEAK, other])
    if entry[DONE, one] != entry[DONE, other]:
        return bool(entry[DONE, one] > entry[DONE, other])
    if entry[ALIVE, one] != entry[ALIVE, other]:
        return bool(entry[ALIVE, one] < entry[ALIVE, other])
    return one < other


@kernel
def lift(table: StateTable, number: int) -> None:
    """Puts a state into the heap, or further up in it."""
    at = table.entry[PLACE, number]
    if at == NONE:
        at = table.tally[HEAPED]
        table.tally[HEAPED] += 1
    while at > 0:
        above = table.entry[HEAP, (at - 1) // 2]
        if not is_before(table.entry, number, above):
            break
        table.entry[HEAP, at] = above
        table.entry[PLACE, above] = at
        at = (at - 1) // 2
    table.entry[HEAP, at] = number
    table.entry[PLACE, number] = at


def drop(table: StateTable) -> None:
    """Takes the first state off the heap."""
    table.entry[PLACE, table.entry[HEAP, 0]] = NONE
    table.tally[HEAPED] -= 1
    count = table.tally[HEAPED]
    if count == 0:
        return
    number, at = table.entry[HEAP, count], 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and is_before(table.entry, table.entry[HEAP, below + 1], table.entry[HEAP, below]):
            below += 1
        if not is_before(table.entry, table.entry[HEAP, below], number):
            break
        table.entry[HEAP, at] = table.entry[HEAP, below]
        table.entry[PLACE, table.entry[HEAP, at]] = at
        at = below
    table.entry[HEAP, at] = number
    table.entry[PLACE, number] = at
