"""Ways to run a plan."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # few runs evict; at run time it is imported when it is first used
    from engine.executor.evicting import EvictingExecutor

__all__ = ["EvictingExecutor"]

_HOMES = {
    "EvictingExecutor": "engine.executor.evicting:EvictingExecutor",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
