"""The highest tick that shares no tensor with the peak: changes to the tensors at the peak cannot win more."""

import numpy as np
from attrs import frozen

from allocator import bounds
from allocator.problem import Column
from engine.placed import PlacedPlan


@frozen
class OtherPeak:
    """`bytes` are alive there, whatever becomes of the tensors at the peak; `most_saved` is the arena less that.

    Tensors that live as long as the run does, such as parameters, count in both and are no tie between them.
    """

    tick: int
    operator: str
    kind: str
    bytes: int
    most_saved: int


def other_peak(plan: PlacedPlan, chunks: Column) -> OtherPeak:
    """Beside the chunks that are alive at the peak; tick 0 with no bytes where some of them is alive in each tick."""
    problem = plan.problem
    live = bounds.profile(problem)
    horizon = len(live)
    free = np.ones(horizon, bool)
    for chunk in chunks.tolist():
        begin, end = int(problem.begin[chunk]), int(problem.end[chunk])
        if end - begin < horizon:
            free[begin:end] = False
    left = np.where(free, live, 0)
    tick = int(left.argmax()) if horizon else 0
    size = int(left[tick]) if horizon else 0
    return OtherPeak(tick, plan.lowered.tick_name(tick), plan.lowered.tick_kind(tick), size, plan.arena_bytes - size)
