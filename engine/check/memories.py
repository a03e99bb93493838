"""The judge of plans in several memories. It believes no problem, only where each memory lies in the arena.

- The memories lie behind each other in the arena, none longer than its capacity.
- Each value lies in one memory; what a call or the feed writes lies in one that can be written.
- Weights lie behind the arena of their memory, within its capacity, and share no byte.
- What owns its bytes lies at a multiple of the alignment of its memory, counted from the first byte of that memory;
  what is written over an input, or inside another value, lies where that one makes it lie.
"""

from collections.abc import Sequence
from itertools import pairwise

from attrs import frozen

from engine.check.plans import PlanLike
from engine.lower.calls import Storage
from engine.text.errors import PlacementError


@frozen
class Room:
    """A memory, which has bytes [low, high) of the arena.

    `weights` has for each constant in it the first byte, counted from `low`, and the number of bytes.
    """

    name: str
    low: int
    high: int
    capacity: int
    alignment: int
    is_writable: bool
    weights: tuple[tuple[int, int], ...]


def check_memories(plan: PlanLike, rooms: Sequence[Room]) -> None:
    """Raises PlacementError with the first value, or memory, that is not as it should be."""
    for one, other in pairwise(rooms):
        if one.high > other.low:
            raise PlacementError(f"memory {one.name!r} ends at byte {one.high} of the arena, in {other.name!r}")
    for room in rooms:
        _check_weights(room)
    written, over = _written(plan), _written_over(plan)
    for value in plan.lowered.values:
        low, high = plan.places[value.id].layout.extent
        if value.storage is not Storage.ARENA or low == high:
            continue
        lies = f"{value.name!r} lies in bytes [{low}, {high}) of the arena"
        rooms_of = [room for room in rooms if room.low <= low and high <= room.high]
        if not rooms_of:
            raise PlacementError(f"{lies}, which are not those of one memory")
        (room,) = rooms_of
        if value.id in written and not room.is_writable:
            raise PlacementError(f"{lies}, in {room.name!r}, which is read-only")
        is_free = value.id in written - over and not value.is_view
        if is_free and (low - room.low) % room.alignment:
            raise PlacementError(f"{lies}; the alignment of {room.name!r} is {room.alignment}")


def _check_weights(room: Room) -> None:
    end = room.high - room.low
    for first, nbytes in sorted(room.weights):
        if nbytes and (first < end or first % room.alignment):
            raise PlacementError(f"memory {room.name!r} has weights at byte {first}, and is taken up to byte {end}")
        end = max(end, first + nbytes)
    if not 0 <= room.low <= room.high or end > room.capacity:
        raise PlacementError(f"memory {room.name!r} has {room.capacity} bytes, and is taken up to byte {end}")


def _written(plan: PlanLike) -> set[int]:
    lowered = plan.lowered
    calls = (value for call in lowered.calls for value in call.outputs + call.workspace)
    return {*lowered.inputs.values(), *lowered.parameters, *lowered.parameters.values(), *calls}


def _written_over(plan: PlanLike) -> set[int]:
    """Returns the values that are written to bytes of an input of their call."""

    def meet(one: int, other: int) -> bool:
        (low, high), (least, most) = (plan.places[v].layout.extent for v in (one, other))
        return max(low, least) < min(high, most)

    arena = {v.id for v in plan.lowered.values if v.storage is Storage.ARENA}
    pairs = ((out, src) for call in plan.lowered.calls for out in call.outputs for src in call.inputs)
    return {out for out, src in pairs if out in arena and src in arena and meet(out, src)}
