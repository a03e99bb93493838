"""Tensors that stay alive after a stage lie low and close together, so that later stages have larger free ranges."""

from collections.abc import Mapping, Sequence

from attrs import evolve

from engine.lower.calls import Lowered
from engine.planning.deadline import Deadline
from engine.planning.options import Options
from engine.planning.placed import PlacedPlan
from engine.planning.planner import plan_lowered
from engine.planning.reserved import BOUNDARY_BYTES, Reserved

SMALL_PARTS = 64
"""A tensor with less than this part of all bytes that stay alive counts as small, and lies lowest.

Between large tensors it would split the free range that they leave. The number trades the arena of the next stages
against that of this one; tools/bench_stages.py shows both.
"""


def plan_compacted(
    lowered: Lowered, options: Options, capacity: int, reserved: Reserved, last_use: Mapping[int, int]
) -> PlacedPlan:
    """Plans a stage so that the values that stay alive lie as low as they can without a larger arena.

    `last_use` maps each such value to the task that uses it last. The first to die lie on top, so that their bytes
    become one hole with the free range above. Where that takes a larger arena, the largest values lie lowest.
    """
    deadline, ways = Deadline.of(options), 1 + 2 * bool(last_use)

    def planned(within: Reserved, left: int) -> PlacedPlan:
        return evolve(plan_lowered(lowered, deadline.within(options, left), capacity, within), options=options)

    plan = planned(reserved, ways)
    movable = [v for v in last_use if v not in reserved.pinned and _is_alone(plan, v)]
    if not movable:
        return plan
    sizes = {v: int(plan.problem.size[plan.chunk_of(v)]) for v in movable}
    small = sum(sizes.values()) // SMALL_PARTS
    by_size = sorted(movable, key=lambda v: (sizes[v] > small, -sizes[v], v))
    by_last_use = sorted(by_size, key=lambda v: (sizes[v] > small, -last_use[v]))
    for left, order in zip((2, 1), dict.fromkeys((tuple(by_last_use), tuple(by_size))), strict=False):
        pins = _stacked(plan, order, reserved)
        if all(_span(plan, v)[0] == at for v, at in pins.items()):
            return plan
        lower = planned(Reserved({**reserved.pinned, **pins}, reserved.boundaries), left)
        if lower.arena_bytes <= plan.arena_bytes:
            return lower
    return plan


def _is_alone(plan: PlacedPlan, value: int) -> bool:
    """Returns whether a value has a chunk that overwrites none and is overwritten by none."""
    if value not in plan.ids:
        return False
    chunk = plan.chunk_of(value)
    return chunk not in plan.problem.src and chunk not in plan.problem.dest and plan.problem.size[chunk] > 0


def _stacked(plan: PlacedPlan, values: Sequence[int], reserved: Reserved) -> dict[int, int]:
    """Returns an offset for each value, one after the other: the lowest at which it overlaps no fixed range."""
    horizon = int(plan.problem.end.max())
    fixed = [(*_span(plan, v), 0, _free_at(plan, v, horizon)) for v in reserved.pinned]
    fixed += [(boundary, boundary + BOUNDARY_BYTES, 0, horizon) for boundary in reserved.boundaries]
    pins: dict[int, int] = {}
    for value in values:
        chunk, (begin, end) = plan.chunk_of(value), _lifetime(plan, value)
        size, alignment, at = int(plan.problem.size[chunk]), int(plan.problem.alignment[chunk]), 0
        for low, high, first, last in sorted(fixed):
            if first < end and begin < last and low < at + size and at < high:
                at = -(-high // alignment) * alignment
        pins[value] = at
        fixed.append((at, at + size, begin, end))
    return pins


def _free_at(plan: PlacedPlan, value: int, horizon: int) -> int:
    """Returns the tick at which the bytes of a value are free: a chunk that overwrites it may live to the end."""
    return horizon if plan.chunk_of(value) in plan.problem.dest else _lifetime(plan, value)[1]


def _span(plan: PlacedPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    low = int(plan.plan.offset[chunk])
    return low, low + int(plan.problem.size[chunk])


def _lifetime(plan: PlacedPlan, value: int) -> tuple[int, int]:
    chunk = plan.chunk_of(value)
    return int(plan.problem.begin[chunk]), int(plan.problem.end[chunk])
