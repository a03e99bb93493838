"""What is alive and what is held over time, with the lower bound and the peak."""

from collections.abc import Iterator

from engine.pictures.columns import column_edges, most, stairs
from engine.pictures.frame import SMALL, Panel
from engine.pictures.shapes import Area, Dot, Line, Shape, Text
from engine.pictures.subject import Subject
from engine.pictures.wording import fitted, printable, text_width
from engine.text.units import format_bytes


def draw_curves(subject: Subject, area: Panel) -> Iterator[Shape]:
    """Live bytes as an area, what is held as a line above it, the lower bound dashed, the peak a dot with its words."""
    edges = column_edges(subject.last, int(area.width), subject.timed)
    live = stairs(edges, most(edges, subject.times, subject.live))
    yield Area(area.points([(0.0, 0.0), *live, (subject.last, 0.0)]), "live")
    yield Line(area.points(live), "live_line", 1.2)
    yield Line(area.points(stairs(edges, most(edges, subject.times, subject.footprint))), "footprint", 1.2)
    if subject.bound:
        yield Line(area.points([(0, subject.bound), (subject.last, subject.bound)]), "bound", 1.2, 5)
    yield from draw_peak_line(subject, area)
    yield from _peak(subject, area)


def peak_time(subject: Subject) -> float:
    """The middle of the peak's tick, or the second at which it is reached."""
    if not subject.timed:
        return min(subject.facts.peak_tick + 0.5, subject.last)
    return float(subject.times[subject.live.argmax()]) if len(subject.times) else 0.0


def draw_peak_line(subject: Subject, area: Panel) -> Iterator[Shape]:
    """Through a plot, where the peak is."""
    x = area.across.at(peak_time(subject))
    yield Line(((x, area.top), (x, area.bottom)), "peak", 1, 2)


def _peak(subject: Subject, area: Panel) -> Iterator[Shape]:
    """A dot."""
    yield Dot(area.across.at(peak_time(subject)), area.up.at(subject.facts.peak_bytes), 3.5, "peak")


def name_peak(subject: Subject, area: Panel, y: float) -> Iterator[Shape]:
    """What the peak is, beside its line, on the side that has room."""
    x = area.across.at(peak_time(subject))
    where = printable(subject.facts.peak_operator, 60)
    words = f"peak {format_bytes(subject.facts.peak_bytes)}{where and f' at {where}'}"
    right, left = area.right - x - 6, x - 6 - area.left
    if text_width(words, SMALL) <= right or right >= left:
        yield Text(x + 6, y, fitted(words, SMALL, right), SMALL, "peak", "start", True)
    else:
        yield Text(x - 6, y, fitted(words, SMALL, left), SMALL, "peak", "end", True)
