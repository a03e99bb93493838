"""The judge of plans that have the calls of a plan that was judged, with other sizes and addresses.

The judge of data flow replays calls on bytes. Its verdict depends on sizes and addresses in one way only: on which
values share bytes. So the pairs that must not share any are found once, from the calls of a plan that it has judged; no
lifetime, chunk or offset is believed. The rules are stricter than the replay, as a value keeps all bytes of its owner
until any of them is read last:

- From the call that writes a value to the last call that reads it, or a view of it, no other call writes to its bytes.
- What a call writes shares no byte with what else it writes, nor with what it reads.
- Except where the operator permits that very overwrite: the two may begin as far apart as it says.
- A view lies inside its owner, and all lie inside the arena.
- What overwrites nothing lies at a multiple of the alignment and of the bytes of an element, with padding behind it.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from engine.lower.calls import Call, Lowered, Role, Storage, Value
from engine.text.errors import DataFlowError, PlacementError
from ops.schema.workspace import STEP

Column = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.int64]
"""Two columns: values, by id."""


def _table(rows: Sequence[tuple[int, ...]], width: int) -> Any:
    return np.array(rows, np.int64).reshape(len(rows), width).T


@frozen(eq=False)
class OverlapRules:
    """`apart` are pairs of values that share no byte; `overwrites` are values that are written, the values read whose
    bytes they may take, and the bytes between the first bytes of the two; `views` are views with their owners;
    `aligned` are the values that own bytes, with the alignment of each; `padding` bytes lie behind each of these.
    """

    lowered: Lowered
    arena: Column
    apart: Pairs = field(repr=False)
    overwrites: Pairs = field(repr=False)
    views: Pairs = field(repr=False)
    aligned: Pairs = field(repr=False)
    padding: int


def overlap_rules(lowered: Lowered, alignment: int, padding: int) -> OverlapRules:
    """Returns the rules of calls and aliases that run in their order. Values outside of the arena have none.

    Alignment and padding are those that were asked for, in bytes.
    """
    permitted = list(dict.fromkeys(o for call in lowered.calls for o in _permitted(call)))
    free = {(written, read) for written, read, _ in permitted}
    pairs = dict.fromkeys((*_kept(lowered), *_touched(lowered)))
    arena = [v for v in lowered.values if v.storage is Storage.ARENA]
    views = [(v.id, v.owner) for v in arena if v.is_view]
    ids = np.array([v.id for v in arena], np.int64)
    apart = [pair for pair in pairs if pair not in free]
    aligned = [(v.id, _alignment(v, alignment)) for v in arena if not v.is_view]
    return OverlapRules(
        lowered, ids, _table(apart, 2), _table(permitted, 3), _table(views, 2), _table(aligned, 2), padding
    )


def _alignment(value: Value, alignment: int) -> int:
    return max(alignment, STEP if value.role is Role.WORKSPACE else value.spec.dtype.itemsize)


def check_overlaps(rules: OverlapRules, low: Column, high: Column, arena_bytes: int) -> None:
    """Checks the bytes [low, high) of each value, by id. Raises DataFlowError, PlacementError."""
    inside = (low[rules.arena] >= 0) & (high[rules.arena] <= arena_bytes)
    _require(rules, inside, rules.arena, f"lies outside of the arena of {arena_bytes} bytes")
    view, owner = rules.views
    within = ((low[owner] <= low[view]) & (high[view] <= high[owner])) | (low[view] == high[view])
    _require(rules, within, view, "is a view that leaves its owner")
    one, other = rules.apart
    _require(rules, ~_share(low, high, one, other), one, "shares bytes, while both are needed, with", other)
    written, read, distance = rules.overwrites
    taken = _share(low, high, written, read)
    _require(
        rules,
        ~taken | (low[written] - low[read] == distance),
        written,
        "is written otherwise than permitted over",
        read,
    )
    _check_placement(rules, low, high, written[taken])


def _check_placement(rules: OverlapRules, low: Column, high: Column, overwriters: Column) -> None:
    """Checks alignment and padding of the values that overwrite nothing. Raises PlacementError."""
    value, alignment = rules.aligned
    owns = low < high
    owns[overwriters] = False
    own = owns[value]
    wrong = np.flatnonzero(own & (low[value] % alignment != 0))
    if len(wrong):
        row = int(wrong[0])
        name, byte = rules.lowered.values[int(value[row])].name, low[value[row]]
        raise PlacementError(f"{name!r} lies at byte {byte}; the alignment is {alignment[row]}")
    if not rules.padding:  # pairs that share no byte are compared already
        return
    padded = high.copy()
    padded[value[own]] += rules.padding
    one, other = rules.apart
    near = np.flatnonzero(_share(low, padded, one, other) & (low[one] < high[one]) & (low[other] < high[other]))
    if len(near):
        names = (repr(rules.lowered.values[int(column[near[0]])].name) for column in (one, other))
        raise PlacementError(f"there are no {rules.padding} bytes of padding between {' and '.join(names)}")


def _share(low: Column, high: Column, one: Column, other: Column) -> npt.NDArray[np.bool_]:
    shared: npt.NDArray[np.bool_] = np.maximum(low[one], low[other]) < np.minimum(high[one], high[other])
    return shared


def _require(rules: OverlapRules, good: npt.NDArray[np.bool_], values: Column, fault: str, *others: Column) -> None:
    if not good.all():
        row = int(np.argmin(good))
        names = [repr(rules.lowered.values[int(column[row])].name) for column in (values, *others)]
        raise DataFlowError(" ".join((names[0], fault, *names[1:])))


def _in_arena(lowered: Lowered, values: Sequence[int]) -> list[int]:
    return [v for v in values if lowered.values[v].storage is Storage.ARENA]


def _kept(lowered: Lowered) -> Iterator[tuple[int, int]]:
    """Yields each owner with the values that are written between its own call and the last that reads it."""
    last = _last_reads(lowered)
    alive = [v for v in _in_arena(lowered, (*lowered.inputs.values(), *lowered.parameters)) if last.get(v, 0) > 0]
    for call in lowered.calls:
        alive = [v for v in alive if last[v] > call.tick]
        written = _in_arena(lowered, call.outputs + call.workspace)
        yield from product(alive, written)
        alive += [v for v in written if last.get(v, 0) > call.tick]


def _last_reads(lowered: Lowered) -> dict[int, int]:
    """Returns the tick of the last call that reads each owner; those that the caller fetches have one behind all."""
    owner = [v.owner for v in lowered.values]
    last = {owner[v]: call.tick for call in lowered.calls for v in call.inputs}
    fetched = (*lowered.outputs.values(), *lowered.parameters.values())
    return last | {owner[v]: len(lowered.instructions) + 1 for v in fetched}


def _touched(lowered: Lowered) -> Iterator[tuple[int, int]]:
    """Yields pairs of values that one call writes, or writes and reads; those that the caller feeds come first."""
    yield from combinations(_in_arena(lowered, (*lowered.inputs.values(), *lowered.parameters)), 2)
    for call in lowered.calls:
        written = _in_arena(lowered, call.outputs + call.workspace)
        yield from combinations(written, 2)
        yield from product(written, _in_arena(lowered, call.inputs))


def _permitted(call: Call) -> Iterator[tuple[int, int, int]]:
    """Yields the overwrites that lowering allows and the schema declares, at each position of what is overwritten."""
    declared = {o for op in call.operators for o in op.schema.overwrites(op.signature)}
    for overwrite in declared.intersection(call.overwrites):
        written, read = call.outputs[overwrite.output], call.inputs[overwrite.input]
        positions = (i for i, v in enumerate(call.inputs) if v == read)
        alike = {(o.output, o.input) for o in declared if o.offset == overwrite.offset}
        if all((overwrite.output, i) in alike for i in positions):
            yield written, read, overwrite.offset
