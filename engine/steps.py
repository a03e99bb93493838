"""Calls and aliases as memory sees them."""

from collections.abc import Collection, Mapping

from allocator.steps import Overwrite, Program, Step, View
from engine.calls import Alias, Call, Lowered, Stage


def to_program(lowered: Lowered, ids: Mapping[int, int]) -> Program:
    """Calls and aliases as memory sees them, between a feed step and a fetch step."""
    feed = Step(writes=_known(lowered.inputs.values(), ids))
    fetch = Step(reads=_known(lowered.outputs.values(), ids))
    steps = tuple(_step(stage, lowered, ids) for stage in lowered.stages)
    sizes = [0] * len(ids)
    for value in lowered.values:
        if value.id in ids:
            low, high = value.layout.extent
            sizes[ids[value.id]] = high - low
    return Program((feed, *steps, fetch), tuple(sizes))


def _known(values: Collection[int], ids: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(ids[v] for v in values if v in ids))


def _step(stage: Stage, lowered: Lowered, ids: Mapping[int, int]) -> Step:
    if isinstance(stage, Alias):
        return _alias_step(stage, lowered, ids)
    return _call_step(stage, ids)


def _alias_step(stage: Alias, lowered: Lowered, ids: Mapping[int, int]) -> Step:
    if stage.inputs[0] not in ids:
        return Step()
    low = lowered.values[stage.inputs[0]].layout.extent[0]
    found = (lowered.values[v] for v in stage.outputs)
    views = tuple(View(ids[v.id], ids[stage.inputs[0]], v.layout.extent[0] - low) for v in found)
    return Step(views=views)


def _call_step(stage: Call, ids: Mapping[int, int]) -> Step:
    reads = _known(stage.inputs, ids)
    writes = _known(stage.outputs + stage.workspace, ids)
    taken = tuple(
        Overwrite(ids[stage.outputs[o.output]], ids[stage.inputs[o.input]], o.offset) for o in stage.overwrites
    )
    return Step(reads, writes, (), taken)
