"""Quick strategies: those that a problem's size and features allow, the cheapest first."""

import math
import time
from collections.abc import Iterator, Sequence

from attrs import evolve

from allocator.interrupts import current_stop
from allocator.problem import Problem, align_up
from allocator.progress import current
from allocator.solvers.base import Answer, Solver, SolverOptions, arena_bytes, unsupported_reason
from allocator.solvers.first_fit import FIRST_FIT, FIRST_FIT_BY_BEGIN
from allocator.solvers.greedy import GREEDY_BY_BREADTH, GREEDY_BY_SIZE
from allocator.solvers.megengine import PUSHDOWN_SORTED
from allocator.solvers.mirrored import mirrored
from allocator.solvers.naive import NAIVE
from allocator.solvers.placing.conflicts import count_conflicts
from allocator.solvers.strip_packing import STRIP_PACKING_BESTFIT, STRIP_PACKING_COVER

COVER = evolve(STRIP_PACKING_COVER, nodes=240_000, meetings=40_000_000)
"""Ends within two seconds, and leaves to the searches what has no place then, if first fit needs more than half one."""
_QUICK: tuple[Solver, ...] = (
    PUSHDOWN_SORTED,
    STRIP_PACKING_BESTFIT,
    GREEDY_BY_SIZE,
    GREEDY_BY_BREADTH,
    COVER,
    FIRST_FIT,
    NAIVE,
)
"""The cheapest first: the first that meets the goal is the last."""
_PACKED = evolve(STRIP_PACKING_BESTFIT, traits=evolve(STRIP_PACKING_BESTFIT.traits, most_chunks=200_000))
"""Takes a tenth of the time of COVER up to here, and some seconds for a million chunks."""
_QUICK_AND_LARGE: tuple[Solver, ...] = (PUSHDOWN_SORTED, _PACKED)
"""The same for large problems; COVER comes next where these have no blocks. Where none of them fits, FIRST_FIT."""
_LARGE, _MANY_MEETINGS = 50_000, 1_000_000
"""Chunks, and pairs of them that meet, from which on few quick strategies are enough: in the time of another one,
ejection search gets further."""
_SECONDS_OF_CHUNK, _FEW_ALIVE = 3e-6, 200
"""With less time for each chunk of a large problem, a search from first fit by begin gets further than from the others.
That takes a quarter of their time where so many chunks, or fewer, meet each one that begins."""
_CHUNKS_OF_NODE, _MEETINGS_OF_NODE = 2, 100
"""Chunks and pairs that meet which the other quick strategies handle in the time of one node of a search."""


def quickest(problem: Problem, options: SolverOptions, solvers: Sequence[Solver], best: Answer | None = None) -> Answer:
    """Returns the smallest arena of some strategies and of a plan (ties: the first), with the nodes of all of them."""
    arena, seen = math.inf if best is None else arena_bytes(problem, best.offset), current()
    best = best or Answer(())
    spent = best.nodes
    nodes = 0 if options.is_limited else len(problem) // _CHUNKS_OF_NODE + count_conflicts(problem) // _MEETINGS_OF_NODE
    for solver in solvers:
        if arena < math.inf and is_last(arena, options):
            break
        seen.item = f"by {solver.name}"
        for answer in _answers(problem, options, solver):
            spent += answer.nodes or nodes
            if arena_bytes(problem, answer.offset) < arena:
                seen.best = arena = arena_bytes(problem, answer.offset)
                current_stop().has_plan = True
                best = Answer(answer.offset, answer.lower_bound, solver.name)
    return evolve(best, nodes=spent)


def _answers(problem: Problem, options: SolverOptions, solver: Solver) -> Iterator[Answer]:
    """Yields the answer of a solver, and one from above where that has the cells of the goal, but not its bytes."""
    answer = solver.solve(problem, options)
    yield answer
    arena = arena_bytes(problem, answer.offset)
    if is_last(arena, options) or arena > align_up(options.goal, int(problem.alignment.max(initial=1))):
        return
    mirror = mirrored(problem, options.goal)
    if mirror is not None and fits(mirror.problem, solver):
        answer = solver.solve(mirror.problem, evolve(options, goal=mirror.goal))
        yield Answer(mirror.offsets(answer.offset), nodes=answer.nodes)


def is_last(arena: float, options: SolverOptions) -> bool:
    """Returns whether a plan of this arena meets the goal, the time is over, or somebody asks to stop."""
    return arena <= options.goal or current_stop().is_asked or time.monotonic() >= options.until


def suitable(problem: Problem, options: SolverOptions) -> list[Solver]:
    """Returns the quick strategies for a problem, and for the time that the options leave."""
    if is_hurried(problem, options):
        return [FIRST_FIT_BY_BEGIN]
    solvers = _QUICK_AND_LARGE if is_large(problem) else _QUICK
    return [solver for solver in solvers if fits(problem, solver)] or [FIRST_FIT]


def is_hurried(problem: Problem, options: SolverOptions) -> bool:
    """Returns whether first fit by begin is as much as the time allows, and quick: few chunks are alive at once."""
    is_short = len(problem) >= _LARGE and options.until - time.monotonic() < _SECONDS_OF_CHUNK * len(problem)
    if not is_short or not fits(problem, FIRST_FIT_BY_BEGIN):
        return False
    return count_conflicts(problem) <= _FEW_ALIVE * len(problem)


def is_large(problem: Problem) -> bool:
    """Returns whether few quick strategies are enough: those that take no pins and conflicts leave these to others."""
    is_quick = all(fits(problem, solver) for solver in _QUICK_AND_LARGE)
    return len(problem) >= _LARGE or (is_quick and count_conflicts(problem) > _MANY_MEETINGS)


def fits(problem: Problem, solver: Solver) -> bool:
    """Returns whether a solver takes the problem, and is quick enough for its size."""
    return not unsupported_reason(problem, solver) and len(problem) <= solver.traits.most_chunks
