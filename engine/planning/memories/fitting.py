"""Plans that fit only with copies: a tensor leaves a memory while others need its room, or is computed again.

Calls are planned in their memories and in one more, which is so slow that as little as possible lies there. Routes then
take away what does: they find a way through the other memories, where there is one by load. The calls with these copies
are planned in the memories as they are. Addresses lose some bytes, so that routes may have a little less room, too.
"""

import time
from collections.abc import Iterator

from attrs import evolve

from allocator.memories.memory import LEAST_BANDWIDTH, Memory
from allocator.memories.units import Units
from allocator.policies import LEVELS
from allocator.progress import Activity
from engine.lower.calls import Lowered
from engine.lower.memories import NOT
from engine.planning.memories.moving import Moving, Plan, Uses
from engine.planning.memories.placed import InMemories
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.text.errors import BudgetError, UndecidedError
from engine.text.names import free_name

LOST = (0, 32, 12)
"""The parts of each memory, as 1 / n, that addresses may lose: nothing at first."""
_SLOWER = 1e4
"""How much slower the memory is that there is not."""


def plan_with_copies(
    lowered: Lowered, options: Options, plan: Plan, until: float, *, recompute: bool = True
) -> PlacedPlan | None:
    """Returns a plan in which tensors change their memory, or are computed again, so that all of them fit.

    None where none is found until `until`, by time.monotonic(). Nothing is proved then.
    """
    if options.parallel == LEVELS or not options.reuse:
        return None
    with Activity("making room in memories"):
        for moving in _relaxed(lowered, options, plan, until):
            for again in (False, True)[: 1 + recompute]:
                visits = moving.uses.visits(again=again)
                fitting = moving.first_that_fits(visits) if visits.again or not again else None
                if fitting is not None:
                    return fitting
    return None


def _relaxed(lowered: Lowered, options: Options, plan: Plan, until: float) -> Iterator[Moving]:
    """Yields plans of the calls in memories with one more, each with a little less room in the others."""
    name = free_name("elsewhere", {memory.name for memory in options.board})
    slowest = min(min(memory.read_bandwidth, memory.write_bandwidth) for memory in options.board)
    bandwidth = max(slowest / _SLOWER, LEAST_BANDWIDTH)
    size = sum(value.spec.nbytes for value in lowered.values)
    elsewhere = Memory(name, 2 * size + (1 << 30), bandwidth, bandwidth)
    ruled = tuple((pattern, f"{NOT}{name}") for pattern, _ in options.place)
    for lost in LOST:
        board = [evolve(m, capacity=m.capacity - (m.capacity // lost if lost else 0)) for m in options.board]
        wider = evolve(
            options,
            target=evolve(options.target, memories=()),
            memories=(*board, elsewhere),
            place=(*options.place, *ruled),
            timeout=max(until - time.monotonic(), 0.0),
        )
        try:
            plain = plan(lowered, wider)
        except (BudgetError, UndecidedError):
            return
        (memories,) = plain.memories
        units = Units.of(memories.problem)
        if not units.can[:, :-1].any(axis=1).all() or _least(lowered, memories) > sum(m.capacity for m in board):
            return
        yield Moving(plain, options, plan, until, Uses.of(lowered, memories, units), 0.0)


def _least(lowered: Lowered, memories: InMemories) -> int:
    """Returns bytes that memories have to have whatever is copied: those of weights, and of what one call reads."""
    row_of, sizes = memories.contents.row_of, memories.problem.chunks.size
    inputs = [{row_of[v] for v in call.inputs if v in row_of} for call in lowered.calls]
    chunks = [sum(int(sizes[row]) for row in rows if row < memories.contents.chunks) for rows in inputs]
    return int(memories.contents.sizes.sum()) + max(chunks, default=0)
