"""Lives as a grid of cells, for pictures made of letters: which chunk is where when."""

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from allocator.problem import Column, column
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOTHING

IDLE = -1
"""A cell in which no chunk lies."""
Times = npt.NDArray[np.float64]
Cells = npt.NDArray[np.int64]


@frozen(eq=False)
class Raster:
    """`cells[row, column]` is a life, or IDLE; row 0 has the lowest addresses. A row stands for `row_bytes`.

    Each column stands for a span of time, of which it shows the moment, in `moments`, at which most is alive, so that
    the peak is in the picture, however long the run; `live` has the bytes then.
    """

    cells: Cells
    moments: Times
    live: Column = field(converter=column)
    row_bytes: float

    @property
    def peak(self) -> int:
        """The column in which most is alive, the first of them."""
        return int(self.live.argmax())


def raster(of: Rectangles, columns: int, rows: int) -> Raster:
    """The lives of a run in so many columns and rows.

    A cell shows what lies at its middle.
    """
    start, stop = spans(of)
    moments, live = _moments(start, stop, of.size, _edges(of, stop, columns))
    high = max(of.facts.footprint_bytes, 1)
    cells = np.full((rows, len(moments)), IDLE, np.int64)
    if of.has_places:
        for i, moment in enumerate(moments.tolist()):
            alive = np.flatnonzero((start <= moment) & (moment < stop) & (of.size > 0))
            cells[:, i] = _column(of, alive, (np.arange(rows) + 0.5) * high / rows)
    return Raster(cells, moments, live, high / rows)


def spans(of: Rectangles) -> tuple[Times, Times]:
    """From when to when each life has its bytes to itself: one that is overwritten ends where the other begins."""
    timed = of.facts.is_timed
    start = np.array(of.born if timed else of.begin, np.float64)
    stop = np.array(of.died if timed else of.end, np.float64)
    over = np.flatnonzero(of.overwrites != NOTHING)
    stop[of.overwrites[over]] = start[over]
    return start, stop


def _edges(of: Rectangles, stop: Times, columns: int) -> Times:
    """Where columns begin, and the end."""
    end = float(max(stop.max(initial=0), 0))
    return np.linspace(0, end if of.facts.is_timed else max(end, 1.0), columns + 1)


def _moments(start: Times, stop: Times, size: Column, edges: Times) -> tuple[Times, Column]:
    """Of each column the moment at which most is alive: its beginning, or when a chunk comes in it."""
    left, right = edges[:-1], edges[1:]
    times = np.concatenate((start, stop))
    order = np.argsort(times, kind="stable")
    change = np.concatenate((size, -size))[order]
    last = np.flatnonzero(np.append(np.diff(times[order]) != 0, True))[: len(order)]
    known, alive = times[order][last], np.cumsum(change)[last]
    candidates = np.concatenate((left, known[(known >= 0) & (known < edges[-1])]))
    at = np.searchsorted(known, candidates, side="right") - 1
    live = np.append(alive, 0)[at]
    bucket = np.clip(np.searchsorted(right, candidates, side="right"), 0, len(left) - 1)
    best = np.lexsort((candidates, -live, bucket))
    first = best[np.searchsorted(bucket[best], np.arange(len(left)))]
    return candidates[first], column(live[first])


def _column(of: Rectangles, alive: Column, middle: Times) -> Column:
    """What lies at these addresses. Lives of one moment lie apart."""
    if not len(alive):
        return column(np.full(len(middle), IDLE))
    low = of.offset[alive]
    alive = alive[np.argsort(low, kind="stable")]
    low = of.offset[alive]
    at = np.searchsorted(low, middle, side="right") - 1
    found = alive[np.maximum(at, 0)]
    inside = (at >= 0) & (middle < of.offset[found] + of.size[found])
    return column(np.where(inside, found, IDLE))
