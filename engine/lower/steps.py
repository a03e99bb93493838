"""The memory view of lowered calls: steps that read and write values, for the allocator."""

from collections.abc import Collection, Mapping

from attrs import evolve

from allocator.steps import OverwriteForward, Program, Step, ViewForward
from engine.lower.calls import Alias, Call, Instruction, Join, Lowered
from engine.lower.updates import is_update


def to_program(lowered: Lowered, ids: Mapping[int, int]) -> Program:
    """Returns the steps of calls, aliases and joins, between a feed step and a fetch step.

    What a copy engine copies is read until it is done.
    """
    feed = Step(writes=_arena_values((*lowered.inputs.values(), *lowered.parameters), ids))
    fetch = Step(reads=_arena_values((*lowered.outputs.values(), *lowered.parameters.values()), ids))
    first = lowered.writers
    steps = [_step(instruction, lowered, ids, first) for instruction in lowered.instructions]
    for call in lowered.calls:
        until = next((lowered.engine_copies.get(v, 0) for v in call.outputs), 0)
        if until > call.tick:
            step = steps[until - 1]
            held = _arena_values(call.inputs, ids)
            steps[until - 1] = evolve(step, reads=tuple(dict.fromkeys(step.reads + held)))
    sizes = [0] * len(ids)
    for value in lowered.values:
        if value.id in ids:
            low, high = value.layout.extent
            sizes[ids[value.id]] = high - low
    return Program((feed, *steps, fetch), tuple(sizes))


def _arena_values(values: Collection[int], ids: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(ids[v] for v in values if v in ids))


def _step(instruction: Instruction, lowered: Lowered, ids: Mapping[int, int], first: Mapping[int, int]) -> Step:
    if isinstance(instruction, Alias):
        return _alias_step(instruction, lowered, ids)
    if isinstance(instruction, Join):
        return Step(reads=_arena_values(instruction.inputs, ids), views=_nested(instruction, lowered, ids))
    return _call_step(instruction, lowered, ids, first)


def _alias_step(instruction: Alias, lowered: Lowered, ids: Mapping[int, int]) -> Step:
    if instruction.inputs[0] not in ids:
        return Step()
    low = lowered.values[instruction.inputs[0]].layout.extent[0]
    outputs = (lowered.values[v] for v in instruction.outputs)
    views = tuple(ViewForward(ids[v.id], ids[instruction.inputs[0]], v.layout.extent[0] - low) for v in outputs)
    return Step(views=views)


def _nested(instruction: Instruction, lowered: Lowered, ids: Mapping[int, int]) -> tuple[ViewForward, ...]:
    """Returns outputs and workspaces that lie inside other values, as views of these."""
    written = instruction.outputs + (instruction.workspace if isinstance(instruction, Call) else ())
    outputs = (lowered.values[v] for v in written if lowered.values[v].is_view)
    return tuple(ViewForward(ids[v.id], ids[v.owner], v.layout.extent[0]) for v in outputs if v.owner in ids)


def _call_step(instruction: Call, lowered: Lowered, ids: Mapping[int, int], first: Mapping[int, int]) -> Step:
    """Returns the step of a call. Bytes that several calls write count as written by the first of them."""
    reads = _arena_values(instruction.inputs, ids)
    owners = [lowered.values[v].owner for v in instruction.outputs + instruction.workspace]
    writes = _arena_values([v for v in owners if first[v] == instruction.tick], ids)
    pairs = [(instruction.outputs[o.output], instruction.inputs[o.input], o.offset) for o in instruction.overwrites]
    taken = tuple(OverwriteForward(ids[out], ids[src], at, is_update(lowered, src, out)) for out, src, at in pairs)
    return Step(reads, writes, _nested(instruction, lowered, ids), taken)
