"""The graph whose orders are searched (what each step waits for, begins, reads and ends), and its order depth first.

Nodes are the steps of a program between its feed and its fetch that touch bytes or wait for others. Mere views are
none: they share the chunk of what they look at, and cost nothing wherever they stand.
"""

from collections.abc import Sequence

import numpy as np
from attrs import evolve, field, frozen

from allocator.concurrency import Dependences
from allocator.derive.sharing import share
from allocator.problem import Column, column
from allocator.ragged import RaggedArray
from allocator.steps import Program, Step

NO_WRITER = -1
"""The writer of a chunk that is there from the start."""


@frozen(eq=False)
class StepGraph:
    """Nodes in the given order, which is runnable, and chunks with sizes in bytes.

    Node i is step `step[i]`; it waits for the nodes `before`, and `after` wait for it. It reads the chunks `reads` and
    begins the chunks `writes`. `overwrites` has pairs (chunk that it writes, chunk that it may take for that), the one
    that is taken first in front. A chunk ends when its last of `users` (readers) is done, or never if it is `kept`.
    `first` are bytes that are alive while the inputs are fed, `start` those of them that something reads.
    """

    step: Column = field(converter=column)
    before: RaggedArray
    after: RaggedArray
    reads: RaggedArray
    writes: RaggedArray
    overwrites: RaggedArray
    users: RaggedArray
    size: Column = field(converter=column)
    kept: Column = field(converter=column)
    writer: Column = field(converter=column)
    first: int
    start: int

    def __len__(self) -> int:
        return len(self.step)


def step_graph(program: Program, dependences: Dependences) -> StepGraph:
    """Derives the graph of a program with these dependences; step 0 feeds, and the last step fetches."""
    last = len(program.steps) - 1
    named = {*dependences.before.tolist(), *dependences.after.tolist()}
    step = [i for i, s in enumerate(program.steps) if 0 < i < last and (s.reads or s.writes or i in named)]
    node_of = {s: i for i, s in enumerate(step)}
    pairs = zip(dependences.before.tolist(), dependences.after.tolist(), strict=True)
    after: list[list[int]] = [[] for _ in step]
    for a, b in sorted({(node_of[a], node_of[b]) for a, b in pairs if a in node_of and b in node_of}):
        after[a].append(b)
    sharing = share(program)
    chunk = sharing.chunk_of.tolist()
    size = np.array(program.sizes, np.int64)[sharing.roots].tolist()
    steps = [program.steps[s] for s in step]
    reads = [sorted({chunk[v] for v in s.reads}) for s in steps]
    writes = [[chunk[v] for v in s.writes] for s in steps]
    users = _transposed(reads, len(size))
    kept = sorted({chunk[v] for v in program.steps[last].reads})
    fed = sorted({chunk[v] for v in program.steps[0].writes})
    writer = [NO_WRITER] * len(size)
    for i, written in enumerate(writes):
        for c in written:
            writer[c] = i
    return StepGraph(
        step=step,
        before=RaggedArray.of(_transposed(after, len(step))),
        after=RaggedArray.of(after),
        reads=RaggedArray.of(reads),
        writes=RaggedArray.of(writes),
        overwrites=RaggedArray.of(_overwrites(s, chunk, sharing.offset.tolist(), size) for s in steps),
        users=RaggedArray.of(users),
        size=size,
        kept=np.isin(np.arange(len(size)), kept),
        writer=writer,
        first=sum(size[c] for c in fed),
        start=sum(size[c] for c in fed if users[c] or c in kept),
    )


def renumbered(graph: StepGraph, order: Column) -> StepGraph:
    """Returns the same graph with its nodes in another order, which must be runnable: node i is what order[i] was."""
    place = np.empty(len(graph), np.int64)
    place[order] = np.arange(len(graph))
    waits, follows = (
        RaggedArray.of(sorted(place[rows.row(node)].tolist()) for node in order.tolist())
        for rows in (graph.before, graph.after)
    )
    reads, writes, overwrites = (
        RaggedArray.of(rows.row(node).tolist() for node in order.tolist())
        for rows in (graph.reads, graph.writes, graph.overwrites)
    )
    return evolve(
        graph,
        step=graph.step[order],
        before=waits,
        after=follows,
        reads=reads,
        writes=writes,
        overwrites=overwrites,
        users=RaggedArray.of(sorted(place[users].tolist()) for users in graph.users.lists()),
        writer=np.where(graph.writer == NO_WRITER, NO_WRITER, place[graph.writer]),
    )


def shuffled(graph: StepGraph, seed: int) -> Column:
    """Returns a runnable order that is drawn at random."""
    draw, waiting = np.random.default_rng(seed), np.diff(graph.before.start)
    ready, order = np.flatnonzero(waiting == 0).tolist(), list[int]()
    while ready:
        node = ready.pop(int(draw.integers(len(ready))))
        order.append(node)
        for follower in graph.after.row(node).tolist():
            waiting[follower] -= 1
            if waiting[follower] == 0:
                ready.append(follower)
    return column(order)


def _transposed(lists: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Returns for each number the lists in which it stands."""
    transposed: list[list[int]] = [[] for _ in range(count)]
    for i, row in enumerate(lists):
        for number in row:
            transposed[number].append(i)
    return transposed


def _overwrites(step: Step, chunk: list[int], offset: list[int], size: list[int]) -> list[int]:
    """Returns the pairs that are possible in any order, flat, in the order in which `choose_overwrites` takes them."""
    pairs = []
    for overwrite in step.overwrites:
        src, dest = chunk[overwrite.out], chunk[overwrite.src]
        at = offset[overwrite.src] + overwrite.offset
        is_needed = any(chunk[v] == dest for v in step.reads if v != overwrite.src)
        if size[src] > 0 and 0 <= at <= size[dest] - size[src] and not is_needed:
            pairs.append((not overwrite.required, -size[src], size[dest], src, dest))
    pairs.sort(key=lambda pair: pair[:3])
    return [number for *_, src, dest in pairs for number in (src, dest)]


def depth_first(graph: StepGraph) -> tuple[int, ...]:
    """Returns a postorder from the writers of what is kept, then from other nodes that nothing waits for.

    What an output needs is done when it is needed, and not before. Starts stand in the given order. Of what a node
    waits for, what was added first is done first.
    """
    before, writes = graph.before.lists(), graph.writes.lists()
    ends = [node for node, chunks in enumerate(writes) if any(graph.kept[c] for c in chunks)]
    order: list[int] = []
    seen = [False] * len(graph)
    for end in (*ends, *range(len(graph))):
        stack = [end]
        while stack:
            node = stack.pop()
            if node < 0:
                order.append(~node)
            elif not seen[node]:
                seen[node] = True
                stack.append(~node)
                stack.extend(b for b in reversed(before[node]) if not seen[b])
    return tuple(order)
