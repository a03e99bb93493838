"""The data of a picture: the chunks and the curves of a run, on one axis of ticks or of seconds."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from engine.text.names import printable
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOTHING, RunInfo
from ops.tensor.spec import Array

_NO_KIND = "other"
NAMELESS = "(no name)"
_MOST_STAGES = 100
HEADROOM = 0.12
"""Share of all bytes that is left free above the curves."""


@frozen(eq=False)
class PlotData:
    """Chunks and curves in plot coordinates.

    `begin` and `end` of chunks, `times` of the curves and `last` are ticks, or seconds if `timed`; `low`, `high`,
    `live` and `footprint` are bytes. `kinds` are the kinds of operators that wrote chunks, those with most bytes first;
    `kind` is the index of a chunk's kind.
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
        """The highest address or the largest footprint, whichever is larger; at least 1."""
        tops = [int(column.max(initial=0)) for column in (self.high, self.footprint, self.live)]
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
        place = f" at {self.low[chunk]:,}" if rectangles.has_places else ""
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
    facts, timed = rectangles.facts, rectangles.facts.is_timed
    begin, end = (rectangles.born, rectangles.died) if timed else (rectangles.begin, _shown_until(rectangles))
    times = rectangles.time if timed else rectangles.tick
    schema = tuple(s or r or _NO_KIND for s, r in zip(rectangles.schema, rectangles.role, strict=True))
    kinds, kind = _ranked(schema, rectangles.size)
    settled = _settled(times, rectangles.live)
    return PlotData(
        rectangles=rectangles,
        facts=facts,
        timed=timed,
        last=float(max(0 if timed else facts.ticks, end.max(initial=0), times.max(initial=0))) or 1.0,
        begin=begin.astype(float),
        end=end.astype(float),
        low=rectangles.offset,
        high=rectangles.offset + rectangles.size,
        kinds=kinds,
        kind=kind,
        times=times[settled],
        live=rectangles.live[settled],
        footprint=rectangles.footprint[settled],
    )


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
