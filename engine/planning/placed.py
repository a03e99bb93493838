"""The result of planning as data: where each value lies, and in which order kernels are called."""

from collections.abc import Mapping
from itertools import chain

from attrs import frozen

from allocator.derive.chunks import Chunks
from allocator.problem import Plan, Problem
from allocator.steps import Program
from engine.graph.deferred import Deferred, Entry
from engine.lower.calls import Lowered, Storage, Value, replaced
from engine.lower.order import Ordering
from engine.lower.schedule import Schedule
from engine.planning.options import DEFAULTS, Options
from engine.planning.recomputed import Recomputed
from engine.system.arrays import address
from ops.schema.body import bodies
from ops.tensor.layout import Layout

FOLLOWED = "from the file"
"""The origin of a plan that was read, and not made."""


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
    `chunks.chunk_of[ids[value]]`, and row `chunk` of `problem` and `plan` speaks of it. `program` has the steps that
    chunks were derived from. Sizes are bytes. `orderings`
    tells what the order costs; nothing where nobody looked for another than the given one. `recomputed` tells what runs
    again for the sake of a budget; nothing where every operator runs once. `options` are those that it was made with.
    `origin` tells where it is from; nothing where there was no plan to follow.
    """

    lowered: Lowered
    ids: Mapping[int, int]
    program: Program
    chunks: Chunks
    problem: Problem
    plan: Plan
    places: tuple[Place, ...]
    alignment: int
    schedule: Schedule
    options: Options = DEFAULTS
    orderings: tuple[Ordering, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()
    origin: str = ""

    @property
    def is_followed(self) -> bool:
        """Whether it was read from a file, and not made."""
        return self.origin == FOLLOWED

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.plan.arena_bytes

    @property
    def constants(self) -> tuple[Entry, ...]:
        """What the run reads besides what it is fed and what kernels packed, in bodies of operators too."""
        values, calls = self.lowered.values, self.lowered.calls
        read = {values[v].owner for call in calls for i, v in enumerate(call.inputs) if i not in replaced(call)}
        read |= {values[v].owner for v in self.lowered.outputs.values()}
        inside = (b.constants for call in calls for op in call.operators for b in bodies(op.schema, op.attrs))
        return tuple(e for v, e in self.lowered.constants.entries.items() if v in read) + tuple(chain(*inside))

    @property
    def constants_bytes(self) -> int:
        """Bytes of the constants that the run reads; they lie outside the arena. What kernels pack comes on top."""
        return sum({_identity(e): e.nbytes for e in self.constants if e.nbytes}.values())

    def owners(self, chunks: Chunks) -> dict[int, Value]:
        """The value that each of the chunks was made for; `chunks` may be others of the same values."""
        values = (self.lowered.values[v] for v in self.ids)
        return {int(chunks.chunk_of[self.ids[v.id]]): v for v in values if not v.is_view}

    def chunk_of(self, value: int) -> int:
        """The chunk of an arena value."""
        return int(self.chunks.chunk_of[self.ids[value]])


def _identity(entry: Entry) -> int:
    """The same for what has the same bytes."""
    return id(entry) if isinstance(entry, Deferred) else address(entry)
