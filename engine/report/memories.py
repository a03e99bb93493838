"""What a plan in several memories costs: the bytes in each, and the time of all transfers."""

import math
from collections.abc import Iterable

from attrs import evolve, frozen

from allocator.memories.plan import MemoryPlan
from engine.planning import memories as in_memories
from engine.planning.placed import PlacedPlan
from engine.text.screen import UNBOUNDED
from engine.text.tables import indented_table
from engine.text.units import counted, format_bytes, format_small_seconds


@frozen
class PlacedWeight:
    """A weight in a memory: its first byte there, and its bytes. Weights with the same bytes count once."""

    name: str
    offset: int
    bytes: int


@frozen
class MemoryShare:
    """What lies in one memory. Sizes in bytes.

    `start`: its first byte in the arena of the plan, in which the memories lie behind each other.
    `arena_bytes`: the arena of its chunks, which no plan of these chunks makes smaller than `lower_bound`.
    `weights_bytes`: constants that lie in it; `weights` has them in the order of addresses. `used_bytes`: arena and
    weights, with what alignment costs. `peak_bytes`: the most bytes of chunks and constants alive in one tick.
    `seconds`: the time of its transfers.
    """

    name: str
    capacity: int
    start: int
    arena_bytes: int
    lower_bound: int
    weights_bytes: int
    used_bytes: int
    peak_bytes: int
    seconds: float
    weights: tuple[PlacedWeight, ...]


@frozen
class TensorMove:
    """A copy of a tensor from one memory into another: its bytes, and the tick of the call that makes it.

    `is_beside`: a copy engine makes it beside other calls.
    """

    tensor: str
    leaves: str
    enters: str
    bytes: int
    tick: int
    is_beside: bool


@frozen
class TensorAgain:
    """A tensor that is dropped and computed again: the memory that it then comes to, its bytes, and the tick."""

    tensor: str
    memory: str
    bytes: int
    tick: int


@frozen
class SimpleWay:
    """What the transfers of a simple way to choose memories take; where it finds no place for all, it does not fit."""

    name: str
    fits: bool
    seconds: float


@frozen
class Transfers:
    """The time of all transfers of a run, by the bandwidths and latencies of the memories, in seconds.

    No choice of memories takes less than `lower_bound`. `gap` is the part of `seconds` that may be too much. `status`
    is "optimal" where that is nothing. `strategy` chose the memories; `baselines` are what simple ways take.

    `moves` are the copies between memories, in the order of ticks, with `moved_bytes` in all. They are calls like all
    others, for which the bound and what simple ways take are, too. So are the calls that compute `recomputed` tensors
    again; all of these times have that of their operations, too, `recompute_seconds`. `unmoved_seconds`: what transfers
    take without all of them; 0 where nothing fits then.

    Where a copy engine makes copies beside calls, `seconds` has what calls wait for them, `waiting_seconds`, and not
    the time that all of them take, `copy_seconds`; the bound, the simple ways and the memories count no time of them.
    """

    seconds: float
    lower_bound: float
    gap: float
    status: str
    strategy: str
    baselines: tuple[SimpleWay, ...]
    memories: tuple[MemoryShare, ...]
    moves: tuple[TensorMove, ...]
    moved_bytes: int
    recomputed: tuple[TensorAgain, ...]
    recompute_seconds: float
    unmoved_seconds: float
    copy_seconds: float
    waiting_seconds: float


def transfers_of(plan: PlacedPlan) -> tuple[Transfers, ...]:
    """Returns what the memories of a plan cost; nothing where there is one arena."""
    if not plan.memories:
        return ()
    moves, times, seconds, again = moves_of(plan), plan.copy_times, plan.transfer_seconds, plan.again_seconds
    pairs = [(placed, _with_operations(placed.assigned, again)) for placed in plan.memories]
    return tuple(
        Transfers(
            seconds=seconds,
            lower_bound=assigned.bound,
            gap=assigned.gap_at(seconds),
            status=assigned.status_at(seconds),
            strategy=assigned.strategy,
            baselines=tuple(
                SimpleWay(way.name, way.cost < math.inf, way.cost if way.cost < math.inf else 0.0)
                for way in assigned.baselines
            ),
            memories=tuple(
                MemoryShare(
                    name=use.memory.name,
                    capacity=use.memory.capacity,
                    start=placed.starts[m],
                    arena_bytes=part.arena_bytes,
                    lower_bound=part.lower_bound,
                    weights_bytes=placed.constant_bytes(m),
                    used_bytes=use.plan.arena_bytes,
                    peak_bytes=use.peak,
                    seconds=use.cost,
                    weights=_weights(placed, m, plan),
                )
                for m, (use, part) in enumerate(zip(assigned.uses, placed.parts, strict=True))
            ),
            moves=moves,
            moved_bytes=sum(move.bytes for move in moves),
            recomputed=recomputed_of(plan),
            recompute_seconds=again,
            unmoved_seconds=next((moved.plain_seconds for moved in plan.moved), seconds),
            copy_seconds=times.seconds,
            waiting_seconds=times.waiting,
        )
        for placed, assigned in pairs
    )


def _with_operations(assigned: MemoryPlan, seconds: float) -> MemoryPlan:
    """Returns what a plan, its bound and simple ways cost with operations that take so long, wherever tensors lie."""
    ways = tuple(evolve(way, cost=way.cost + seconds) for way in assigned.baselines)
    return evolve(assigned, cost=assigned.cost + seconds, bound=assigned.bound + seconds, baselines=ways)


def moves_of(plan: PlacedPlan) -> tuple[TensorMove, ...]:
    """Returns the copies that the planner made of tensors from one memory into another."""
    copies = {copy for moved in plan.moved for copy in moved.values}
    calls = [call for call in plan.lowered.calls if not call.operators and not copies.isdisjoint(call.outputs)]
    names = [memory.name for placed in plan.memories for memory in placed.memories]
    beside = set(in_memories.engine_ticks(plan.lowered, plan.memories))
    moves = []
    for call in calls:
        source, copy = (plan.lowered.values[v] for v in (*call.inputs, *call.outputs))
        leaves, enters = (
            names[int(placed.assigned.memory[placed.contents.row_of[v.id]])]
            for placed in plan.memories
            for v in (source, copy)
        )
        moves.append(
            TensorMove(source.source, leaves, enters, copy.spec.nbytes, call.tick, is_beside=call.tick in beside)
        )
    return tuple(moves)


def recomputed_of(plan: PlacedPlan) -> tuple[TensorAgain, ...]:
    """Returns the tensors that are computed again between memories, in the order of ticks."""
    computed, tensors = {copy for moved in plan.moved for copy in moved.values}, list[TensorAgain]()
    for call in plan.lowered.calls:
        for value in (plan.lowered.values[v] for v in call.outputs if call.operators and v in computed):
            memory = plan.memory_of(plan.chunk_of(value.id))
            tensors.append(TensorAgain(value.source, memory, value.spec.nbytes, call.tick))
    return tuple(tensors)


def _weights(placed: "in_memories.InMemories", memory: int, plan: PlacedPlan) -> tuple[PlacedWeight, ...]:
    values, chunks = plan.lowered.values, placed.contents.chunks
    rows = sorted(placed.rows_in(memory, constants=True).tolist(), key=lambda row: int(placed.assigned.offset[row]))
    owners = [values[placed.contents.constants[row - chunks]] for row in rows]
    return tuple(
        PlacedWeight(owner.source or owner.name, int(placed.assigned.offset[row]), int(placed.problem.chunks.size[row]))
        for row, owner in zip(rows, owners, strict=True)
    )


def memory_table(transfers: Iterable[Transfers], width: int = UNBOUNDED) -> list[str]:
    """Returns a table of the memories, below what all transfers take; no line where there is one arena."""
    lines = []
    for each in transfers:
        seconds, least = format_small_seconds(each.seconds), format_small_seconds(each.lower_bound)
        proved = f"no choice{' for these calls' if each.moves or each.recomputed else ''} takes less"
        proved += f" than {least}, gap {each.gap:.1%}" if each.gap else ""
        lines.append(f"transfers take {seconds}: {proved}; memories chosen by {each.strategy}, {each.status}")
        lines += _move_lines(each)
        lines += [f"  {way.name}: {_compared(way, each.seconds - each.waiting_seconds)}" for way in each.baselines]
        head = ("memory", "capacity", "used", "arena", "lower bound", "weights", "peak", "transfers")
        rows = [
            (share.name, *map(format_bytes, _sizes(share)), format_small_seconds(share.seconds))
            for share in each.memories
        ]
        lines += indented_table(head, rows, range(1, len(head)), width)
    return lines


def _move_lines(transfers: Transfers) -> list[str]:
    if not transfers.moves and not transfers.recomputed:
        return []
    moved = f"{counted(len(transfers.moves), 'move')} between memories, {format_bytes(transfers.moved_bytes)}"
    again = f"{counted(len(transfers.recomputed), 'tensor')} computed again"
    done = " and ".join([moved] * bool(transfers.moves) + [again] * bool(transfers.recomputed))
    without = SimpleWay("", fits=transfers.unmoved_seconds > 0, seconds=transfers.unmoved_seconds)
    lines = [f"  {done}; without: {_compared(without, transfers.seconds)}"]
    if transfers.copy_seconds:
        taken, waiting = map(format_small_seconds, (transfers.copy_seconds, transfers.waiting_seconds))
        lines.append(f"  copies take {taken} beside calls, which wait {waiting} for them")
    return lines


def _sizes(share: MemoryShare) -> tuple[int, ...]:
    sizes = share.capacity, share.used_bytes, share.arena_bytes, share.lower_bound, share.weights_bytes
    return *sizes, share.peak_bytes


def _compared(way: SimpleWay, seconds: float) -> str:
    if not way.fits:
        return "finds no place for everything"
    more = f", {way.seconds / seconds - 1:.1%} more" if way.seconds > seconds > 0 else ""
    return f"{format_small_seconds(way.seconds)}{more}"
