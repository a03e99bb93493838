"""Plans in several memories: `choose` finds a memory and an address for each chunk and constant, `placed` has them."""

from typing import TYPE_CHECKING

from ops.lazy import importer

if TYPE_CHECKING:  # most plans have one arena; at run time each name is imported when it is first used
    from engine.check.memories import check_memories
    from engine.planning.memories.choose import assign_memories, contents_of, placed_as
    from engine.planning.memories.fitting import plan_with_copies
    from engine.planning.memories.moving import with_moves
    from engine.planning.memories.placed import Contents, InMemories, Moved
    from engine.planning.memories.times import CopyTimes, call_times, copy_times, engine_ticks

__all__ = [
    "Contents",
    "CopyTimes",
    "InMemories",
    "Moved",
    "assign_memories",
    "call_times",
    "check_memories",
    "contents_of",
    "copy_times",
    "engine_ticks",
    "placed_as",
    "plan_with_copies",
    "with_moves",
]

_HOMES = {
    "Contents": "engine.planning.memories.placed:Contents",
    "CopyTimes": "engine.planning.memories.times:CopyTimes",
    "InMemories": "engine.planning.memories.placed:InMemories",
    "Moved": "engine.planning.memories.placed:Moved",
    "assign_memories": "engine.planning.memories.choose:assign_memories",
    "call_times": "engine.planning.memories.times:call_times",
    "check_memories": "engine.check.memories:check_memories",
    "contents_of": "engine.planning.memories.choose:contents_of",
    "copy_times": "engine.planning.memories.times:copy_times",
    "engine_ticks": "engine.planning.memories.times:engine_ticks",
    "placed_as": "engine.planning.memories.choose:placed_as",
    "plan_with_copies": "engine.planning.memories.fitting:plan_with_copies",
    "with_moves": "engine.planning.memories.moving:with_moves",
}

if not TYPE_CHECKING:  # a checker of types would take every name for one that exists
    __getattr__ = importer(__name__, _HOMES)
