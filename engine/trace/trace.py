"""A run as memory events: what is allocated, overwritten and freed, when, and how many bytes are alive then."""

from collections.abc import Callable, Iterator

from attrs import field, frozen

from engine.text.units import format_bytes, format_small_seconds
from engine.trace.details import Details, FindDetails, no_details

NOWHERE = -1
"""Offset of a chunk without a known address: reference counting without a heap model."""
NOTHING = -1
"""The overwritten chunk of an event that is no overwrite; the chunk of an event that concerns none."""
NOT_RUN = -1
"""Time and thread of an event in a trace that was planned and not run."""

STAGE, GROW, SHRINK, BEGIN, FREE = "stage", "grow", "shrink", "begin", "free"
ALLOC, OVERWRITE, VIEW, PEAK, END, EVICT = "alloc", "overwrite", "view", "peak", "end", "evict"
KINDS = (STAGE, GROW, SHRINK, FREE, BEGIN, ALLOC, OVERWRITE, VIEW, PEAK, END, EVICT)
"""The kinds of events."""
ARRIVALS = (ALLOC, OVERWRITE)
"""The kinds of events that begin a chunk; it ends where it is freed or overwritten."""


@frozen
class Event:
    """One memory event. Sizes in bytes, ticks as in the plan.

    - `alloc`, `free`: a chunk begins or ends; `overwrite`: a chunk takes the bytes of `overwrites`, which ends.
    - `evict`: a chunk that somebody still reads goes, and comes again later, as another chunk; its `free` follows.
    - `view`: a tensor without bytes of its own is a view of `chunk`, from `offset` on.
    - `begin`, `end`: of an operator. `stage`: a stage begins, with an arena of `bytes`; `tensor` decided its sizes.
    - `grow`, `shrink`: the memory changes its size by `bytes`. `peak`: the live bytes are at their maximum, `bytes`.

    `operator` runs in the tick, and `schema` is its kind. For a tensor whose parts are computed in place, one by one,
    it is the operator of a later tick that joins them. `bytes` of a chunk include `padding`. `live_bytes` are alive,
    and `footprint_bytes` are the size of the memory, after the event. `seconds` count from the start of the run; thread
    0 is the caller's.
    """

    tick: int
    kind: str
    operator: str
    schema: str
    tensor: str
    shape: str
    dtype: str
    role: str
    chunk: int
    offset: int
    bytes: int
    padding: int
    overwrites: int
    live_bytes: int
    footprint_bytes: int
    stage: int
    seconds: float
    thread: int


MEMORY = "memory"
"""The column of a table that names the memory of an event, of several; a trace that is read from it has one arena."""
VERSION = 8
"""The version of the file format of traces, which `docs/trace.schema.json` describes."""
UNTIMED, ESTIMATED, MEASURED = "", "estimated", "measured"
CLOCKS = (UNTIMED, ESTIMATED, MEASURED)


@frozen
class MemoryPart:
    """One of several memories of a run, and what lies in it. Sizes in bytes.

    Chunks at [start, start + arena_bytes) of the arena lie in it. `weights_bytes` of the model lie there, too, and all
    of it, with what alignment costs, takes `used_bytes` of its `capacity`. Transfers take `seconds` in all.
    """

    name: str
    capacity: int
    start: int
    arena_bytes: int
    weights_bytes: int
    used_bytes: int
    seconds: float

    @property
    def title(self) -> str:
        """Its name, how much of it is in use, and what its transfers take, if there are any."""
        used = f"{self.name}: {format_bytes(self.used_bytes)} of {format_bytes(self.capacity)} used"
        return f"{used}, transfers {format_small_seconds(self.seconds)}" if self.seconds else used

    def holds(self, offset: int) -> bool:
        """Returns whether a byte of the arena lies in this memory."""
        return self.start <= offset < self.start + self.arena_bytes


@frozen
class RunInfo:
    """The facts of a whole run. Sizes in bytes.

    `mode` is "static" (one arena, of `arena_bytes`) or "dynamic" (reference counting, on the heap model `heap` if that
    is named; `arena_bytes` is then what a plan would need). `peak_bytes` is the maximum of the live bytes, and
    `footprint_bytes` the maximum size of the memory. Where operators may run at once, which `policy` made safe, another
    run may have more live bytes: `possible_peak_bytes` at most. `lower_bound`, `bound_reason` (what proves it),
    `strategy`, `status` and `alignment` are the plan's. `budget_bytes` is the budget that it was made for, 0 for none;
    the arena may be larger. `weights_bytes` are those of the model, `prepacked_bytes` copies that kernels make of
    weights, and `resident_weights_bytes` what stays in memory of both and of their sources; none lies in the arena.
    `optimise` is the level of passes that was asked for, such as "auto"; "" where it is not known. `left_out` has the
    names of the groups of passes that did not run as the arena would be larger, with commas between them.
    `clock` describes `Event.seconds`: there are none (""), "estimated" from costs, or "measured". `memories` are the
    parts of the arena of a static run, one behind the other; empty where it lies in one memory.
    """

    model: str
    mode: str
    heap: str = ""
    policy: str = ""
    optimise: str = ""
    left_out: str = ""
    strategy: str = ""
    status: str = ""
    alignment: int = 1
    arena_bytes: int = 0
    lower_bound: int = 0
    bound_reason: str = ""
    budget_bytes: int = 0
    footprint_bytes: int = 0
    peak_bytes: int = 0
    peak_tick: int = 0
    peak_operator: str = ""
    possible_peak_bytes: int = 0
    weights_bytes: int = 0
    prepacked_bytes: int = 0
    resident_weights_bytes: int = 0
    ticks: int = 0
    stages: int = 1
    clock: str = UNTIMED
    threads: int = 1
    memories: tuple[MemoryPart, ...] = ()

    def memory_at(self, offset: int) -> int:
        """Returns the number of the memory that has a byte of the arena; NOWHERE where there is no such memory."""
        return next((m for m, part in enumerate(self.memories) if part.holds(offset)), NOWHERE)

    def memory_name(self, offset: int) -> str:
        """Returns the name of the memory that has a byte of the arena; "" where there is no such memory."""
        memory = self.memory_at(offset)
        return "" if memory == NOWHERE else self.memories[memory].name

    @property
    def is_timed(self) -> bool:
        """True if events have seconds."""
        return self.clock != UNTIMED


@frozen(eq=False)
class Trace:
    """The events of a run, in order. Each iteration makes them anew, one by one, so that any number fits in memory.

    A trace that was read from a file has no details.
    """

    facts: RunInfo
    _events: Callable[[], Iterator[Event]] = field(repr=False)
    _find_details: FindDetails = field(repr=False, default=no_details)

    def __iter__(self) -> Iterator[Event]:
        return self._events()

    def details(self) -> Details:
        """Returns what the plan knows beyond the events."""
        return self._find_details()
