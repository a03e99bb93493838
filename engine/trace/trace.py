"""The life of every byte as events: what is allocated, overwritten and freed, when, and what is live then."""

from collections.abc import Callable, Iterator

from attrs import field, frozen

NOWHERE = -1
"""Offset of what lies in no memory of known addresses: reference counting without a model of a heap."""
NOTHING = -1
"""What an event overwrites that is no overwrite; the chunk of one that is none's."""
NOT_RUN = -1
"""Time and thread of an event in a trace that was planned and not run."""

STAGE, GROW, SHRINK, BEGIN, FREE = "stage", "grow", "shrink", "begin", "free"
ALLOC, OVERWRITE, VIEW, PEAK, END = "alloc", "overwrite", "view", "peak", "end"
KINDS = (STAGE, GROW, SHRINK, FREE, BEGIN, ALLOC, OVERWRITE, VIEW, PEAK, END)
"""Of events."""
ARRIVALS = (ALLOC, OVERWRITE)
"""With these a chunk begins to live; it ends where it is freed or overwritten."""


@frozen
class Event:
    """One change. Sizes in bytes, ticks as in the plan.

    - `alloc`, `free`: of a chunk; `overwrite`: a chunk takes the bytes of the chunk `overwrites`, which ends there.
    - `view`: a tensor without bytes of its own looks at `chunk`, from `offset` on.
    - `begin`, `end`: of an operator. `stage`: one begins, with an arena of `bytes`; `tensor` decided its sizes.
    - `grow`, `shrink`: of the memory behind it all, by `bytes`. `peak`: at no time is more alive than now, `bytes`.

    `operator` is what happens in the tick, `schema` its kind; where a tensor comes to be whose parts are computed in
    place, one by one, it is what joins them, in a later tick. `bytes` of a chunk include `padding`. `live_bytes` and
    `footprint_bytes` are what is alive, and what the memory behind it has, after the event. `seconds` count from the
    start of the run; thread 0 is the caller's.
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


VERSION = 2
"""Of files that hold traces, as `docs/trace.schema.json` describes them."""
UNTIMED, ESTIMATED, MEASURED = "", "estimated", "measured"
CLOCKS = (UNTIMED, ESTIMATED, MEASURED)


@frozen
class RunInfo:
    """What holds of a whole trace. Sizes in bytes.

    `mode` is "static" (one arena, of `arena_bytes`) or "dynamic" (reference counting, on a model of the heap `heap` if
    that is named; `arena_bytes` is then what a plan would need). `peak_bytes` is most that is alive at once, and
    `footprint_bytes` most that the memory behind it has. Where operators may run at once, which `policy` made safe,
    another run may have more alive: `possible_peak_bytes` at most. `lower_bound`, `strategy`, `status` and `alignment`
    are the plan's. `clock` tells of `Event.seconds`: there are none (""), "estimated" from costs, or "measured".
    """

    model: str
    mode: str
    heap: str = ""
    policy: str = ""
    strategy: str = ""
    status: str = ""
    alignment: int = 1
    arena_bytes: int = 0
    lower_bound: int = 0
    footprint_bytes: int = 0
    peak_bytes: int = 0
    peak_tick: int = 0
    peak_operator: str = ""
    possible_peak_bytes: int = 0
    constants_bytes: int = 0
    ticks: int = 0
    stages: int = 1
    clock: str = UNTIMED
    threads: int = 1

    @property
    def is_timed(self) -> bool:
        """Whether events have seconds."""
        return self.clock != UNTIMED


@frozen(eq=False)
class Trace:
    """A run told as events, in order. Each iteration makes them anew, one by one, so that any number fits in memory."""

    facts: RunInfo
    _events: Callable[[], Iterator[Event]] = field(repr=False)

    def __iter__(self) -> Iterator[Event]:
        return self._events()
