"""The events of a run that keeps within a budget: what is evicted, and which operators run again.

A tick is a run of an operator, and a chunk that is computed again is another chunk: as many ticks and chunks as things
that happen. An `evict` stands before the `free` of a chunk that goes although somebody still reads it.
"""

from collections.abc import Sequence

import numpy as np
from attrs import define, evolve, field

from allocator.eviction.evict import Act
from allocator.heaps.growing import BEST_FIT
from engine.executor.evicting import EvictingExecutor
from engine.lower.calls import Call, Instruction, Lowered
from engine.lower.roles import AGAIN, roles_of
from engine.system.timing import Timing
from engine.text.errors import OptionError
from engine.trace.build import IN_TICKS, build_trace, check, run_info
from engine.trace.event_table import CODE, NO_TENSOR, EventTable, TensorLabel, label_of, rows_of
from engine.trace.planned import written
from engine.trace.trace import (
    ALLOC,
    BEGIN,
    END,
    EVICT,
    FREE,
    GROW,
    MEASURED,
    NOT_RUN,
    NOTHING,
    OVERWRITE,
    UNTIMED,
    VIEW,
    Trace,
)

_EMPTY = {"label": NO_TENSOR, "chunk": NOTHING, "inside": 0, "bytes": 0, "overwrites": NOTHING}


def trace_evicting(
    executor: EvictingExecutor, heap: str = "", threads: int = IN_TICKS, timings: Sequence[Timing] = ()
) -> Trace:
    """Returns all memory events of a run of this executor; `timings` are those of such a run, in order.

    Raises OptionError where the run does not lie on the heap model of that name, has other calls, or where its times
    are to be estimated.
    """
    check("dynamic", heap, threads, "")
    if threads and not timings:
        raise OptionError(f"threads={threads}: times of a run that evicts are measured, not estimated")
    if heap not in ("", BEST_FIT.name):
        raise OptionError(f"heap={heap!r}: a run that evicts lies in one block, where {BEST_FIT.name} places it")
    lowered = executor.lowered
    runs = [step for act, step, _ in executor.eviction.acts if act is Act.RUN]
    events = _Events(executor, runs, _moments(lowered, runs, timings))
    for act, one, address in executor.eviction.acts:
        events.enter(act, one, address)
    events.close()
    facts = evolve(
        run_info(executor.plan, "dynamic"),
        budget_bytes=executor.budget,
        ticks=len(runs),
        clock=MEASURED if timings else UNTIMED,
    )
    trace = build_trace(events.table(), facts)
    return evolve(trace, facts=evolve(trace.facts, heap=BEST_FIT.name))


def _moments(lowered: Lowered, runs: Sequence[int], timings: Sequence[Timing]) -> list[tuple[float, float]]:
    """Returns when each run begins and ends, in seconds; what is no call takes no time. Raises OptionError."""
    if not timings:
        return []
    calls = [s for s in runs if 0 < s <= len(lowered.instructions) and isinstance(lowered.instructions[s - 1], Call)]
    if [timing.tick for timing in timings] != calls:
        count = f"they have {len(timings)} calls, this run has {len(calls)}"
        raise OptionError(f"these timings are of another run: {count}")
    left, moments, now = list(reversed(timings)), list[tuple[float, float]](), 0.0
    for step in runs:
        begin = now
        if left and left[-1].tick == step:
            timing = left.pop()
            begin, now = timing.begin, timing.end
        moments.append((begin, now))
    return moments


@define(eq=False)
class _Events:
    """The rows so far. `chunk` is the number of the newest chunk of each that the allocator knows; `runs` are steps.

    `number` is the allocator's number of the chunk that belongs to a value.
    """

    executor: EvictingExecutor
    runs: Sequence[int]
    moments: Sequence[tuple[float, float]]
    rows: list[dict[str, float]] = field(factory=list)
    place: list[int] = field(factory=list)
    chunk: dict[int, int] = field(factory=dict)
    tick: int = 0
    is_begun: bool = False
    number: dict[int, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.number = {value: chunk for chunk, value in enumerate(self.executor.owners)}

    def enter(self, act: Act, one: int, address: int) -> None:
        """Takes the next act."""
        match act:
            case Act.BEGIN:
                self._begin_call()
                self._arrive(one, address, ALLOC)
            case Act.RUN:
                self._run(one)
            case Act.EVICT:
                self._add(EVICT, one)
                self._add(FREE, one)
            case Act.END:
                self._add(FREE, one)

    def close(self) -> None:
        """Frees what is there to the end."""
        for one in sorted(self.chunk):
            self._add(FREE, one)

    def table(self) -> EventTable:
        """Returns the rows as a table."""
        lowered, seen, operators = self.executor.lowered, set[int](), list[tuple[str, str]]()
        for step in self.runs:
            name = lowered.tick_name(step)
            operators.append((f"{name}/{AGAIN}" if step in seen else name, lowered.tick_kind(step)))
            seen.add(step)
        operators.append(operators[-1])  # what is fetched is freed in a tick behind all others
        roles = roles_of(lowered)
        labels = (TensorLabel(), *(label_of(v, roles[v.id]) for v in lowered.values))
        rows = rows_of(len(self.rows), **{name: [row[name] for row in self.rows] for name in self.rows[0]})
        start = {"seconds": 0.0, "thread": 0} if self.moments else {}
        whole = rows_of(1, kind=CODE[GROW], bytes=self.executor.eviction.peak_reserved, **start)
        return EventTable(np.concatenate((whole, rows)), tuple(operators), labels, self.place, [0] * len(self.place))

    def _run(self, step: int) -> None:
        self._begin_call()
        for overwrite in self.executor.work.overwrites[step]:
            taken = self.chunk.pop(overwrite.src)
            self._arrive(overwrite.out, self.place[taken], OVERWRITE, taken)
        if self._instruction is not None:
            self._add_views(self._instruction)
        if isinstance(self._instruction, Call):
            self._add_row(END)
        self.tick, self.is_begun = self.tick + 1, False

    @property
    def _instruction(self) -> Instruction | None:
        """Returns what runs in this tick; None where the caller feeds or fetches, or all has run."""
        instructions = self.executor.lowered.instructions
        step = self.runs[self.tick] if self.tick < len(self.runs) else 0
        return instructions[step - 1] if 0 < step <= len(instructions) else None

    def _begin_call(self) -> None:
        if not self.is_begun and isinstance(self._instruction, Call):
            self._add_row(BEGIN)
        self.is_begun = True

    def _arrive(self, one: int, address: int, kind: str, taken: int = NOTHING) -> None:
        self.chunk[one] = len(self.place)
        self.place.append(address)
        self._add(kind, one, taken)

    def _add_views(self, instruction: Instruction) -> None:
        executor = self.executor
        for view in (executor.lowered.values[v] for v in written(instruction)):
            chunk = self.chunk.get(self.number.get(view.owner, NOTHING), NOTHING)
            if view.is_view and chunk != NOTHING:
                low, high = view.layout.extent
                self._add_row(VIEW, label=view.id + 1, chunk=chunk, bytes=high - low, inside=low)

    def _add(self, kind: str, one: int, taken: int = NOTHING) -> None:
        """Adds an event of a chunk of the allocator."""
        chunk = self.chunk.pop(one) if kind == FREE else self.chunk[one]
        label, size = self.executor.owners[one] + 1, self.executor.work.size[one]
        self._add_row(kind, label=label, chunk=chunk, bytes=size, overwrites=taken)

    def _add_row(self, kind: str, **columns: int) -> None:
        when = {"seconds": self._time(kind), "thread": 0 if self.moments else NOT_RUN}
        self.rows.append(_EMPTY | columns | when | {"kind": CODE[kind], "tick": self.tick, "operator": self.tick})

    def _time(self, kind: str) -> float:
        """Returns when an event happens: what leaves before a call begins, leaves at the end of the one before."""
        if not self.moments:
            return NOT_RUN
        begin, end = self.moments[min(self.tick, len(self.moments) - 1)]
        if kind == END:
            return end
        if self.is_begun or kind == BEGIN or not self.tick:
            return begin
        return self.moments[self.tick - 1][1]
