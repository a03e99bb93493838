"""Which values are worth being nested: what holds others is there from the first of them on, and that may cost bytes.

The measure is the operator breadth, below which no arena is. All that can be nested is, at first. Where the peak has
bytes that nobody has written yet, others lodge in them if that can help; then the value that has most of them is let
go, and so on.
"""

from collections.abc import Collection

from attrs import frozen

from allocator.bounds import peak_tick
from allocator.breadths import breadths
from allocator.derive.chunks import Chunks, derive, to_problem
from allocator.problem import Problem
from engine.lower.calls import Lowered, arena_ids
from engine.lower.steps import to_program
from engine.nesting.hole_filling import fill_holes
from engine.nesting.rewrite import join
from engine.nesting.search import Nesting, find_sub_buffers

ROUNDS = 6
"""How often a peak is looked at; each time takes as long as it takes to find lifetimes and overwrites."""


@frozen(eq=False)
class Measured:
    """A graph with nested values, and its chunks as they are without limits of alignment; `breadth` is bytes."""

    lowered: Lowered
    chunks: Chunks
    problem: Problem
    breadth: int


def measure(lowered: Lowered, overwrite: bool, reuse: bool) -> Measured:
    """How many bytes are alive at once."""
    chunks = derive(to_program(lowered, arena_ids(lowered)), overwrite=overwrite, reuse=reuse)
    problem = to_problem(chunks, 1)
    return Measured(lowered, chunks, problem, int(breadths(problem).value.max(initial=0)))


def choose_nesting(lowered: Lowered, overwrite: bool, reuse: bool) -> tuple[Lowered, int]:
    """The graph with what is worth being nested, and how many bytes are alive at once without. The same object where
    nothing is: nesting that would need more bytes is left out, and of what needs as many bytes most is nested.
    """
    nesting = find_sub_buffers(lowered, lambda _: True, overwrite)
    if not nesting.joins:
        return lowered, 0
    plain = measure(lowered, overwrite, reuse)
    best, refused = plain, set[int]()
    for _ in range(ROUNDS):
        candidate = measure(join(lowered, nesting), overwrite, reuse)
        if candidate.breadth < best.breadth or (best is plain and candidate.breadth == best.breadth):
            best = candidate
        waste = _waste(candidate, nesting)
        if candidate.breadth - sum(waste.values()) < best.breadth:
            rooms = fill_holes(nesting, candidate.lowered, candidate.chunks, candidate.problem)
            best = min(best, measure(join(lowered, rooms), overwrite, reuse), key=lambda m: m.breadth)
        if not waste:
            break
        refused.add(max(waste, key=lambda root: waste[root]))
        nesting = find_sub_buffers(lowered, lambda v: v not in refused, overwrite)
        if not nesting.joins:
            break
    return best.lowered, plain.breadth


def _waste(measured: Measured, nesting: Nesting) -> dict[int, int]:
    """Of the values that are alive at the peak and hold others: the bytes that are still to be written, if any are."""
    tick, ids = peak_tick(measured.problem), arena_ids(measured.lowered)
    roots = _alive(measured, nesting.roots, ids, tick)
    waste = {root: _unwritten(measured, root, tick) for root in sorted(roots)}
    return {root: count for root, count in waste.items() if count > 0}


def _alive(measured: Measured, roots: Collection[int], ids: dict[int, int], tick: int) -> list[int]:
    chunk_of, begin, end = measured.chunks.chunk_of, measured.chunks.begin, measured.chunks.end
    return [root for root in roots if begin[chunk_of[ids[root]]] <= tick < end[chunk_of[ids[root]]]]


def _unwritten(measured: Measured, root: int, tick: int) -> int:
    """Bytes of a value that no call up to a tick has written. What is written over lies where its writer does."""
    values = measured.lowered.values
    outputs = (values[v] for call in measured.lowered.calls if call.tick <= tick for v in call.outputs)
    written = {value.layout.offset: value.spec.nbytes for value in outputs if value.owner == root}
    return values[root].spec.nbytes - sum(written.values())
