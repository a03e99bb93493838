"""Curves over time: live bytes, the size of the memory, the lower bound, the budget and the peak.

A curve has one value a column. A column is a tick, or a pixel where ticks are narrower than that.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from engine.pictures.frame import SMALL, Panel
from engine.pictures.plot_data import PlotData
from engine.pictures.shapes import Circle, Polygon, Polyline, Shape, TextLabel
from engine.pictures.wording import fitted, text_width
from engine.text.names import printable
from engine.text.units import format_bytes
from ops.tensor.spec import Array


def column_edges(last: float, pixels: int, timed: bool) -> Array:
    """Returns the edges of the columns from 0 to `last`, one more than there are columns."""
    whole = not timed and last <= pixels
    return np.arange(last + 1) if whole else np.linspace(0, last, pixels + 1)


def skyline(edges: Array, begin: Array, end: Array, top: Array) -> Array:
    """Returns for each column the highest `top` of the intervals [begin, end) that meet it."""
    first = np.searchsorted(edges, begin, side="right") - 1
    past = np.searchsorted(edges, end, side="left")
    highest = np.zeros(len(edges) - 1)
    for i in np.argsort(top, kind="stable").tolist():
        highest[first[i] : past[i]] = top[i]
    return highest


def column_maximum(edges: Array, times: Array, values: Array) -> Array:
    """Returns for each column the maximum of a value that holds from its time to the next one. Times ascend."""
    count = len(edges) - 1
    before = np.searchsorted(times, edges[:-1], side="right") - 1
    highest = np.where(before >= 0, values[np.maximum(before, 0)] if len(values) else 0, 0).astype(float)
    column = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, count - 1)
    np.maximum.at(highest, column, values)
    return highest


def stairs(edges: Array, values: Array) -> list[tuple[float, float]]:
    """Returns the corners of a line that has a value in each column; points on a straight part are left out."""
    changes = np.flatnonzero(np.diff(values)) + 1
    starts = [0, *changes.tolist(), len(values)]
    corners = list[tuple[float, float]]()
    for first, past in pairwise(starts):
        corners += [(float(edges[first]), float(values[first])), (float(edges[past]), float(values[first]))]
    return corners


def draw_curves(data: PlotData, area: Panel) -> Iterator[Shape]:
    """Yields live bytes as an area, the footprint as a line, bound and budget as dashed lines, the peak as a dot."""
    edges = column_edges(data.last, int(area.width), data.timed)
    live = stairs(edges, column_maximum(edges, data.times, data.live))
    yield Polygon(area.points([(0.0, 0.0), *live, (data.last, 0.0)]), "live")
    yield Polyline(area.points(live), "live_line", 1.2)
    yield Polyline(area.points(stairs(edges, column_maximum(edges, data.times, data.footprint))), "footprint", 1.2)
    if data.bound:
        yield Polyline(area.points([(0, data.bound), (data.last, data.bound)]), "bound", 1.2, 5)
    yield from draw_budget(data, area)
    yield draw_peak_line(data, area)
    yield Circle(area.across.at(_peak_time(data)), area.up.at(data.facts.peak_bytes), 3.5, "peak")


def draw_budget(data: PlotData, area: Panel) -> Iterator[Shape]:
    """Yields the budget as a dashed line, where there is one and the plot is high enough for it."""
    if 0 < data.budget <= area.up.last:
        yield Polyline(area.points([(0, data.budget), (data.last, data.budget)]), "budget", 1.6, 9)


def _peak_time(data: PlotData) -> float:
    """Returns the middle of the peak's tick, or the second at which the peak is reached."""
    if not data.timed:
        return min(data.facts.peak_tick + 0.5, data.last)
    return float(data.times[data.live.argmax()]) if len(data.times) else 0.0


def draw_peak_line(data: PlotData, area: Panel) -> Shape:
    """Returns the vertical line at the time of the peak."""
    x = area.across.at(_peak_time(data))
    return Polyline(((x, area.top), (x, area.bottom)), "peak", 1, 2)


def draw_peak_label(data: PlotData, area: Panel, y: float) -> Shape:
    """Returns the size and the operator of the peak as a text beside its line, on the side that has space."""
    x = area.across.at(_peak_time(data))
    where = printable(data.facts.peak_operator, 60)
    label = f"peak {format_bytes(data.facts.peak_bytes)}{where and f' at {where}'}"
    right, left = area.right - x - 6, x - 6 - area.left
    if text_width(label, SMALL) <= right or right >= left:
        return TextLabel(x + 6, y, fitted(label, SMALL, right), SMALL, "peak", "start", True)
    return TextLabel(x - 6, y, fitted(label, SMALL, left), SMALL, "peak", "end", True)
