"""What a picture shows: the chunks and the curves of a run, on one axis of ticks or of seconds."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from engine.pictures.columns import ranked
from engine.pictures.wording import printable
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOTHING, RunInfo
from ops.tensor.spec import Array

_NO_KIND = "other"
NAMELESS = "(no name)"
_MOST_STAGES = 100


@frozen(eq=False)
class PlotData:
    """`begin` and `end` of chunks, `times` of the curves and `last` are ticks, or seconds if `timed`; the rest bytes.

    `kinds` are what made chunks, those with most bytes first; `kind` is a chunk's place among them.
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
        """Whether anything lies anywhere."""
        return self.rectangles.has_places and len(self.low) > 0

    @property
    def bound(self) -> int:
        """Bytes that no plan can do without; 0 where no plan ran."""
        return self.facts.lower_bound if self.facts.mode == "static" else 0

    @property
    def operators(self) -> Iterator[tuple[int, str]]:
        """By tick."""
        return ((ran.tick, ran.name) for ran in self.rectangles.operators)

    @property
    def stage_starts(self) -> tuple[float, ...]:
        """Of all stages but the first, if they are not too many to be told apart."""
        starts = tuple(stage.seconds if self.timed else float(stage.tick) for stage in self.rectangles.stages[1:])
        return starts if len(starts) <= _MOST_STAGES else ()

    @property
    def ceiling(self) -> int:
        """The highest address, or most that is held."""
        tops = [int(column.max(initial=0)) for column in (self.high, self.footprint, self.live)]
        return max(1, self.facts.arena_bytes if self.facts.mode == "static" else 0, *tops)

    def title(self, chunk: int) -> str:
        """Lines about a chunk."""
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
    """On an axis of seconds if the run was timed."""
    facts, timed = rectangles.facts, rectangles.facts.is_timed
    begin, end = (rectangles.born, rectangles.died) if timed else (rectangles.begin, _shown_until(rectangles))
    times = rectangles.time if timed else rectangles.tick
    schema = tuple(s or r or _NO_KIND for s, r in zip(rectangles.schema, rectangles.role, strict=True))
    kinds = ranked(schema, rectangles.size)
    place = {name: i for i, name in enumerate(kinds)}
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
        kinds=tuple(kinds),
        kind=np.array([place[name] for name in schema], dtype=int),
        times=times[settled],
        live=rectangles.live[settled],
        footprint=rectangles.footprint[settled],
    )


def _shown_until(rectangles: Rectangles) -> Array:
    """In the tick of an overwrite both are alive; where it covers all of the other, only itself can be seen."""
    heirs = np.flatnonzero(rectangles.overwrites != NOTHING)
    heads, top = rectangles.overwrites[heirs], rectangles.offset + rectangles.size
    hidden = (rectangles.offset[heirs] <= rectangles.offset[heads]) & (top[heirs] >= top[heads])
    until = rectangles.end.copy()
    until[heads[hidden]] = rectangles.begin[heirs[hidden]]
    return until


def _settled(times: Array, live: Array) -> Array:
    """All points of a curve but those in the middle of a fall that takes no time: several are freed in one tick."""
    falls = np.diff(live, prepend=0) < 0
    goes_on = np.append(falls[1:] & (np.diff(times) == 0), False)[: len(live)]
    settled: Array = ~(falls & goes_on)
    return settled
