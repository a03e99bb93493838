"""The result of planning as data: where each value lies, and the order in which kernels are called."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.derive.chunks import Chunks
from allocator.problem import Plan, Problem
from allocator.steps import Program
from engine.graph.graph import Graph
from engine.lower.calls import Lowered, Storage, Value, is_again
from engine.lower.costs import operation_seconds
from engine.lower.order import Ordering
from engine.lower.schedule import Schedule
from engine.planning import memories as in_memories
from engine.planning.options import DEFAULTS, Options
from engine.planning.weights import weight_memory
from engine.text.units import agreed, counted, format_bytes
from ops.common.tiling import ROWS
from ops.schema.weight_memory import WeightMemory
from ops.tensor.layout import Layout

MOST_NAMED = 4
"""Passes that the text about an optimisation names."""
FOLLOWED = "from the file"
"""The origin of a plan that was read from a file."""


@frozen
class Place:
    """The place of a value: `layout` counts from the start of the arena, or of the array of the value `owner`."""

    storage: Storage
    owner: int
    layout: Layout


@frozen
class Cascade:
    """The operators [first, last) of a graph, by position, that are computed in stripes of `height` rows, or columns.

    `axis` is 1 for rows, and 2 for columns; what is said of rows holds for both. `rolling` has the positions of those
    whose rows are kept for the next stripe, and not computed again. Where there are some, the rows are those of the
    first operator, else of the last one. `in_pieces` lets the image that the first operator reads be copied before the
    first stripe: into one piece for each stripe, which dies in it.
    """

    first: int
    last: int
    height: int
    rolling: tuple[int, ...] = ()
    in_pieces: bool = False
    axis: int = ROWS


@frozen
class CascadeStripe:
    """The operators that compute the rows [first, last) of the result of a cascade, by name.

    `cascade` is the number of the cascade, `stripe` that of the stripe in it. Along `axis` 2, rows are columns.
    """

    cascade: int
    stripe: int
    rows: tuple[int, int]
    operators: tuple[str, ...]
    axis: int = ROWS


@frozen
class CascadeChoice:
    """Cascades that a graph may have, by the estimates of the search.

    `estimated_bytes` is the arena. `share` is the part of all operations that they add, `work` the same with calls and
    copies, as the operations that take as long: `cascade=` allows these from about 100 times as much on.
    `cascades` is their number, and `stripes` that of the stripes of all of them.
    """

    estimated_bytes: int
    share: float
    work: float
    cascades: int
    stripes: int


@frozen
class Cascaded:
    """The cascades of a graph: operators that are computed stripe after stripe of rows, or of columns.

    `runs` has the first and the last operator of each cascade, and its number of stripes. `share` is the part of all
    operations that they add, `work` the same with calls and copies, as the operations that take as long. Of `kept`
    tensors, rows are kept for the next stripe; `pieces` images are taken in pieces. The stripes of `columns` cascades
    are columns. `plain_bytes` is the lower bound of the arena without them, and `least_bytes` that with any cascades,
    in the given order; 0 where arrays of the caller may be overwritten, tensors are stored in another type, or another
    order was asked for. `choices` has the cascades of which the search knows none that are better in both bytes and
    work, the fewest bytes first, whatever percentage was asked for. `cascades` are positions in the graph that was cut,
    `stripes` what was written of them.
    """

    runs: tuple[tuple[str, str, int], ...]
    share: float
    work: float
    kept: int
    pieces: int
    columns: int
    plain_bytes: int
    least_bytes: int
    choices: tuple[CascadeChoice, ...] = field(repr=False)
    cascades: tuple[Cascade, ...] = field(repr=False)
    stripes: tuple[CascadeStripe, ...] = field(repr=False, default=())

    @property
    def text(self) -> str:
        """The cascades, in one line, which names the first ones."""
        runs = zip(self.runs[:MOST_NAMED], self.cascades, strict=False)
        named = "; ".join(f"{run[0]} to {run[1]} in {run[2]} {_stripes(cascade)}" for run, cascade in runs)
        if len(self.runs) > MOST_NAMED:
            named += f" and {len(self.runs) - MOST_NAMED} more"
        count = agreed(len(self.runs), "cascade", "adds", "add")
        kept = f"; rows of {counted(self.kept, 'tensor')} are kept" if self.kept else ""
        pieces = f"; {agreed(self.pieces, 'image', 'is', 'are')} taken in pieces" if self.pieces else ""
        least = f", with any cascades {format_bytes(self.least_bytes)}" if self.least_bytes else ""
        cost = f"{self.share:.1%} more operations, {self.work:.1%} more work with calls and copies"
        return f"{count} {cost} ({named}{kept}{pieces}); without, at least {format_bytes(self.plain_bytes)}{least}"


def _stripes(cascade: Cascade) -> str:
    return "stripes" if cascade.axis == ROWS else "stripes of columns"


@frozen
class Optimisation:
    """The passes that ran over a graph before it was planned.

    `before` and `after` are numbers of operators. `changes` has each pass that changed something, by its name, with the
    number of operators that it added; below 0 where it took some away. `left_out` names the groups of passes that did
    not run, as the arena would be larger; `cost` is what the others make it larger by, in bytes. `cascades` says what
    is computed in stripes; empty where nothing is.
    """

    level: int
    before: int
    after: int
    changes: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...] = ()
    cost: int = 0
    cascades: tuple[Cascaded, ...] = ()

    @property
    def text(self) -> str:
        """What was done, in one line, which names the passes that changed the number of operators most."""
        largest = sorted(self.changes, key=lambda change: -abs(change[1]))
        done = ", ".join(f"{name} {count:+}" if count else name for name, count in largest[:MOST_NAMED])
        if len(largest) > MOST_NAMED:
            done += f" and {len(largest) - MOST_NAMED} more"
        count = f"{self.before} -> {self.after} operators" if self.before != self.after else "as many operators"
        text = f"optimised at level {self.level}: {count}{f' ({done})' if done else ', nothing to change'}"
        if self.left_out:
            text += f"; left out, as the arena would be larger: {', '.join(self.left_out)}"
        return f"{text}; the arena is {format_bytes(self.cost)} larger for speed" if self.cost else text


@frozen
class Recomputed:
    """The operators that run again: `operators` has their names. `flops` estimates the operations that this adds to a
    run, and `share` is their part of all other operations. `plain_bytes`: the arena without it.

    `before` is the graph in which every operator runs once; `sequence` has the names, in that graph, of all that runs.
    """

    operators: tuple[str, ...]
    flops: int
    share: float
    plain_bytes: int
    before: Graph = field(repr=False)
    sequence: tuple[str, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """The cost of the budget, in words. Where another order is enough to meet it, nothing runs again."""
        if not self.operators:
            return "in another order, nothing runs again"
        again = agreed(len(self.operators), "operator", "runs again", "run again")
        return f"{again}, {self.share:.1%} more operations"


@frozen
class Evicted:
    """What a dynamic run costs that evicts by `heuristic` to keep within `budget_bytes`. Sizes in bytes.

    `evictions` counts chunks that were evicted, `runs_again` runs of operators beyond their first. `slowdown` is all
    work over that of a run without a budget. The run holds `reserved_bytes`. `smallest_budget` is the smallest that
    bisection finds, and `smallest_slowdown` the slow-down there.
    """

    heuristic: str
    budget_bytes: int
    evictions: int
    runs_again: int
    slowdown: float
    reserved_bytes: int
    smallest_budget: int
    smallest_slowdown: float

    @property
    def text(self) -> str:
        """The cost of the budget, in words."""
        evictions = counted(self.evictions, "eviction")
        again = agreed(self.runs_again, "operator", "runs again", "run again")
        return f"{self.heuristic}: {evictions}, {again}, {self.slowdown - 1:.1%} more work"

    @property
    def smallest_text(self) -> str:
        """The cost of the smallest budget, in words."""
        return f"that bisection finds for {self.heuristic}: {self.smallest_slowdown - 1:.1%} more work"


@frozen(eq=False)
class PlacedPlan:
    """A plan with the places of all values: everything that an executor needs except the arrays. Sizes are bytes.

    `ids` maps each arena value to its number in the allocator; its chunk is `chunks.chunk_of[ids[value]]`, and row
    `chunk` of `problem` and `plan` describes that chunk. `program` has the steps that chunks were derived from.
    `memories` says where it lies in several memories; empty where there is one arena in one memory. `moved` says which
    tensors change their memory; empty where none does.
    `orderings` says what the order costs; empty where the given order was kept without a search. `recomputed` says what
    runs again to meet a budget; empty where every operator runs once. `options` are those of the planner. `origin` says
    where the plan comes from; "" where no saved plan was offered. `optimisation` says what passes did to the graph
    before; empty where none ran.
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
    memories: "tuple[in_memories.InMemories, ...]" = ()
    moved: "tuple[in_memories.Moved, ...]" = ()
    orderings: tuple[Ordering, ...] = ()
    recomputed: tuple[Recomputed, ...] = ()
    origin: str = ""
    optimisation: tuple[Optimisation, ...] = ()

    @property
    def is_followed(self) -> bool:
        """True if the plan was read from a file."""
        return self.origin == FOLLOWED

    @property
    def arena_bytes(self) -> int:
        """The size of the arena."""
        return self.plan.arena_bytes

    @property
    def copy_times(self) -> "in_memories.CopyTimes":
        """When copies that a copy engine can make run, and how long calls wait for them."""
        for placed in self.memories:
            return in_memories.copy_times(self.lowered, self.schedule, placed)
        return in_memories.CopyTimes()

    @property
    def transfer_seconds(self) -> float:
        """The time of all transfers of a run, in seconds; 0 in one arena.

        Of copies beside calls, it has what calls wait; of what is computed again, the time of the operations, too.
        """
        return sum(placed.assigned.cost for placed in self.memories) + self.copy_times.waiting + self.again_seconds

    @property
    def again_seconds(self) -> float:
        """The time of the operations of calls that compute again what was dropped between memories, in seconds."""
        return sum(operation_seconds(call) for call in self.lowered.calls if is_again(self.lowered, call))

    @property
    def weight_memory(self) -> WeightMemory:
        """The memory of the constants, outside the arena."""
        return weight_memory(self.lowered)

    @property
    def weights_bytes(self) -> int:
        """Bytes of the weights of the model."""
        return self.weight_memory.weights_bytes

    @property
    def prepacked_bytes(self) -> int:
        """Bytes of the copies that kernels make of weights when they are bound."""
        return self.weight_memory.prepacked_bytes

    @property
    def resident_weights_bytes(self) -> int:
        """Bytes that stay in memory for weights: those that are kept, and prepacked copies."""
        return self.weight_memory.resident_weights_bytes

    @property
    def graph(self) -> Graph:
        """The graph after passes, in which every operator runs once."""
        return next((again.before for again in self.recomputed), self.lowered.graph)

    @property
    def state_chunks(self) -> npt.NDArray[np.bool_]:
        """For each chunk, whether it has bytes that must survive from run to run: those of parameters."""
        root = self.problem.chains.root
        return np.isin(root, [root[self.chunk_of(value)] for value in self.lowered.parameters])

    def memory_of(self, chunk: int) -> str:
        """Returns the name of the memory that a chunk lies in; "" where there is one arena."""
        return "".join(placed.memories[int(placed.assigned.memory[chunk])].name for placed in self.memories)

    def owners(self, chunks: Chunks) -> dict[int, Value]:
        """Returns the value that each chunk was made for; `chunks` may be other chunks of the same values."""
        values = (self.lowered.values[v] for v in self.ids)
        return {int(chunks.chunk_of[self.ids[v.id]]): v for v in values if not v.is_view}

    def chunk_of(self, value: int) -> int:
        """Returns the chunk of an arena value."""
        return int(self.chunks.chunk_of[self.ids[value]])


def place_values(lowered: Lowered, ids: Mapping[int, int], chunks: Chunks, plan: Plan) -> tuple[Place, ...]:
    """Returns the place of each value: the offsets of the allocator as layouts from the start of each storage."""
    starts = (plan.offset[chunks.chunk_of] + chunks.offset_in_chunk).tolist() if ids else []
    places = []
    for value in lowered.values:
        layout = value.layout
        if value.storage is Storage.ARENA:
            layout = layout.starting_at(starts[ids[value.id]])
        places.append(Place(value.storage, value.owner, layout))
    return tuple(places)
