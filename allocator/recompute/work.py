"""The problem of recomputation: what each step reads, begins and may overwrite, and what it costs to run again."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from attrs import frozen

from allocator.derive.sharing import share
from allocator.problem import Column
from allocator.steps import Program, Step

NEVER = -1
"""The step that takes a chunk which none takes for good."""


@frozen
class OverwriteChoice:
    """Chunk `out` may be written into the bytes of chunk `src`, if nothing needs that any more."""

    out: int
    src: int


@frozen(eq=False)
class RecomputeProblem:
    """Steps 0 .. n-1 of a program, and its chunks, whose `size` is in bytes (a multiple of the alignment).

    Step i reads the chunks `reads[i]`, begins `writes[i]`, and may overwrite as `takes[i]` says. Running it again costs
    `cost[i]`, and is allowed in front of step `until[i]` and the steps before that one; never where that is NEVER.
    Chunk c is written by step `writer[c]` and read by the steps `users[c]`, in order; those of `held` are fed and stay
    to the end, or the `resident_overwriters` do, which must overwrite them. Mere views are no work.
    """

    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]
    overwrites: tuple[tuple[OverwriteChoice, ...], ...]
    cost: tuple[int, ...]
    until: tuple[int, ...]
    size: tuple[int, ...]
    writer: tuple[int, ...]
    users: tuple[tuple[int, ...], ...]
    resident: frozenset[int]
    resident_overwriters: frozenset[int]

    @property
    def sizes(self) -> Column:
        """Returns `size` as a column."""
        return np.array(self.size, np.int64)

    def __len__(self) -> int:
        return len(self.cost)


def work_of(program: Program, cost: Sequence[int], once: Collection[int], alignment: int = 1) -> RecomputeProblem:
    """Derives the problem of a program whose first step feeds and whose last one fetches.

    The steps `once` never run again.

    A step that must overwrite a chunk (the update of a parameter) runs once, and what reads the chunk not behind it.
    """
    sharing, steps = share(program), program.steps
    chunk_of = sharing.chunk_of.tolist()
    reads = tuple(_chunks(step.reads, chunk_of) for step in steps)
    writes = tuple(_chunks(step.writes, chunk_of) for step in steps)
    size = tuple(-(-program.sizes[root] // alignment) * alignment for root in sharing.roots.tolist())
    overwrites = tuple(tuple(_overwrites(step, chunk_of, sharing.offset.tolist(), size)) for step in steps)
    writer, users = [NEVER] * len(size), [list[int]() for _ in size]
    for i in range(len(steps)):
        for chunk in writes[i]:
            writer[chunk] = i
        for chunk in reads[i]:
            users[chunk].append(i)
    until = _until(steps, chunk_of, reads, frozenset(once) | {0, len(steps) - 1})
    resident, resident_overwriters = _residents(steps, chunk_of, size)
    return RecomputeProblem(
        reads,
        writes,
        overwrites,
        tuple(cost),
        until,
        size,
        tuple(writer),
        tuple(map(tuple, users)),
        resident,
        resident_overwriters,
    )


def _chunks(values: Sequence[int], chunk_of: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(chunk_of[v] for v in values))


def _overwrites(
    step: Step, chunk_of: Sequence[int], offset: Sequence[int], size: Sequence[int]
) -> Iterator[OverwriteChoice]:
    """Yields what the step may overwrite: chunks that it reads by that name alone, and that are large enough."""
    for allowed in step.overwrites:
        out, src = chunk_of[allowed.out], chunk_of[allowed.src]
        others = any(chunk_of[v] == src and v != allowed.src for v in step.reads)
        if not others and offset[allowed.src] + allowed.offset + size[out] <= size[src]:
            yield OverwriteChoice(out, src)


def _residents(
    steps: Sequence[Step], chunk_of: Sequence[int], size: Sequence[int]
) -> tuple[frozenset[int], frozenset[int]]:
    """Returns the fed chunks that stay to the end, and the chunks that must overwrite them.

    The second set has all that such chains write; they count only where all of a chain is of one size.
    """
    pairs = ((chunk_of[o.src], chunk_of[o.out]) for step in steps for o in step.overwrites if o.required)
    overwriter_of = {src: out for src, out in pairs if size[src] == size[out]}
    fetched, resident, resident_overwriters = {chunk_of[v] for v in steps[-1].reads}, set[int](), set[int]()
    for first in (chunk_of[v] for v in steps[0].writes):
        chain = [first]
        while chain[-1] in overwriter_of:
            chain.append(overwriter_of[chain[-1]])
        if chain[-1] in fetched:
            resident.add(first)
            resident_overwriters.update(chain[1:])
    return frozenset(resident), frozenset(resident_overwriters)


def _until(
    steps: Sequence[Step], chunk_of: Sequence[int], reads: Sequence[tuple[int, ...]], once: Collection[int]
) -> tuple[int, ...]:
    taker = {chunk_of[o.src]: i for i, step in enumerate(steps) for o in step.overwrites if o.required}
    last = [min((taker.get(c, len(steps)) for c in chunks), default=len(steps)) for chunks in reads]
    takers = frozenset(taker.values())
    return tuple(NEVER if i in once or i in takers else last[i] for i in range(len(steps)))
