"""The data of a picture: the chunks and the curves of a run, on one axis of ticks or of seconds."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import evolve, frozen

from engine.text.names import printable
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOT_RUN, NOTHING, RunInfo
from ops.tensor.spec import Array

_NO_KIND = "other"
NAMELESS = "(no name)"
_MOST_STAGES = 100
HEADROOM = 0.12
"""Share of all bytes that is left free above the curves."""


@frozen
class Lane:
    """A memory of the map, or the one arena: what it is called above its plot, and the bytes that are drawn."""

    title: str
    bytes: int


@frozen(eq=False)
class PlotData:
    """Chunks and curves in plot coordinates.

    `begin` and `end` of chunks, `times` of the curves and `last` are ticks, or seconds if `timed`; `low`, `high`,
    `live` and `footprint` are bytes. `kinds` are the kinds of operators that wrote chunks, those with most bytes first;
    `kind` is the index of a chunk's kind. Each row lies in lane `lane`, from whose first byte `low` and `high` count.
    Behind the `tensors` rows of chunks, there are those of the weights, where these lie in lanes.
    """

    rectangles: Rectangles
    facts: RunInfo
    timed: bool
    last: float
    begin: Array
    end: Array
    low: Array
    high: Array
    kinds: tuple[str, ...]
    kind: Array
    times: Array
    live: Array
    footprint: Array
    lane: Array
    tensors: int

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """The memories that chunks lie in, the first at the bottom; one without a name where there is one arena."""
        if not self.facts.memories:
            return (Lane("", self.ceiling),)
        has_weights = bool(self.rectangles.weights)  # a saved trace has none
        parts = ((part, part.used_bytes if has_weights else part.arena_bytes) for part in self.facts.memories)
        return tuple(Lane(part.title, max(1, size)) for part, size in parts)

    @property
    def has_addresses(self) -> bool:
        """True if there are chunks with addresses."""
        return self.rectangles.has_places and len(self.low) > 0

    @property
    def bound(self) -> int:
        """The lower bound in bytes; 0 where no plan ran."""
        return self.facts.lower_bound if self.facts.mode == "static" else 0

    @property
    def budget(self) -> int:
        """The budget in bytes; 0 where there is none, or it is too far above all bytes to be drawn."""
        budget = self.facts.budget_bytes
        return budget if budget <= self.ceiling * (1 + HEADROOM) else 0

    @property
    def operators(self) -> Iterator[tuple[int, str]]:
        """The tick and the name of each operator."""
        return ((ran.tick, ran.name) for ran in self.rectangles.operators)

    @property
    def stage_starts(self) -> tuple[float, ...]:
        """The ticks in which all stages but the first start; empty where they are too many to be drawn apart."""
        starts = tuple(stage.seconds if self.timed else float(stage.tick) for stage in self.rectangles.stages[1:])
        return starts if len(starts) <= _MOST_STAGES else ()

    @property
    def ceiling(self) -> int:
        """The highest address in one arena or the largest footprint, whichever is larger; at least 1."""
        high = self.high[: 0 if self.facts.memories else None]
        tops = [int(column.max(initial=0)) for column in (high, self.footprint, self.live)]
        return max(1, self.facts.arena_bytes if self.facts.mode == "static" else 0, *tops)

    def title(self, chunk: int) -> str:
        """Returns lines that describe a chunk."""
        rectangles = self.rectangles
        what = " ".join(
            filter(
                None,
                (rectangles.schema[chunk], rectangles.shape[chunk], rectangles.dtype[chunk], rectangles.role[chunk]),
            )
        )
        where = f" in {self.facts.memories[self.lane[chunk]].name}" if self.facts.memories else ""
        place = f" at {self.low[chunk]:,}{where}" if rectangles.has_places else ""
        size, padding = int(rectangles.size[chunk]), int(rectangles.padding[chunk])
        loss = f", {padding} B of them padding" if padding else ""
        lines = [
            printable(rectangles.name[chunk]) or NAMELESS,
            printable(what),
            f"{format_bytes(size)}{place}{loss}",
            f"ticks {rectangles.begin[chunk]} to {rectangles.end[chunk]}",
        ]
        if rectangles.overwrites[chunk] != NOTHING:
            lines.append(f"takes the bytes of {printable(rectangles.name[rectangles.overwrites[chunk]])}")
        return "\n".join(filter(None, lines))


def plot_data_of(rectangles: Rectangles) -> PlotData:
    """Returns the data of a run, on an axis of seconds if it was timed."""
    tensors = len(rectangles)
    if rectangles.facts.memories:
        rectangles = _with_weights(rectangles)
    facts, timed = rectangles.facts, rectangles.facts.is_timed
    begin, end = (rectangles.born, rectangles.died) if timed else (rectangles.begin, _shown_until(rectangles))
    times = rectangles.time if timed else rectangles.tick
    schema = tuple(s or r or _NO_KIND for s, r in zip(rectangles.schema, rectangles.role, strict=True))
    kinds, kind = _ranked(schema, rectangles.size)
    settled = _settled(times, rectangles.live)
    lane, low = _in_lanes(rectangles, tensors)
    return PlotData(
        rectangles=rectangles,
        facts=facts,
        timed=timed,
        last=float(max(0 if timed else facts.ticks, end.max(initial=0), times.max(initial=0))) or 1.0,
        begin=begin.astype(float),
        end=end.astype(float),
        low=low,
        high=low + rectangles.size,
        kinds=kinds,
        kind=kind,
        times=times[settled],
        live=rectangles.live[settled],
        footprint=rectangles.footprint[settled],
        lane=lane,
        tensors=tensors,
    )


def _with_weights(rectangles: Rectangles) -> Rectangles:
    """Returns the rectangles of a run in several memories, with a row for each weight, alive all the time, behind."""
    weights, facts = rectangles.weights, rectangles.facts
    end = max(facts.ticks, int(rectangles.end.max(initial=0)))
    numbers: dict[str, Any] = {
        "begin": 0, "end": end,
        "born": 0.0 if facts.is_timed else NOT_RUN, "died": rectangles.died.max(initial=NOT_RUN),
        "offset": [w.offset for w in weights], "size": [w.bytes for w in weights], "padding": 0, "overwrites": NOTHING,
        "stage": NOTHING, "thread": NOT_RUN,
    }  # fmt: skip
    texts = {"operator": "", "schema": "", "role": "weight"}
    texts_of = {n: tuple(getattr(w, n) for w in weights) for n in ("name", "shape", "dtype", "reason")}
    texts_of |= {name: (text,) * len(weights) for name, text in texts.items()}
    columns: dict[str, Any] = {
        name: np.concatenate((getattr(rectangles, name), np.broadcast_to(values, len(weights))))
        for name, values in numbers.items()
    }
    columns |= {name: getattr(rectangles, name) + values for name, values in texts_of.items()}
    return evolve(rectangles, **columns)


def _in_lanes(rectangles: Rectangles, tensors: int) -> tuple[Array, Array]:
    """Returns the lane of each row, and its first byte there; all rows but the `tensors` first are weights."""
    lane, low = np.zeros(len(rectangles), np.int64), rectangles.offset.copy()
    if rectangles.facts.memories:
        lane[tensors:] = [weight.memory for weight in rectangles.weights]
        for m, part in enumerate(rectangles.facts.memories):
            is_in = (part.start <= low[:tensors]) & (low[:tensors] < part.start + part.arena_bytes)
            lane[:tensors][is_in] = m
        starts = np.array([part.start for part in rectangles.facts.memories])
        low[:tensors] -= starts[lane[:tensors]]
    return lane, low


def _ranked(kinds: tuple[str, ...], weight: Array) -> tuple[tuple[str, ...], Array]:
    """Returns the kinds by their total weight, the heaviest first, and the place of each of `kinds` among them."""
    names = sorted(set(kinds))
    number = {name: i for i, name in enumerate(names)}
    numbers = np.array([number[kind] for kind in kinds], dtype=int)
    order = np.argsort(-np.bincount(numbers, weights=weight, minlength=len(names)), kind="stable")
    return tuple(names[i] for i in order), np.argsort(order)[numbers]


def _shown_until(rectangles: Rectangles) -> Array:
    """Returns the ticks until which chunks are drawn.

    In the tick of an overwrite both chunks are alive; one that is covered as a whole by the other is not drawn there.
    """
    over = np.flatnonzero(rectangles.overwrites != NOTHING)
    under, top = rectangles.overwrites[over], rectangles.offset + rectangles.size
    hidden = (rectangles.offset[over] <= rectangles.offset[under]) & (top[over] >= top[under])
    until = rectangles.end.copy()
    until[under[hidden]] = rectangles.begin[over[hidden]]
    return until


def _settled(times: Array, live: Array) -> Array:
    """Returns which points of a curve are drawn: not those between several frees at one time."""
    falls = np.diff(live, prepend=0) < 0
    goes_on = np.append(falls[1:] & (np.diff(times) == 0), False)[: len(live)]
    settled: Array = ~(falls & goes_on)
    return settled
