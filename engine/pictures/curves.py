"""What is alive and what is held over time, with the lower bound and the peak."""

from collections.abc import Iterator

from engine.pictures.columns import column_edges, most, stairs
from engine.pictures.frame import SMALL, Panel
from engine.pictures.plot_data import PlotData
from engine.pictures.shapes import Circle, Polygon, Polyline, Shape, TextLabel
from engine.pictures.wording import fitted, printable, text_width
from engine.text.units import format_bytes


def draw_curves(data: PlotData, area: Panel) -> Iterator[Shape]:
    """Live bytes as an area, what is held as a line above it, the lower bound dashed, the peak a dot with its words."""
    edges = column_edges(data.last, int(area.width), data.timed)
    live = stairs(edges, most(edges, data.times, data.live))
    yield Polygon(area.points([(0.0, 0.0), *live, (data.last, 0.0)]), "live")
    yield Polyline(area.points(live), "live_line", 1.2)
    yield Polyline(area.points(stairs(edges, most(edges, data.times, data.footprint))), "footprint", 1.2)
    if data.bound:
        yield Polyline(area.points([(0, data.bound), (data.last, data.bound)]), "bound", 1.2, 5)
    yield from draw_peak_line(data, area)
    yield from _peak(data, area)


def peak_time(data: PlotData) -> float:
    """The middle of the peak's tick, or the second at which it is reached."""
    if not data.timed:
        return min(data.facts.peak_tick + 0.5, data.last)
    return float(data.times[data.live.argmax()]) if len(data.times) else 0.0


def draw_peak_line(data: PlotData, area: Panel) -> Iterator[Shape]:
    """Through a plot, where the peak is."""
    x = area.across.at(peak_time(data))
    yield Polyline(((x, area.top), (x, area.bottom)), "peak", 1, 2)


def _peak(data: PlotData, area: Panel) -> Iterator[Shape]:
    """A dot."""
    yield Circle(area.across.at(peak_time(data)), area.up.at(data.facts.peak_bytes), 3.5, "peak")


def name_peak(data: PlotData, area: Panel, y: float) -> Iterator[Shape]:
    """What the peak is, beside its line, on the side that has room."""
    x = area.across.at(peak_time(data))
    where = printable(data.facts.peak_operator, 60)
    words = f"peak {format_bytes(data.facts.peak_bytes)}{where and f' at {where}'}"
    right, left = area.right - x - 6, x - 6 - area.left
    if text_width(words, SMALL) <= right or right >= left:
        yield TextLabel(x + 6, y, fitted(words, SMALL, right), SMALL, "peak", "start", True)
    else:
        yield TextLabel(x - 6, y, fitted(words, SMALL, left), SMALL, "peak", "end", True)
