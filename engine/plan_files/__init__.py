"""Plans as files, by suffix: for firmware, for allocators, in a model, as data.

What writes them is imported when it is first used: most plans are not written.
"""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:
    from engine.plan_files.write import write_plan

__all__ = ["write_plan"]

_HOMES = {"write_plan": "engine.plan_files.write:write_plan"}


if not TYPE_CHECKING:
    __getattr__ = importer(__name__, _HOMES)
