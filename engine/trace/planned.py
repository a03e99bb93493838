"""The events of a run as it was planned: one operator after the other, in ticks."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import evolve

from allocator.problem import Column
from engine import trace as tracing
from engine.lower.calls import Call, Instruction, Join, Lowered, Value
from engine.lower.roles import roles_of
from engine.planning.placed import PlacedPlan
from engine.planning.weights import identity, is_copy
from engine.trace.buffers import Buffers, buffers_of
from engine.trace.details import Details, Weight
from engine.trace.event_table import CODE, EventTable, Rows, TensorLabel, label_of, ranks, rows_of
from engine.trace.trace import ALLOC, BEGIN, END, FREE, GROW, OVERWRITE, VIEW

_RANKS = ranks((GROW, FREE, BEGIN, ALLOC, OVERWRITE, VIEW, END))
"""The order of events in a tick: frees before allocations before overwrites (MegEngine's order)."""


def planned_events(plan: PlacedPlan, mode: str) -> EventTable:
    """Returns the events of a run in sequence. Raises OptionError."""
    buffers = buffers_of(plan, mode)
    rows = unordered_rows(buffers)
    return table_of(buffers, rows[np.lexsort((rows["label"], _RANKS[rows["kind"]], rows["tick"]))])


def table_of(buffers: Buffers, rows: Rows) -> EventTable:
    """Returns an event table of rows of `unordered_rows`, with the operators and labels that they refer to."""
    lowered = buffers.plan.lowered
    ticks = range(len(lowered.instructions) + 3)  # outputs are freed in a tick behind all others
    operators = tuple((lowered.tick_name(tick), lowered.tick_kind(tick)) for tick in ticks)
    owners = [buffers.owners[chunk] for chunk in range(len(buffers.chunks))]
    joined = {
        v: operators[instruction.tick]
        for instruction in lowered.instructions
        if isinstance(instruction, Join)
        for v in instruction.outputs
    }
    named, roles = (*owners, *views_of(buffers)), roles_of(lowered)
    labels = (TensorLabel(), *(label_of(v, roles[v.id], joined.get(v.id, ())) for v in named))
    floats, find = buffers.mode == "dynamic", partial(details_of, buffers)
    return EventTable(rows, operators, labels, buffers.offset, buffers.padding, floats=floats, find_details=find)


def unordered_rows(buffers: Buffers) -> Rows:
    """Returns all events, each with its tick. The label of chunk c is c + 1; the labels of views follow."""
    chunks, every = buffers.chunks, np.arange(len(buffers.chunks))
    is_root, is_last = np.ones(len(every), bool), np.ones(len(every), bool)
    is_root[chunks.src], is_last[chunks.dest] = False, False
    arena = rows_of(int(buffers.mode == "static"), kind=CODE[GROW], bytes=buffers.plan.arena_bytes)
    come, taken, go = every[is_root], chunks.src, every[is_last]
    parts = (
        arena,
        _of_chunks(buffers, come, kind=CODE[ALLOC], tick=chunks.begin[come]),
        _of_chunks(buffers, taken, kind=CODE[OVERWRITE], tick=chunks.begin[taken], overwrites=chunks.dest),
        _of_chunks(buffers, go, kind=CODE[FREE], tick=chunks.end[go]),
        _of_views(buffers),
        *(_of_calls(buffers.plan.lowered, kind) for kind in (BEGIN, END)),
    )
    rows = np.concatenate(parts)
    rows["operator"] = rows["tick"]
    return rows


def _of_chunks(buffers: Buffers, chunk: Column, **columns: npt.ArrayLike) -> Rows:
    return rows_of(len(chunk), label=chunk + 1, chunk=chunk, bytes=buffers.chunks.size[chunk], **columns)


def _of_calls(lowered: Lowered, kind: str) -> Rows:
    ticks = [call.tick for call in lowered.calls]
    return rows_of(len(ticks), kind=CODE[kind], tick=ticks)


def views_of(buffers: Buffers) -> list[Value]:
    """Returns the values that are views of others, by the tick in which they begin.

    A view that is never read may begin after its chunk has ended; such views are left out.
    """
    values, ids, chunks = buffers.plan.lowered.values, buffers.plan.ids, buffers.chunks
    outputs = ((instruction.tick, v) for instruction in buffers.plan.lowered.instructions for v in written(instruction))
    views = ((tick, v) for tick, v in outputs if v in ids and values[v].is_view)
    return [values[v] for tick, v in views if tick < chunks.end[chunks.chunk_of[ids[v]]]]


def _of_views(buffers: Buffers) -> Rows:
    ids, views, chunks = buffers.plan.ids, views_of(buffers), buffers.chunks
    tick = {v: instruction.tick for instruction in buffers.plan.lowered.instructions for v in written(instruction)}
    numbers = [ids[v.id] for v in views]
    return rows_of(
        len(views),
        kind=CODE[VIEW],
        tick=[tick[v.id] for v in views],
        label=len(chunks) + 1 + np.arange(len(views)),
        chunk=chunks.chunk_of[numbers],
        inside=chunks.offset_in_chunk[numbers],
        bytes=[high - low for low, high in (v.layout.extent for v in views)],
    )


def written(instruction: Instruction) -> tuple[int, ...]:
    """Returns the values that an instruction writes, workspaces included."""
    return instruction.outputs + (instruction.workspace if isinstance(instruction, Call) else ())


_LONGEST = 240
"""Characters of the attributes of one operator."""


def details_of(buffers: Buffers) -> Details:
    """Returns who reads which chunk, the attributes of operators, the weights, and where memories and cascades lie."""
    plan, lowered = buffers.plan, buffers.plan.lowered
    reads = sorted(set(_reads(buffers)))
    attributes = {call.tick: _text_of(call.operators[0].attrs) for call in lowered.calls if call.operators}
    values, weights = _weights(lowered)
    details = Details([tick for tick, _ in reads], [chunk for _, chunk in reads], attributes, weights)
    if any(done.cascades for done in plan.optimisation):
        details = evolve(details, stripes=tracing.stripe_runs(plan))
    if plan.memories and buffers.mode == "static":
        details = tracing.in_memories(plan, details, values)
    return details


def _reads(buffers: Buffers) -> Iterator[tuple[int, int]]:
    ids, chunk_of, lowered = buffers.plan.ids, buffers.chunks.chunk_of.tolist(), buffers.plan.lowered
    for call in lowered.calls:
        yield from ((call.tick, chunk_of[ids[v]]) for v in call.inputs if v in ids)
    fetch = len(lowered.instructions) + 1
    yield from ((fetch, chunk_of[ids[v]]) for v in lowered.outputs.values() if v in ids)


def _text_of(attrs: Mapping[str, Any]) -> str:
    """Returns attributes as one line; those that hold nothing are left out."""
    shown = ((name, value) for name, value in attrs.items() if not _holds_nothing(value))
    text = ", ".join(f"{name}={_value(value)}" for name, value in shown)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _holds_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, (tuple, str)) and not value)


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value[:_LONGEST]))}]"
    is_plain = isinstance(value, (bool, int, float, str, np.generic, np.dtype))
    return str(value)[:_LONGEST] if is_plain else type(value).__name__


def _weights(lowered: Lowered) -> tuple[tuple[Value, ...], tuple[Weight, ...]]:
    """Returns the constants of the graph, each array once, and what is told of them.

    Dense copies of them are read in their place.
    """
    entries, ticks = lowered.constants.entries, dict[str, set[int]]()
    for call in lowered.calls:
        for source in {lowered.values[lowered.values[v].owner].source for v in call.inputs}:
            ticks.setdefault(source, set()).add(call.tick)
    readers, values = dict[Any, set[int]](), dict[Any, Value]()
    for v, entry in entries.items():
        if not is_copy(lowered, v):
            values.setdefault(identity(entry), lowered.values[v])
            readers.setdefault(identity(entry), set()).update(ticks.get(lowered.values[v].source, ()))
    return tuple(values.values()), tuple(
        Weight(v.name, "x".join(map(str, v.spec.shape)), v.spec.dtype.name, v.spec.nbytes, tuple(sorted(readers[key])))
        for key, v in values.items()
    )
