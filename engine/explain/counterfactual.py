"""What the arena would be if nothing had been in the way of an overwrite: the same problem with one overwrite more.

What is overwritten ends there, so all of its later readers are thought away, not just a part of the bytes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from allocator import bounds, solvers
from allocator.derive.overwrites import Refusal
from allocator.problem import FREE, Problem
from engine.explain.refusals import Forward
from engine.planning.placed import PlacedPlan

NODES = 1_000
"""Steps of a search for each such arena."""
MOST = 8
"""Overwrites that are measured, the largest; the others are only told."""
MOST_CHUNKS = 20_000
"""Of a problem that is solved again for each of them."""
_WISHED = frozenset({Refusal.LATER.value, Refusal.BESIDE.value, Refusal.PROTECTED.value})
"""Reasons that are wishes: the bytes are there and large enough, but needed."""


def measured(plan: PlacedPlan, forwards: Sequence[Forward]) -> tuple[Forward, ...]:
    """With the bytes that each of the largest would save, largest first."""
    ordered = sorted(forwards, key=lambda f: (-f.output_bytes, f.tick, f.input))
    return tuple(
        evolve(f, saves=saving(plan, f)) if i < MOST and is_counterfactual(plan, f) else f
        for i, f in enumerate(ordered)
    )


def is_counterfactual(plan: PlacedPlan, forward: Forward) -> bool:
    """Whether the problem with that overwrite is one: chunks that have no other, calls one after the other."""
    problem, src, dest = plan.problem, forward.output_chunk, forward.input_chunk
    if forward.reason not in _WISHED or plan.schedule.policy or len(problem) > MOST_CHUNKS:
        return False
    fits = forward.chunk_offset + problem.size[src] <= problem.size[dest]
    alone = src not in problem.src and dest not in problem.dest and problem.pinned[src] == FREE
    return bool(fits and alone and problem.begin[dest] < problem.begin[src] and problem.begin[src] < problem.end[dest])


def saving(plan: PlacedPlan, forward: Forward) -> int:
    """Bytes by which the arena would be smaller; 0 where the search finds none that is."""
    wished = with_overwrite(plan, forward)
    if bounds.lower_bound(wished) >= plan.arena_bytes:
        return 0
    return max(plan.arena_bytes - solvers.solve(wished, nodes=NODES).arena_bytes, 0)


def with_overwrite(plan: PlacedPlan, forward: Forward) -> Problem:
    """The problem in which the input ends where the output begins, in its bytes."""
    problem, src, dest = plan.problem, forward.output_chunk, forward.input_chunk
    end, alignment = problem.end.copy(), problem.alignment.copy()
    end[dest], alignment[src] = problem.begin[src] + 1, 1
    more: dict[str, Any] = {
        "src": np.append(problem.src, src),
        "dest": np.append(problem.dest, dest),
        "overwrite_offset": np.append(problem.overwrite_offset, forward.chunk_offset),
    }
    return evolve(problem, end=end, alignment=alignment, **more)
