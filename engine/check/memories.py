"""The judge of plans in several memories. It believes no problem, only where each memory and each weight lies.

- The memories lie behind each other in the arena, none longer than its capacity.
- Each value lies in one memory; what a call or the feed writes, and each parameter, lies in one that can be written.
- Each constant of the graph lies in one memory, with all its bytes, within the capacity. It shares no byte with a value
  of the arena, and with another constant only if both are one array.
- What owns its bytes lies at a multiple of the alignment of its memory, counted from the first byte of that memory;
  what is written over an input, or inside another value, lies where that one makes it lie.
- Each value lies where the rules let it lie; copies of constants in the arena may lie anywhere.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from attrs import frozen

from engine.check.plans import PlanLike
from engine.graph.deferred import Deferred, Entry
from engine.lower.calls import Lowered, Role, Storage
from engine.text.errors import PlacementError
from ops.tensor.layout import address_of


@frozen
class Room:
    """A memory, which has bytes [low, high) of the arena.

    `weights` has each constant value in it, with its first byte, counted from `low`.
    """

    name: str
    low: int
    high: int
    capacity: int
    alignment: int
    is_writable: bool
    weights: tuple[tuple[int, int], ...]


def check_memories(plan: PlanLike, rooms: Sequence[Room], rules: Iterable[tuple[str, str]] = ()) -> None:
    """Raises PlacementError with the first value, or memory, that is not as it should be.

    `rules` are those of the options: a pattern, and the name of a memory, with "!" before it to keep out of it.
    """
    for one, other in pairwise(rooms):
        if one.high > other.low:
            raise PlacementError(f"memory {one.name!r} ends at byte {one.high} of the arena, in {other.name!r}")
    for room in rooms:
        if not 0 <= room.low <= room.high or room.high - room.low > room.capacity:
            end = room.high - room.low
            raise PlacementError(f"memory {room.name!r} has {room.capacity} bytes, and is taken up to byte {end}")
    memory_of = _check_constants(plan.lowered, rooms) | _check_values(plan, rooms)
    for pattern, where in rules:
        _check_rule(plan.lowered, memory_of, pattern, where)


def _check_values(plan: PlanLike, rooms: Sequence[Room]) -> dict[int, str]:
    """Checks values of the arena that have bytes. Returns the name of the memory of each."""
    written, over, memory_of = _written(plan), _written_over(plan), dict[int, str]()
    weights = {room.name: _ranges(plan.lowered, room) for room in rooms}
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
        first = bisect_left(weights[room.name], (high - room.low,))
        if first and weights[room.name][first - 1][1] > low - room.low:
            raise PlacementError(f"{lies}, on a weight in {room.name!r}")
        memory_of[value.id] = room.name
    return memory_of


def _check_constants(lowered: Lowered, rooms: Sequence[Room]) -> dict[int, str]:
    """Checks the constants against each other, and that each lies in one memory. Returns its name for each."""
    memory_of = dict[int, str]()
    for room in rooms:
        for value, first in room.weights:
            if value in memory_of or lowered.values[value].storage is not Storage.CONSTANT:
                raise PlacementError(
                    f"memory {room.name!r} has {lowered.values[value].name!r}, which is not its weight"
                )
            memory_of[value] = room.name
            end = first + _array(lowered, value).nbytes
            if first < 0 or first % room.alignment or end > room.capacity:
                place = f"in bytes [{first}, {end}) of {room.name!r}"
                raise PlacementError(
                    f"{lowered.values[value].name!r} lies {place}: {room.capacity} bytes, alignment {room.alignment}"
                )
        for (_, end), (first, _) in pairwise(_ranges(lowered, room)):
            if end > first:
                raise PlacementError(f"memory {room.name!r} has two weights at byte {first}")
    for constant in lowered.values:
        if constant.storage is Storage.CONSTANT and constant.id not in memory_of:
            raise PlacementError(f"the weight {constant.name!r} lies in no memory")
    return memory_of


def _ranges(lowered: Lowered, room: Room) -> list[tuple[int, int]]:
    """Returns the bytes [first, end) of each array in a memory, in order; arrays that are the same count once."""
    arrays = {}
    for value, first in room.weights:
        array = _array(lowered, value)
        key = id(array) if isinstance(array, Deferred) else address_of(array)
        arrays[first, array.nbytes, key] = first, first + array.nbytes
    return sorted(place for place in arrays.values() if place[0] < place[1])


def _array(lowered: Lowered, value: int) -> Entry:
    """Returns the array of a constant as the model has it: a copy that lowering made for a kernel stands for it."""
    owner, entries = lowered.values[lowered.values[value].owner], lowered.constants.entries
    if owner.name != owner.source:
        return next((entries[c] for c in entries if lowered.values[c].name == owner.source), entries[owner.id])
    return entries[owner.id]


def _check_rule(lowered: Lowered, memory_of: Mapping[int, str], pattern: str, where: str) -> None:
    """Checks a rule for each value that lies in a memory and is called as the pattern says."""
    is_forbidden, memory = where.startswith("!"), where.removeprefix("!")
    constants = {var.name for var in lowered.graph.constants}
    values = [lowered.values[v] for v in memory_of]
    ruled = [v for v in values if v.storage is Storage.CONSTANT or v.source not in constants]
    names = {value.id: {value.name, value.source} for value in ruled}
    for instruction in lowered.instructions:
        for value in names.keys() & set(instruction.outputs):
            names[value].add(instruction.name)
    for value, called in names.items():
        name = memory_of[value]
        is_meant = pattern in _kinds(lowered, value) or any(fnmatchcase(n, pattern) for n in called)
        if is_meant and (name == memory) == is_forbidden:
            tensor = lowered.values[value].name
            raise PlacementError(f"{tensor!r} lies in {name!r}, against the rule {pattern!r}: {where!r}")


def _kinds(lowered: Lowered, value: int) -> Iterable[str]:
    """Yields the words for kinds of tensors that fit a value."""
    if value in lowered.inputs.values():
        yield "inputs"
    if value in lowered.outputs.values():
        yield "outputs"
    if value in lowered.parameters or value in lowered.parameters.values():
        yield "parameters"
    if lowered.values[value].storage is Storage.CONSTANT:
        yield "constants"
    if lowered.values[value].role is Role.WORKSPACE:
        yield "workspaces"


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
