"""The trace of a run in stages: one stream of events, in which a tensor that lives across stages appears once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import accumulate, zip_longest
from operator import or_
from typing import Any

import numpy as np
from attrs import define, evolve, field

from allocator.problem import Bound, Column, Plan, column
from engine.planning.reserved import BOUNDARY_BYTES
from engine.stages.stage import Stage
from engine.system.timing import Timing
from engine.trace.buffers import Buffers, buffers_of
from engine.trace.build import IN_TICKS, build_trace, check, check_timings, run_info
from engine.trace.details import Details, FindDetails, joined
from engine.trace.event_table import CODE, EventTable, Rows, TensorLabel, rows_of
from engine.trace.planned import planned_events
from engine.trace.timed import timed_events
from engine.trace.trace import ALLOC, FREE, GROW, MEASURED, NOT_RUN, NOTHING, OVERWRITE, STAGE, UNTIMED, RunInfo, Trace


def trace_stages(
    stages: Sequence[Stage], mode: str = "static", *, heap: str = "", timings: Sequence[Timing] = ()
) -> Trace:
    """Returns all events of the stages of a run, in order; ticks go on from stage to stage.

    See `engine.trace.build.trace`. A stage begins with an event of the kind "stage": `bytes` is its arena, `tensor`
    names the tensors that decided its sizes. Tensors that it takes over are not allocated again, and those that it
    leaves to the next stage are not freed. Raises OptionError, UnknownHeapError.
    """
    check(mode, heap, IN_TICKS, policy="")
    check_timings(timings, _calls(stages))
    builder, begin = _StageTrace(mode), 0.0 if timings else NOT_RUN
    for stage, after in _in_pairs(stages):
        ran = [evolve(t, tick=t.tick - builder.tick) for t in timings if 0 <= t.tick - builder.tick < _ticks(stage)]
        table = timed_events(stage.plan, ran, mode) if timings else planned_events(stage.plan, mode)
        builder.add_stage(stage, after, table, begin)
        begin = max((t.end for t in ran), default=begin)
    info = evolve(_run_info(stages, mode), heap=heap, ticks=builder.tick, clock=MEASURED if timings else UNTIMED)
    return build_trace(builder.finished(), info)


def _calls(stages: Sequence[Stage]) -> list[int]:
    """Returns the ticks of all calls, which go on from stage to stage."""
    starts = accumulate((_ticks(stage) for stage in stages), initial=0)
    return [
        start + call.tick for start, stage in zip(starts, stages, strict=False) for call in stage.plan.lowered.calls
    ]


def _run_info(stages: Sequence[Stage], mode: str) -> RunInfo:
    plans = [stage.plan for stage in stages]
    first = run_info(plans[0], mode)
    arena = max(stage.arena_bytes for stage in stages)
    memory = reduce(or_, (plan.weight_memory for plan in plans))
    most = max(stages, key=_bound)
    bound, reason = _bound(most), f"{most.plan.plan.bound.reason} of stage {stages.index(most) + 1}"
    return evolve(
        first,
        model=first.model.rpartition(":")[0],  # the name of a stage ends in its number
        strategy=", ".join(dict.fromkeys(plan.plan.strategy for plan in plans)),
        status=str(Plan(np.zeros(0), arena, Bound(bound), "").status),
        arena_bytes=arena,
        lower_bound=bound,
        bound_reason=reason,
        weights_bytes=memory.weights_bytes,
        prepacked_bytes=memory.prepacked_bytes,
        resident_weights_bytes=memory.resident_weights_bytes,
        stages=len(stages),
    )


def _bound(stage: Stage) -> int:
    return stage.plan.plan.lower_bound - BOUNDARY_BYTES * len(stage.after.boundaries)


@define(eq=False)
class _StageTrace:
    """The events so far. Chunks are numbered anew; `handed` has the chunks that the next stage takes over, by tensor.

    `sizes` (bytes), `places` and `paddings` are by chunk. A chunk in several stages has the least bytes of all, as its
    padding may be less where others are pinned behind it.
    """

    mode: str
    tick: int = 0
    parts: list[Rows] = field(factory=list)
    operators: list[tuple[str, str]] = field(factory=list)
    labels: list[TensorLabel] = field(factory=list)
    sizes: list[int] = field(factory=list)
    places: list[int] = field(factory=list)
    paddings: list[int] = field(factory=list)
    handed: Mapping[str, int] = field(factory=dict)
    decided: tuple[str, ...] = ()
    arena_bytes: int = 0
    find_details: list[tuple[FindDetails, int, Column]] = field(factory=list)

    def add_stage(self, stage: Stage, after: Sequence[str], table: EventTable, begin: float) -> None:
        """Adds a stage, which began after `begin` seconds; `after` names the tensors that stay alive after it."""
        buffers, lowered = buffers_of(stage.plan, self.mode), stage.plan.lowered
        taken = _chunks(stage, buffers, {name: lowered.inputs[name] for name in self.handed})
        left = _chunks(stage, buffers, {name: lowered.outputs[name] for name in after})
        numbers = self._numbers(buffers, {chunk: self.handed[name] for name, chunk in taken.items()})
        rows = _own(table.rows, list(taken.values()), list(left.values()))
        for name in ("chunk", "overwrites"):
            rows[name] = np.append(numbers, NOTHING)[rows[name]]
        rows["tick"] += self.tick
        rows["seconds"] = np.maximum(rows["seconds"], begin)  # nothing happens before its stage begins
        self.find_details.append((table.find_details, self.tick, numbers))
        self._add([*self._stage_events(stage, begin), rows], stage.number, table)
        self.handed = {name: int(numbers[chunk]) for name, chunk in left.items()}
        self.tick, self.decided = self.tick + _ticks(stage), tuple(stage.reads.values())

    def finished(self) -> EventTable:
        """Returns all stages, with the final bytes of the chunks."""
        rows = np.concatenate(self.parts) if self.parts else rows_of(0)
        sized = np.isin(rows["kind"], [CODE[ALLOC], CODE[OVERWRITE], CODE[FREE]])
        rows["bytes"][sized] = np.array(self.sizes, np.int64)[rows["chunk"][sized]]
        tables = tuple(self.operators), tuple(self.labels)
        floats, find = self.mode == "dynamic", partial(_details, tuple(self.find_details))
        return EventTable(rows, *tables, self.places, self.paddings, floats=floats, find_details=find)

    def _numbers(self, buffers: Buffers, handed: Mapping[int, int]) -> Column:
        """Returns the number of each chunk of a stage; `handed` has those that exist already."""
        numbers, columns = list[int](), (buffers.chunks.size, buffers.offset, buffers.padding)
        for chunk, columns_of_chunk in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            number = handed.get(chunk, len(self.sizes))
            for table, value in zip((self.sizes, self.places, self.paddings), columns_of_chunk, strict=True):
                table[number : number + 1] = [min((value, *table[number : number + 1]))]
            numbers.append(number)
        return column(numbers)

    def _stage_events(self, stage: Stage, begin: float) -> Iterator[Rows]:
        """Yields the events of the beginning of the stage and of the growth of the arena."""
        thread = NOT_RUN if begin == NOT_RUN else 0
        when: dict[str, Any] = {"tick": self.tick, "seconds": begin, "thread": thread}
        before = self.arena_bytes
        if self.mode == "static":
            self.arena_bytes = max(before, stage.arena_bytes)
        yield rows_of(1, kind=CODE[STAGE], operator=_THE_STAGE, label=_DECIDED, bytes=self.arena_bytes, **when)
        if self.arena_bytes > before:
            yield rows_of(1, kind=CODE[GROW], bytes=self.arena_bytes - before, **when)

    def _add(self, parts: Sequence[Rows], number: int, table: EventTable) -> None:
        """Adds rows of a stage; its operators and labels come behind those of the stage event."""
        operators = [(f"{STAGE} {number}", ""), *table.operators]
        labels = [*table.labels, TensorLabel(", ".join(self.decided))]
        rows = np.concatenate(parts)
        rows["stage"] = number
        rows["operator"] += len(self.operators) + 1
        rows["label"][rows["label"] == _DECIDED] = len(labels) - 1
        rows["label"] += len(self.labels)
        self.parts.append(rows)
        self.operators += operators
        self.labels += labels


def _details(stages: Sequence[tuple[FindDetails, int, Column]]) -> Details:
    return joined([find().moved(tick, numbers) for find, tick, numbers in stages])


_THE_STAGE = -1
"""The operator of what happens between two stages."""
_DECIDED = -1
"""The label that says what decided the sizes of a stage."""


def _own(rows: Rows, inherited: Sequence[int], kept: Sequence[int]) -> Rows:
    """Returns the rows without the growth of the arena, and without allocating and freeing across stages."""
    kind, chunk = rows["kind"], rows["chunk"]
    again = (kind == CODE[ALLOC]) & np.isin(chunk, inherited)
    stays_alive = (kind == CODE[FREE]) & np.isin(chunk, kept)
    own: Rows = rows[~(again | stays_alive | (kind == CODE[GROW]))]
    return own


def _ticks(stage: Stage) -> int:
    """Returns the ticks of a stage: its calls, feeding and fetching."""
    return stage.ticks


def _in_pairs(stages: Sequence[Stage]) -> Iterator[tuple[Stage, tuple[str, ...]]]:
    """Yields each stage with the tensors that the next one takes over."""
    for stage, after in zip_longest(stages, stages[1:]):
        yield stage, tuple(after.plan.lowered.inputs) if after else ()


def _chunks(stage: Stage, buffers: Buffers, values: Mapping[str, int]) -> dict[str, int]:
    """Returns the chunks of some tensors."""
    return {name: int(buffers.chunks.chunk_of[stage.plan.ids[value]]) for name, value in values.items()}
