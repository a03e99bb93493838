"""What a trace tells of several memories: why each chunk and weight lies in its own, and copies between them."""

from collections.abc import Iterator, Sequence

from attrs import evolve

from engine.lower.calls import Call, Value
from engine.planning.memories import InMemories, engine_ticks
from engine.planning.placed import PlacedPlan
from engine.report.memory_choices import Explaining
from engine.trace.details import Details, Move
from ops.movement.copy import COPY


def in_memories(plan: PlacedPlan, details: Details, weights: Sequence[Value]) -> Details:
    """Returns the details of a plan in memories, with reasons, moves, and the places of its `weights`, by value."""
    for placed in plan.memories:
        explaining = Explaining(placed, placed.contents.names(plan.lowered))
        rows = [placed.contents.row_of.get(value.id, placed.contents.count) for value in weights]
        details = evolve(
            details,
            weights=tuple(
                evolve(
                    weight,
                    memory=int(placed.assigned.memory[row]),
                    offset=int(placed.assigned.offset[row]),
                    reason=explaining.reason(row),
                )
                if row < placed.contents.count
                else weight
                for weight, row in zip(details.weights, rows, strict=True)
            ),
            reasons={chunk: explaining.reason(chunk) for chunk in range(placed.contents.chunks)},
            moves=tuple(_moves(plan, placed, rows)),
        )
    return details


def _moves(plan: PlacedPlan, placed: InMemories, weights: Sequence[int]) -> Iterator[Move]:
    """Yields the copies from one memory to another; `weights` are the rows of the weights."""
    by_engine = set(engine_ticks(plan.lowered, (placed,)))
    row_of, memory, number = placed.contents.row_of, placed.assigned.memory, {row: w for w, row in enumerate(weights)}
    for call in plan.lowered.calls:
        if not _copies(call) or not row_of.keys() >= {*call.inputs, *call.outputs}:
            continue
        (source,), (target,) = ([row_of[v] for v in values] for values in (call.inputs, call.outputs))
        is_weight = source >= placed.contents.chunks
        if memory[source] != memory[target] and (not is_weight or source in number):
            beside = call.tick in by_engine
            yield Move(call.tick, target, number[source] if is_weight else source, is_weight, is_beside=beside)


def _copies(call: Call) -> bool:
    """Returns whether a call writes one tensor just as it reads it: the planner added it, or it is that operator."""
    is_plain = all(operator.schema is COPY for operator in call.operators)
    return is_plain and len(call.inputs) == len(call.outputs) == 1
