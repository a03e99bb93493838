"""The map of several memories: a plot for each, the first at the bottom, and arrows for copies from one to another.

Copies that a copy engine makes beside operators have a strip of their own below the plots.
"""

from collections.abc import Iterator, Sequence

from engine.pictures.chunks import paint_of
from engine.pictures.frame import SMALL, Panel, panel
from engine.pictures.options import PictureOptions
from engine.pictures.plot_data import Lane, PlotData
from engine.pictures.shapes import Polygon, Polyline, Rect, Shape, TextLabel
from engine.pictures.wording import fitted
from engine.text.names import printable
from engine.trace.details import COPY_ENGINE
from engine.trace.rectangles import OperatorRun

_APART, _CLOSE = 19.0, 3.0
"""Pixels between two plots: with a line of text, and without."""
_STRIP, _LABEL = 11.0, "engine"
"""Height of the strip of the copy engine, and its label, which is short: fonts of some browsers are wide."""
_HEAD = 6.0
"""Length of the head of an arrow."""


def lane_panels(options: PictureOptions, top: float, last: float, lanes: Sequence[Lane], below: float) -> list[Panel]:
    """Returns a plot for each lane, all of one height, and each with a scale of its own; all of the map for one.

    Pixels of the map that are `below` them stay free.
    """
    if len(lanes) == 1 and not lanes[0].title:
        return [panel(options, top, options.height, last, lanes[0].bytes)]
    apart = _CLOSE if options.compact else _APART
    height = (options.height - below - apart * len(lanes)) / len(lanes)
    tops = [top + apart + (height + apart) * rank for rank in reversed(range(len(lanes)))]
    return [panel(options, at, height, last, lane.bytes) for at, lane in zip(tops, lanes, strict=True)]


def lane_titles(lanes: Sequence[Lane], areas: Sequence[Panel]) -> Iterator[Shape]:
    """Yields the title of each lane that has one, above its plot."""
    for lane, area in zip(lanes, areas, strict=True):
        if lane.title:
            yield TextLabel(area.left, area.top - 5, fitted(lane.title, SMALL, area.width), SMALL, "ink", bold=True)


def strip_height(data: PlotData) -> float:
    """Returns the pixels that the copy engine needs below the plots; none where it makes no copy."""
    return _STRIP + _CLOSE if any(move.is_beside for move in data.rectangles.moves) else 0.0


def draw_engine(data: PlotData, area: Panel, *, named: bool) -> Iterator[Shape]:
    """Yields a box for each copy that a copy engine makes, below the lowest plot, with what it is if it is `named`."""
    ran, y = {operator.tick: operator for operator in data.rectangles.operators}, area.bottom + _CLOSE
    yield Rect(area.left, y, area.width, _STRIP, "plot")
    if named:
        yield TextLabel(area.left - 8, y + _STRIP - 2, _LABEL, SMALL, "quiet", "end")
    for move in data.rectangles.moves:
        if move.is_beside:
            begin, end = _time(data, ran[move.tick])
            x, width = area.across.at(begin), area.across.length(end - begin)
            paint = paint_of(int(data.kind[move.chunk]))
            yield Rect(x, y, max(width, 0.3), _STRIP, paint, f"{printable(ran[move.tick].name)}\n{COPY_ENGINE}")


def _time(data: PlotData, ran: OperatorRun) -> tuple[float, float]:
    """Returns begin and end of an operator, on the axis of the picture."""
    return (ran.begin, ran.end) if data.timed else (float(ran.tick), ran.tick + 1.0)


def draw_moves(data: PlotData, areas: Sequence[Panel]) -> Iterator[Shape]:
    """Yields an arrow for each copy between memories, in the middle of the time that it takes."""
    ran = {operator.tick: operator for operator in data.rectangles.operators}
    for move in data.rectangles.moves:
        time = sum(_time(data, ran[move.tick])) / 2
        source = move.source + data.tensors * move.is_weight
        x, y, to = areas[0].across.at(time), _middle(data, areas, source), _middle(data, areas, move.chunk)
        back = _HEAD if y > to else -_HEAD
        yield Polyline(((x, y), (x, to + back)), "ink", 1.4)
        yield Polygon(((x, to), (x - _HEAD / 2, to + back), (x + _HEAD / 2, to + back)), "ink")


def _middle(data: PlotData, areas: Sequence[Panel], row: int) -> float:
    """Returns the y of the middle of a row."""
    return areas[int(data.lane[row])].up.at(float(data.low[row] + data.high[row]) / 2)
