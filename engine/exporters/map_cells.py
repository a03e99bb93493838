"""The cells of a picture of letters: which chunk lies at an address at a time."""

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.problem import Column, column
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOTHING, RunInfo

IDLE = -1
"""A cell in which no chunk lies."""
_FEWEST = 3
"""The fewest rows of a memory."""
Times = npt.NDArray[np.float64]
Cells = npt.NDArray[np.int64]


@frozen
class Band:
    """Rows of a grid that show the bytes from `start` on: those of a memory with that title, or of the one arena."""

    title: str
    start: int
    bytes: int
    rows: int

    def middles(self) -> Times:
        """Returns the address in the middle of each row."""
        return self.start + (np.arange(self.rows) + 0.5) * self.bytes / self.rows


def bands(facts: RunInfo, rows: int) -> tuple[Band, ...]:
    """Returns the bands of a grid: of each memory with tensors, as high as its bytes are many; or one."""
    parts = [part for part in facts.memories if part.arena_bytes]
    if not parts:
        return (Band("", 0, max(facts.footprint_bytes, 1), rows),)
    every = sum(part.arena_bytes for part in parts)
    return tuple(
        Band(part.title, part.start, part.arena_bytes, max(_FEWEST, round(rows * part.arena_bytes / every)))
        for part in parts
    )


@frozen(eq=False)
class Raster:
    """A grid: `cells[row, column]` is a chunk, or IDLE; row 0 has the lowest addresses. A row stands for `row_bytes`.

    In several memories, a row stands for another number of bytes in each of the `bands`.

    Each column stands for a span of time. It shows the time in its span, which `moments` holds, at which the live bytes
    are at their maximum, so that the peak is in the picture, however long the run; `live` holds those bytes.
    """

    cells: Cells
    moments: Times
    live: Column = field(converter=column)
    row_bytes: float
    bands: tuple[Band, ...]

    @property
    def peak(self) -> int:
        """The first column with the most live bytes."""
        return int(self.live.argmax())


def raster(of: Rectangles, columns: int, rows: int) -> Raster:
    """Returns the chunks of a run as a grid of columns and rows. A cell shows the chunk at its middle.

    In several memories, the rows may be a few more.
    """
    start, stop = spans(of)
    moments, live = _moments(start, stop, of.size, _edges(of, stop, columns))
    shown = bands(of.facts, rows)
    middles = np.concatenate([band.middles() for band in shown])
    cells = np.full((len(middles), len(moments)), IDLE, np.int64)
    if of.has_places:
        for i, moment in enumerate(moments.tolist()):
            alive = np.flatnonzero((start <= moment) & (moment < stop) & (of.size > 0))
            cells[:, i] = _column(of, alive, middles)
    return Raster(cells, moments, live, max(of.facts.footprint_bytes, 1) / rows, shown)


def spans(of: Rectangles) -> tuple[Times, Times]:
    """Returns the begin and the end of each chunk; one that is overwritten ends where the other chunk begins."""
    timed = of.facts.is_timed
    start = np.array(of.born if timed else of.begin, np.float64)
    stop = np.array(of.died if timed else of.end, np.float64)
    over = np.flatnonzero(of.overwrites != NOTHING)
    stop[of.overwrites[over]] = start[over]
    return start, stop


def _edges(of: Rectangles, stop: Times, columns: int) -> Times:
    """Returns the times at which columns begin, and the end."""
    end = float(max(stop.max(initial=0), 0))
    return np.linspace(0, end if of.facts.is_timed else max(end, 1.0), columns + 1)


def _moments(start: Times, stop: Times, size: Column, edges: Times) -> tuple[Times, Column]:
    """Returns the time of each column at which most bytes are live, and those bytes.

    It is the begin of the column, or the begin of a chunk in it.
    """
    left, right = edges[:-1], edges[1:]
    times = np.concatenate((start, stop))
    order = np.argsort(times, kind="stable")
    change = np.concatenate((size, -size))[order]
    last = np.flatnonzero(np.append(np.diff(times[order]) != 0, True))[: len(order)]
    changes, alive = times[order][last], np.cumsum(change)[last]
    candidates = np.concatenate((left, changes[(changes >= 0) & (changes < edges[-1])]))
    at = np.searchsorted(changes, candidates, side="right") - 1
    live = np.append(alive, 0)[at]
    bucket = np.clip(np.searchsorted(right, candidates, side="right"), 0, len(left) - 1)
    best = np.lexsort((candidates, -live, bucket))
    first = best[np.searchsorted(bucket[best], np.arange(len(left)))]
    return candidates[first], column(live[first])


def _column(of: Rectangles, alive: Column, middle: Times) -> Column:
    """Returns the chunks at these addresses. The bytes of chunks that are alive at one time are disjoint."""
    if not len(alive):
        return column(np.full(len(middle), IDLE))
    low = of.offset[alive]
    alive = alive[np.argsort(low, kind="stable")]
    low = of.offset[alive]
    at = np.searchsorted(low, middle, side="right") - 1
    below = alive[np.maximum(at, 0)]
    inside = (at >= 0) & (middle < of.offset[below] + of.size[below])
    return column(np.where(inside, below, IDLE))
