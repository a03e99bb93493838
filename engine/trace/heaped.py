"""The script of reference counting on a model of a heap: addresses, and what the heap gets from the system."""

import numpy as np
from attrs import evolve

from allocator.heaps import simulate
from allocator.heaps.events import ALLOC, FREE, Events
from allocator.problem import Column
from engine.trace import trace
from engine.trace.event_table import CODE, EventTable, Rows, rows_of


def events_on_heap(table: EventTable, heap: str) -> EventTable:
    """The same run on a heap by the name that `allocator.heaps` knows. Raises UnknownHeapError."""
    asks = np.isin(table.rows["kind"], [CODE[trace.ALLOC], CODE[trace.FREE]])
    root = _roots(table)
    found = simulate(heap, _events(table.rows[asks], root))
    if found.peak_requested and (found.offset == trace.NOWHERE).all():
        return table  # of a heap that knows no addresses nothing more can be told
    reserved = np.zeros(len(table.rows), np.int64)
    reserved[asks] = np.diff(found.timeline.reserved, prepend=0)
    rows = _with_changes(table.rows, reserved)
    return evolve(table, rows=rows, place=found.offset[root], floats=False)


def _roots(table: EventTable) -> Column:
    """The chunk with whose bytes each chunk began: an update of a parameter is written over it, in all of its bytes."""
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
    """A heap grows before it hands out what it did not have, and shrinks after it got back what it gives back."""
    at = np.flatnonzero(change)
    kind = np.where(change[at] > 0, CODE[trace.GROW], CODE[trace.SHRINK])
    when = {name: rows[name][at] for name in ("tick", "operator", "stage", "seconds", "thread")}
    told = rows_of(len(at), kind=kind, bytes=np.abs(change[at]), **when)
    return np.insert(rows, at + (change[at] < 0), told)
