"""The events of reference counting on a heap model: addresses, and the memory that the heap takes from the system."""

import numpy as np
from attrs import evolve

from allocator.heaps import simulate
from allocator.heaps.events import ALLOC, FREE, Events
from allocator.problem import Column
from engine.trace import trace
from engine.trace.event_table import CODE, EventTable, Rows, rows_of


def events_on_heap(table: EventTable, heap: str) -> EventTable:
    """Returns the events of the same run on a heap model of `allocator.heaps`. Raises UnknownHeapError."""
    asks = np.isin(table.rows["kind"], [CODE[trace.ALLOC], CODE[trace.FREE]])
    root = _roots(table)
    simulated = simulate(heap, _events(table.rows[asks], root))
    if simulated.peak_requested and (simulated.offset == trace.NOWHERE).all():
        return table  # a heap model without addresses adds nothing
    reserved = np.zeros(len(table.rows), np.int64)
    reserved[asks] = np.diff(simulated.timeline.reserved, prepend=0)
    rows = _with_changes(table.rows, reserved)
    return evolve(table, rows=rows, place=simulated.offset[root], floats=False)


def _roots(table: EventTable) -> Column:
    """Returns the first chunk of each chain of overwrites: an update of a parameter overwrites all of its bytes."""
    root = np.arange(len(table.place))
    updates = table.rows[table.rows["kind"] == CODE[trace.OVERWRITE]]
    for chunk, taken in zip(updates["chunk"].tolist(), updates["overwrites"].tolist(), strict=True):
        root[chunk] = root[taken]
    return root


def _events(rows: Rows, root: Column) -> Events:
    frees = rows["kind"] == CODE[trace.FREE]
    size = np.zeros(len(root), np.int64)
    size[rows["chunk"][~frees]] = rows["bytes"][~frees]
    return Events(np.arange(len(rows)), root[rows["chunk"]], np.where(frees, FREE, ALLOC), size)


def _with_changes(rows: Rows, change: Column) -> Rows:
    """Inserts the changes of the heap: it grows before an allocation, and shrinks after a free."""
    at = np.flatnonzero(change)
    kind = np.where(change[at] > 0, CODE[trace.GROW], CODE[trace.SHRINK])
    when = {name: rows[name][at] for name in ("tick", "operator", "stage", "seconds", "thread")}
    events = rows_of(len(at), kind=kind, bytes=np.abs(change[at]), **when)
    return np.insert(rows, at + (change[at] < 0), events)
