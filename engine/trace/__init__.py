"""The memory events of a run, planned or measured."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if (
    TYPE_CHECKING
):  # most runs evict nothing and are traced on no model of a heap; at run time it is imported when it is first used
    from engine.trace.evicting import trace_evicting
    from engine.trace.heaped import events_on_heap

__all__ = ["events_on_heap", "trace_evicting"]

_HOMES = {
    "events_on_heap": "engine.trace.heaped:events_on_heap",
    "trace_evicting": "engine.trace.evicting:trace_evicting",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
