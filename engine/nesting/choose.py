"""Chooses which values are nested: a value in which others are nested is alive earlier, which may cost bytes.

The measure is the operator breadth, the most bytes alive at once, below which no arena is. All that can be nested is
nested at first. Where the peak has bytes that are not written yet, other values are placed in these holes if that can
help; then the value with most unwritten bytes at the peak is given up, and the rest is tried again.
"""

from collections.abc import Collection, Mapping

from attrs import evolve, frozen

from allocator.bounds import peak_tick
from allocator.breadths import breadths
from allocator.derive.chunks import Chunks, derive, to_problem
from allocator.problem import DEFAULT_ALIGNMENT, Problem
from engine.lower.calls import Lowered, NestRefusal, NotNested, arena_ids
from engine.lower.steps import to_program
from engine.nesting.hole_filling import fill_holes
from engine.nesting.rewrite import join
from engine.nesting.search import Nesting, find_sub_buffers

ROUNDS = 6
"""The most nestings that are measured. More rounds take planning time, a derivation of all lifetimes each, and may save
bytes."""


@frozen(eq=False)
class MeasuredNesting:
    """A graph with nested values, its chunks without limits of alignment, and the most bytes alive at once."""

    lowered: Lowered
    chunks: Chunks
    problem: Problem
    breadth: int


def measure(lowered: Lowered, overwrite: bool, reuse: bool) -> MeasuredNesting:
    """Derives the chunks of a graph and the most bytes alive at once."""
    chunks = derive(to_program(lowered, arena_ids(lowered)), overwrite=overwrite, reuse=reuse)
    problem = to_problem(chunks, 1)
    return MeasuredNesting(lowered, chunks, problem, int(breadths(problem).value.max(initial=0)))


def nested_and_plain(
    lowered: Lowered, overwrite: bool, reuse: bool, alignment: int, rounds: int = ROUNDS
) -> tuple[Lowered, ...]:
    """Returns the calls with values nested, where that may save bytes, and the calls as they are.

    `rounds` is the most nestings that are measured. Values in holes of others are aligned to `alignment` bytes as
    chunks are, and never to less than the default.

    Nesting that would need more bytes is left out; of two nestings that need as many bytes, the one that nests more is
    taken. `not_nested` of each says why the other operators with input places were not nested.
    """
    nesting = find_sub_buffers(lowered, lambda _: True, overwrite)
    if not nesting.joins:
        return (_with_reasons(lowered, nesting.refusals),)
    best = _best(lowered, nesting, overwrite, reuse, max(alignment, DEFAULT_ALIGNMENT), rounds=rounds)
    joined = dict.fromkeys(nesting.joins, NestRefusal.BREADTH)
    if best is lowered:
        return (_with_reasons(lowered, {**nesting.refusals, **joined}),)
    plain = _with_reasons(lowered, {**nesting.refusals, **dict.fromkeys(nesting.joins, NestRefusal.ARENA)})
    kept = {instruction.name for instruction in best.calls}
    names = {call.tick: call.name for call in lowered.calls}
    left = {tick: refusal for tick, refusal in {**nesting.refusals, **joined}.items() if names[tick] in kept}
    return evolve(best, not_nested=_with_reasons(lowered, left).not_nested), plain


def _with_reasons(lowered: Lowered, refusals: Mapping[int, NestRefusal]) -> Lowered:
    """Returns the calls with the reasons, which are given by tick, in the order of the calls."""
    reasons = tuple(NotNested(call.name, refusals[call.tick]) for call in lowered.calls if call.tick in refusals)
    return evolve(lowered, not_nested=reasons) if reasons else lowered


def _best(lowered: Lowered, nesting: Nesting, overwrite: bool, reuse: bool, alignment: int, *, rounds: int) -> Lowered:
    """Returns the graph with the nesting of fewest bytes alive at once; the same object where none saves any."""
    plain = measure(lowered, overwrite, reuse)
    best, refused = plain, set[int]()
    for number in range(rounds):
        candidate = measure(join(lowered, nesting), overwrite, reuse)
        if candidate.breadth < best.breadth or (best is plain and candidate.breadth == best.breadth):
            best = candidate
        waste = _waste(candidate, nesting)
        if candidate.breadth - sum(waste.values()) < best.breadth:
            filled = fill_holes(nesting, candidate.lowered, candidate.chunks, candidate.problem, alignment)
            best = min(best, measure(join(lowered, filled), overwrite, reuse), key=lambda m: m.breadth)
        if number == rounds - 1 or not waste:
            break
        refused.add(max(waste, key=lambda root: waste[root]))
        nesting = find_sub_buffers(lowered, lambda v: v not in refused, overwrite)
        if not nesting.joins:
            break
    return best.lowered


def _waste(measured: MeasuredNesting, nesting: Nesting) -> dict[int, int]:
    """Returns the unwritten bytes at the peak of each value in which others are nested, where there are any."""
    tick, ids = peak_tick(measured.problem), arena_ids(measured.lowered)
    roots = _alive(measured, nesting.roots, ids, tick)
    waste = {root: _unwritten(measured, root, tick) for root in sorted(roots)}
    return {root: count for root, count in waste.items() if count > 0}


def _alive(measured: MeasuredNesting, roots: Collection[int], ids: dict[int, int], tick: int) -> list[int]:
    """Returns the roots that are alive in a tick."""
    chunk_of, begin, end = measured.chunks.chunk_of, measured.chunks.begin, measured.chunks.end
    return [root for root in roots if begin[chunk_of[ids[root]]] <= tick < end[chunk_of[ids[root]]]]


def _unwritten(measured: MeasuredNesting, root: int, tick: int) -> int:
    """Returns the bytes of a value that no call up to a tick has written.

    A value that is overwritten has the same offset as its overwriter, so the two count once.
    """
    values = measured.lowered.values
    outputs = (values[v] for call in measured.lowered.calls if call.tick <= tick for v in call.outputs)
    written = {value.layout.offset: value.spec.nbytes for value in outputs if value.owner == root}
    return values[root].spec.nbytes - sum(written.values())
