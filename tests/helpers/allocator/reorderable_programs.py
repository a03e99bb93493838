"""Random programs whose steps can be put into many orders, and the best of all orders by brute force."""

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from allocator.concurrency import Dependences
from allocator.derive.chunks import derive, to_problem
from allocator.problem import Problem
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.graphs.random_graphs import Choose


@st.composite
def programs(draw: st.DrawFn, most: int = 7) -> Program:
    """Draws a program of at most `most` steps between its feed and its fetch."""
    return build(lambda n: draw(st.integers(0, n - 1)), most)


def build(choose: Choose, most: int, sizes: int = 9) -> Program:
    """Builds a program from choices: fan-out, overwrites at an offset, views, workspaces, steps without readers."""
    size = [1 + choose(sizes) for _ in range(1 + choose(2))]
    steps = [Step(writes=tuple(range(len(size))))]
    for _ in range(1 + choose(most)):
        steps.append(_step(choose, size, sizes))
        if choose(5) == 0:
            src = choose(len(size))
            size.append(size[src])
            steps.append(Step(views=(ViewForward(len(size) - 1, src),)))
    steps.append(Step(reads=tuple(sorted({choose(len(size)) for _ in range(1 + choose(2))}))))
    return Program(tuple(steps), tuple(size))


def _step(choose: Choose, size: list[int], sizes: int) -> Step:
    count = len(size)
    reads = tuple(sorted({choose(count) for _ in range(1 + choose(2))}))
    size.extend(1 + choose(sizes) for _ in range(1 + (choose(4) == 0)))
    writes = tuple(range(count, len(size)))
    taken = tuple(OverwriteForward(o, i) for o in writes for i in reads if size[o] <= size[i] and choose(3))
    return Step(reads, writes, (), taken)


def dependences(program: Program) -> Dependences:
    """Returns which step waits for which, for the bytes: readers for writers, also through views."""
    owner, writer, edges = list(range(len(program.sizes))), dict[int, int](), set[tuple[int, int]]()
    for tick, step in enumerate(program.steps):
        for view in step.views:
            owner[view.out] = owner[view.src]
        edges |= {(writer[owner[v]], tick) for v in step.reads}
        writer |= dict.fromkeys(step.writes, tick)
    pairs = sorted(edges)
    return Dependences(len(program.steps), [a for a, _ in pairs], [b for _, b in pairs])


def reordered(program: Program, order: Sequence[int]) -> Program:
    """Returns the program with its byte-touching steps in another order (step numbers); views follow their source."""
    views = {v.out: i for i, step in enumerate(program.steps) for v in step.views}
    built, placed = [program.steps[0]], set[int](program.steps[0].writes)
    pending = sorted(views.items())
    for tick in (*order, len(program.steps) - 1):
        for out, at in pending:
            if out not in placed and program.steps[at].views[0].src in placed:
                built.append(program.steps[at])
                placed.add(out)
        built.append(program.steps[tick])
        placed |= set(program.steps[tick].writes)
    return Program(tuple(built), program.sizes)


def orders(count: int, edges: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yields all runnable orders of nodes that wait for each other (before, after)."""

    def grow(done: list[int]) -> Iterator[list[int]]:
        if len(done) == count:
            yield list(done)
        for node in range(count):
            if node not in done and all(a in done for a, b in edges if b == node):
                yield from grow([*done, node])

    yield from grow([])


def problem_of(program: Program) -> Problem:
    """Returns the planner's problem, without alignment."""
    return to_problem(derive(program), alignment=1)
