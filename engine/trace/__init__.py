"""The memory events of a run, planned or measured."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # few runs evict, lie in several memories, or go through the model of a heap: imported on first use
    from engine.trace.cascades import stripe_runs
    from engine.trace.evicting import trace_evicting
    from engine.trace.heaped import events_on_heap
    from engine.trace.memories import in_memories

__all__ = ["events_on_heap", "in_memories", "stripe_runs", "trace_evicting"]

_HOMES = {
    "events_on_heap": "engine.trace.heaped:events_on_heap",
    "in_memories": "engine.trace.memories:in_memories",
    "stripe_runs": "engine.trace.cascades:stripe_runs",
    "trace_evicting": "engine.trace.evicting:trace_evicting",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
