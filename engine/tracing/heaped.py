"""The script of reference counting on a model of a heap: addresses, and what the heap gets from the system."""

import numpy as np
from attrs import evolve

from allocator.heaps import simulate
from allocator.heaps.events import ALLOC, FREE, Events
from allocator.problem import Column
from engine import trace
from engine.tracing.script import CODE, Rows, Script, rows_of


def heaped_script(script: Script, heap: str) -> Script:
    """The same run on a heap by the name that `allocator.heaps` knows. Raises UnknownHeapError."""
    asks = np.isin(script.rows["kind"], [CODE[trace.ALLOC], CODE[trace.FREE]])
    found = simulate(heap, _events(script, script.rows[asks]))
    reserved = np.zeros(len(script.rows), np.int64)
    reserved[asks] = np.diff(found.timeline.reserved, prepend=0)
    place = np.full(len(script.place), trace.NOWHERE)
    place[: len(found.offset)] = found.offset
    return evolve(script, rows=_with_changes(script.rows, reserved), place=place, floats=False)


def _events(script: Script, rows: Rows) -> Events:
    size = np.zeros(len(script.place), np.int64)
    size[rows["chunk"]] = rows["bytes"]
    return Events(np.arange(len(rows)), rows["chunk"], np.where(rows["kind"] == CODE[trace.FREE], FREE, ALLOC), size)


def _with_changes(rows: Rows, change: Column) -> Rows:
    """A heap grows before it hands out what it did not have, and shrinks after it got back what it gives back."""
    at = np.flatnonzero(change)
    kind = np.where(change[at] > 0, CODE[trace.GROW], CODE[trace.SHRINK])
    when = {name: rows[name][at] for name in ("tick", "operator", "stage", "seconds", "thread")}
    told = rows_of(len(at), kind=kind, bytes=np.abs(change[at]), **when)
    return np.insert(rows, at + (change[at] < 0), told)
