"""The script of a run as it was planned: one operator after the other, in ticks."""

import numpy as np
import numpy.typing as npt

from allocator.problem import Column
from engine.lower.calls import Call, Join, Lowered, Stage, Value
from engine.planning.placed import PlacedPlan
from engine.trace.buffers import Buffers, buffers_of
from engine.trace.event_table import CODE, EventTable, Rows, TensorLabel, label_of, ranks, rows_of
from engine.trace.trace import ALLOC, BEGIN, END, FREE, GROW, OVERWRITE, VIEW

_RANKS = ranks((GROW, FREE, BEGIN, ALLOC, OVERWRITE, VIEW, END))
"""In a tick: frees before allocations before overwrites (MegEngine's order)."""


def planned_events(plan: PlacedPlan, mode: str) -> EventTable:
    """Of a run in sequence. Raises OptionError."""
    found = buffers_of(plan, mode)
    rows = unordered_rows(found)
    return table_of(found, rows[np.lexsort((rows["label"], _RANKS[rows["kind"]], rows["tick"]))])


def table_of(found: Buffers, rows: Rows) -> EventTable:
    """With the tables that rows of `unordered_rows` count in."""
    lowered = found.plan.lowered
    ticks = range(len(lowered.stages) + 3)  # what is fetched is freed in a tick behind all others
    operators = tuple((lowered.tick_name(tick), lowered.tick_kind(tick)) for tick in ticks)
    owners = [found.owners[chunk] for chunk in range(len(found.chunks))]
    joined = {v: operators[stage.tick] for stage in lowered.stages if isinstance(stage, Join) for v in stage.outputs}
    labels = (TensorLabel(), *(label_of(value, joined.get(value.id, ())) for value in (*owners, *views_of(found))))
    return EventTable(rows, operators, labels, found.offset, found.padding, floats=found.mode == "dynamic")


def unordered_rows(found: Buffers) -> Rows:
    """All that happens, each in its tick. The label of chunk c is c + 1; those of views come behind."""
    chunks, every = found.chunks, np.arange(len(found.chunks))
    is_root, is_last = np.ones(len(every), bool), np.ones(len(every), bool)
    is_root[chunks.src], is_last[chunks.dest] = False, False
    arena = rows_of(int(found.mode == "static"), kind=CODE[GROW], bytes=found.plan.arena_bytes)
    come, taken, go = every[is_root], chunks.src, every[is_last]
    parts = (
        arena,
        _of_chunks(found, come, kind=CODE[ALLOC], tick=chunks.begin[come]),
        _of_chunks(found, taken, kind=CODE[OVERWRITE], tick=chunks.begin[taken], overwrites=chunks.dest),
        _of_chunks(found, go, kind=CODE[FREE], tick=chunks.end[go]),
        _of_views(found),
        *(_of_calls(found.plan.lowered, kind) for kind in (BEGIN, END)),
    )
    rows = np.concatenate(parts)
    rows["operator"] = rows["tick"]
    return rows


def _of_chunks(found: Buffers, chunk: Column, **columns: npt.ArrayLike) -> Rows:
    return rows_of(len(chunk), label=chunk + 1, chunk=chunk, bytes=found.chunks.size[chunk], **columns)


def _of_calls(lowered: Lowered, kind: str) -> Rows:
    ticks = [call.tick for call in lowered.calls]
    return rows_of(len(ticks), kind=CODE[kind], tick=ticks)


def views_of(found: Buffers) -> list[Value]:
    """The values that lie in bytes of others, by the tick in which they come to be.

    One that nobody reads may be of bytes that are gone by then: there is nothing to look at.
    """
    values, ids, chunks = found.plan.lowered.values, found.plan.ids, found.chunks
    outputs = ((stage.tick, v) for stage in found.plan.lowered.stages for v in written(stage))
    looks = ((tick, v) for tick, v in outputs if v in ids and values[v].is_view)
    return [values[v] for tick, v in looks if tick < chunks.end[chunks.chunk_of[ids[v]]]]


def _of_views(found: Buffers) -> Rows:
    ids, views, chunks = found.plan.ids, views_of(found), found.chunks
    tick = {v: stage.tick for stage in found.plan.lowered.stages for v in written(stage)}
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


def written(stage: Stage) -> tuple[int, ...]:
    """The values that are there when a stage is done, workspaces among them."""
    return stage.outputs + (stage.workspace if isinstance(stage, Call) else ())
