"""The map of several memories: a plot for each, the first at the bottom, and arrows for copies from one to another."""

from collections.abc import Iterator, Sequence

from engine.pictures.frame import SMALL, Panel, panel
from engine.pictures.options import PictureOptions
from engine.pictures.plot_data import Lane, PlotData
from engine.pictures.shapes import Polygon, Polyline, Shape, TextLabel
from engine.pictures.wording import fitted

_APART, _CLOSE = 19.0, 3.0
"""Pixels between two plots: with a line of text, and without."""
_HEAD = 6.0
"""Length of the head of an arrow."""


def lane_panels(options: PictureOptions, top: float, last: float, lanes: Sequence[Lane]) -> list[Panel]:
    """Returns a plot for each lane, all of one height, and each with a scale of its own; all of the map for one."""
    if len(lanes) == 1 and not lanes[0].title:
        return [panel(options, top, options.height, last, lanes[0].bytes)]
    apart = _CLOSE if options.compact else _APART
    height = (options.height - apart * len(lanes)) / len(lanes)
    tops = [top + apart + (height + apart) * rank for rank in reversed(range(len(lanes)))]
    return [panel(options, at, height, last, lane.bytes) for at, lane in zip(tops, lanes, strict=True)]


def lane_titles(lanes: Sequence[Lane], areas: Sequence[Panel]) -> Iterator[Shape]:
    """Yields the title of each lane that has one, above its plot."""
    for lane, area in zip(lanes, areas, strict=True):
        if lane.title:
            yield TextLabel(area.left, area.top - 5, fitted(lane.title, SMALL, area.width), SMALL, "ink", bold=True)


def draw_moves(data: PlotData, areas: Sequence[Panel]) -> Iterator[Shape]:
    """Yields an arrow for each copy between memories, in the middle of the time that it takes."""
    ran = {operator.tick: operator for operator in data.rectangles.operators}
    for move in data.rectangles.moves:
        begun = ran[move.tick]
        time = (begun.begin + begun.end) / 2 if data.timed else move.tick + 0.5
        source = move.source + data.tensors * move.is_weight
        x, y, to = areas[0].across.at(time), _middle(data, areas, source), _middle(data, areas, move.chunk)
        back = _HEAD if y > to else -_HEAD
        yield Polyline(((x, y), (x, to + back)), "ink", 1.4)
        yield Polygon(((x, to), (x - _HEAD / 2, to + back), (x + _HEAD / 2, to + back)), "ink")


def _middle(data: PlotData, areas: Sequence[Panel], row: int) -> float:
    """Returns the y of the middle of a row."""
    return areas[int(data.lane[row])].up.at(float(data.low[row] + data.high[row]) / 2)
