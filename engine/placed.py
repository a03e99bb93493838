"""The result of planning as data: where each value lies, and in which order kernels are called."""

from collections.abc import Mapping

from attrs import frozen

from allocator.chunks import Chunks
from allocator.problem import Plan, Problem
from engine.calls import Lowered, Storage, Value
from engine.schedule import Schedule
from ops.layout import Layout


@frozen
class Place:
    """Where a value lies: `layout` counts from the start of the arena, or of the constant or caller's array `owner`."""

    storage: Storage
    owner: int
    layout: Layout


@frozen(eq=False)
class PlacedPlan:
    """Everything that an executor needs but the arrays.

    `ids` gives the number under which the allocator knows a value (arena values only); `chunk` is then
    `chunks.chunk_of[ids[value]]`, and row `chunk` of `problem` and `plan` speaks of it. Sizes are bytes.
    """

    lowered: Lowered
    ids: Mapping[int, int]
    chunks: Chunks
    problem: Problem
    plan: Plan
    places: tuple[Place, ...]
    alignment: int
    schedule: Schedule

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.plan.arena_bytes

    @property
    def constants_bytes(self) -> int:
        """Bytes of the constants that the run reads; they lie outside the arena. What kernels pack comes on top."""
        values, outputs = self.lowered.values, self.lowered.outputs.values()
        read = {values[v].owner for call in self.lowered.calls for v in call.inputs} | {
            values[v].owner for v in outputs
        }
        return sum(a.nbytes for v, a in self.lowered.constants.items() if v in read)

    def owners(self, chunks: Chunks) -> dict[int, Value]:
        """The value that each of the chunks was made for; `chunks` may be others of the same values."""
        values = (self.lowered.values[v] for v in self.ids)
        return {int(chunks.chunk_of[self.ids[v.id]]): v for v in values if not v.is_view}

    def chunk_of(self, value: int) -> int:
        """The chunk of an arena value."""
        return int(self.chunks.chunk_of[self.ids[value]])
