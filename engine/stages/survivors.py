"""What a stage leaves behind lies low and close together where that costs nothing: later stages find more room."""

from collections.abc import Collection

from engine.calls import Lowered
from engine.plan import ExecutionPlan
from engine.planner import Options, plan_lowered
from engine.room import SEAM, Room

CRUMBS = 64
"""Of survivors, what has less than this part of all their bytes is a crumb."""


def plan_with_survivors(
    lowered: Lowered, options: Options, capacity: int, room: Room, survivors: Collection[int]
) -> ExecutionPlan:
    """The plan of a stage, in which the `survivors` (values) end as low as they can without a larger arena."""
    plan = plan_lowered(lowered, options, capacity, room)
    movable = [v for v in survivors if v not in room.pinned and _is_alone(plan, v)]
    if not movable:
        return plan
    pins = _stacked(plan, movable, room)
    if all(_span(plan, v)[0] == at for v, at in pins.items()):
        return plan
    lower = plan_lowered(lowered, options, capacity, Room({**room.pinned, **pins}, room.seams))
    return lower if lower.arena_bytes <= plan.arena_bytes else plan


def _is_alone(plan: ExecutionPlan, value: int) -> bool:
    """Whether a value has a chunk that overwrites none and is overwritten by none."""
    if value not in plan.ids:
        return False
    chunk = plan.chunk_of(value)
    return chunk not in plan.problem.src and chunk not in plan.problem.dest and plan.problem.size[chunk] > 0


def _stacked(plan: ExecutionPlan, values: Collection[int], room: Room) -> dict[int, int]:
    """Each at the lowest address at which it meets nothing that lies fixed: crumbs first, then the largest.

    A crumb that lies between large ones would keep what they leave from becoming one hole.
    """
    horizon = int(plan.problem.end.max())
    fixed = [(*_span(plan, v), 0, _last(plan, v, horizon)) for v in room.pinned]
    fixed += [(seam, seam + SEAM, 0, horizon) for seam in room.seams]
    pins: dict[int, int] = {}
    sizes = {v: int(plan.problem.size[plan.chunk_of(v)]) for v in values}
    crumb = sum(sizes.values()) // CRUMBS
    for value in sorted(values, key=lambda v: (sizes[v] > crumb, -sizes[v], v)):
        size, (begin, end) = sizes[value], _life(plan, value)
        at = 0
        for low, high, first, last in sorted(fixed):
            if first < end and begin < last and low < at + size and at < high:
                at = -(-high // plan.alignment) * plan.alignment
        pins[value] = at
        fixed.append((at, at + size, begin, end))
    return pins


def _last(plan: ExecutionPlan, value: int, horizon: int) -> int:
    """When the bytes of a value are free: what overwrites it may live to the end."""
    return horizon if plan.chunk_of(value) in plan.problem.dest else _life(plan, value)[1]


def _span(plan: ExecutionPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    low = int(plan.plan.offset[chunk])
    return low, low + int(plan.problem.size[chunk])


def _life(plan: ExecutionPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    return int(plan.problem.begin[chunk]), int(plan.problem.end[chunk])
