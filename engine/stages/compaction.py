"""What a stage leaves behind lies low and close together where that costs nothing: later stages find more room."""

from collections.abc import Mapping, Sequence

from engine.lower.calls import Lowered
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_lowered
from engine.planning.reserved import SEAM, Room

CRUMBS = 64
"""Of survivors, what has less than this part of all their bytes is a crumb, and lies lowest.

Between large ones it would keep what they leave from becoming one hole.
"""


def plan_with_survivors(
    lowered: Lowered, options: Options, capacity: int, room: Room, survivors: Mapping[int, int]
) -> PlacedPlan:
    """The plan of a stage, in which the `survivors` (values) end as low as they can without a larger arena.

    They come with the time when they will be needed last: the first to go lie on top, so that what they leave becomes
    one hole with what is free above them. Where that takes a larger arena, the largest ones lie lowest.
    """
    plan = plan_lowered(lowered, options, capacity, room)
    movable = [v for v in survivors if v not in room.pinned and _is_alone(plan, v)]
    if not movable:
        return plan
    sizes = {v: int(plan.problem.size[plan.chunk_of(v)]) for v in movable}
    crumb = sum(sizes.values()) // CRUMBS
    by_size = sorted(movable, key=lambda v: (sizes[v] > crumb, -sizes[v], v))
    by_life = sorted(by_size, key=lambda v: (sizes[v] > crumb, -survivors[v]))
    for order in dict.fromkeys((tuple(by_life), tuple(by_size))):
        pins = _stacked(plan, order, room)
        if all(_span(plan, v)[0] == at for v, at in pins.items()):
            return plan
        lower = plan_lowered(lowered, options, capacity, Room({**room.pinned, **pins}, room.seams))
        if lower.arena_bytes <= plan.arena_bytes:
            return lower
    return plan


def _is_alone(plan: PlacedPlan, value: int) -> bool:
    """Whether a value has a chunk that overwrites none and is overwritten by none."""
    if value not in plan.ids:
        return False
    chunk = plan.chunk_of(value)
    return chunk not in plan.problem.src and chunk not in plan.problem.dest and plan.problem.size[chunk] > 0


def _stacked(plan: PlacedPlan, values: Sequence[int], room: Room) -> dict[int, int]:
    """Each at the lowest address at which it meets nothing that lies fixed, one after the other."""
    horizon = int(plan.problem.end.max())
    fixed = [(*_span(plan, v), 0, _last(plan, v, horizon)) for v in room.pinned]
    fixed += [(seam, seam + SEAM, 0, horizon) for seam in room.seams]
    pins: dict[int, int] = {}
    for value in values:
        size, (begin, end) = int(plan.problem.size[plan.chunk_of(value)]), _life(plan, value)
        at = 0
        for low, high, first, last in sorted(fixed):
            if first < end and begin < last and low < at + size and at < high:
                at = -(-high // plan.alignment) * plan.alignment
        pins[value] = at
        fixed.append((at, at + size, begin, end))
    return pins


def _last(plan: PlacedPlan, value: int, horizon: int) -> int:
    """When the bytes of a value are free: what overwrites it may live to the end."""
    return horizon if plan.chunk_of(value) in plan.problem.dest else _life(plan, value)[1]


def _span(plan: PlacedPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    low = int(plan.plan.offset[chunk])
    return low, low + int(plan.problem.size[chunk])


def _life(plan: PlacedPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    return int(plan.problem.begin[chunk]), int(plan.problem.end[chunk])
