"""The highest tick if the tensors at the peak had no bytes: changes to these alone cannot win more."""

import numpy as np
from attrs import evolve, frozen

from allocator import bounds
from allocator.problem import Column, Problem
from engine.planning.placed import PlacedPlan


@frozen
class OtherPeak:
    """`bytes` are alive there besides the tensors at the peak; `most_saved` is the arena less that.

    Where these are written over, what lies in their bytes then counts; but a parameter and what it holds after the run
    are one. Tick 0 with no bytes where nothing is given back: everything is there at the peak.
    """

    tick: int
    operator: str
    kind: str
    bytes: int
    most_saved: int


def other_peak(plan: PlacedPlan, chunks: Column) -> OtherPeak:
    """Beside the chunks that are alive at the peak."""
    live = bounds.profile(_without(plan.problem, _with_parameters(plan, chunks)))
    tick = int(live.argmax()) if len(live) and plan.options.reuse else 0
    size = int(live[tick]) if len(live) and plan.options.reuse else 0
    return OtherPeak(tick, plan.lowered.tick_name(tick), plan.lowered.tick_kind(tick), size, plan.arena_bytes - size)


def _with_parameters(plan: PlacedPlan, chunks: Column) -> Column:
    """The chunks, and those of the chain in which a parameter among them is updated."""
    root = plan.problem.chains.root
    pairs = ((first, then) for first, then in plan.lowered.parameters.items() if {first, then} <= plan.ids.keys())
    kept = np.array([(plan.chunk_of(first), plan.chunk_of(then)) for first, then in pairs], np.int64).reshape(-1, 2)
    roots = root[kept[np.isin(kept, chunks).any(axis=1)]]
    return np.union1d(chunks, np.flatnonzero(np.isin(root, roots)))


def _without(problem: Problem, chunks: Column) -> Problem:
    """The problem if these had no bytes; what was written over them has its own."""
    size, left = problem.size.copy(), ~np.isin(problem.dest, chunks)
    size[chunks] = 0
    src, dest, offset = problem.src[left], problem.dest[left], problem.overwrite_offset[left]
    return evolve(problem, size=size, src=src, dest=dest, overwrite_offset=offset)
