"""Draws the map of the arena: each chunk is a box, as wide as its lifetime and as high as its bytes."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from engine.pictures.curves import column_edges, draw_peak_line, skyline, stairs
from engine.pictures.frame import SMALL, Panel
from engine.pictures.merging import merge
from engine.pictures.plot_data import PlotData
from engine.pictures.shapes import Polygon, Rect, RectGroup, Shape, TextLabel
from engine.pictures.wording import fitted, text_width
from engine.text.names import printable
from engine.text.palette import KINDS, OTHER
from engine.text.units import format_bytes
from engine.trace.trace import NOTHING
from ops.tensor.spec import Array

MOST_BOXES = 3_000
"""Boxes that are drawn one by one, each with a title."""
_INSET = 0.35
"""Pixels that a box leaves free on each side, so that neighbours can be told apart."""
WEDGE = 4.0
"""Width of the mark of a chunk that overwrites another, and half the height of the mark."""
_MARK = 9.0
"""The largest distance of the mark from the upper edge of its box."""
_LINE = 13.0
"""Distance between the lines of a label."""
_TINY = 9.5
"""Font size of a name that would be cut at the usual size."""


@frozen(eq=False)
class _Map:
    """The boxes of a map of `rows` of the data, as rows (x, y, width, height) in pixels.

    `alone` marks those that are drawn one by one.
    """

    data: PlotData
    area: Panel
    rows: Array
    boxes: Array
    alone: Array


def draw_chunks(data: PlotData, area: Panel, lane: int) -> tuple[list[Shape], int]:
    """Returns the shapes of the map of a lane, and how many chunks were merged because they are too small."""
    across, up, rows = area.across, area.up, np.flatnonzero(data.lane == lane)
    begin, end, low, high = (column[rows] for column in (data.begin, data.end, data.low, data.high))
    x, width = across.at(begin), across.length(end - begin)
    y, height = up.at(high), up.length(high - low)
    pixels = np.stack([x, y, width, height], axis=1)
    chunk_map = _Map(data, area, rows, pixels, _alone(pixels))
    boxes = _singles(chunk_map)
    labels = [text for chunk, box in boxes.items() for text in _label(data, chunk, box)]
    wedges = [
        wedge(box.x, box.y + min(box.height / 2, _MARK)) for chunk, box in boxes.items() if _has_wedge(data, chunk, box)
    ]
    shapes = [*_gaps(chunk_map), *_merged(chunk_map), *boxes.values(), *wedges, draw_peak_line(data, area), *labels]
    return shapes, int((~chunk_map.alone).sum())


def paint_of(kind: int) -> str:
    """Returns the paint of a kind of operators by its rank."""
    return KINDS[kind] if kind < len(KINDS) else OTHER


def _alone(boxes: Array) -> Array:
    """Returns which boxes are drawn one by one: all if they are few, else the largest of at least one pixel."""
    if len(boxes) <= MOST_BOXES:
        return np.ones(len(boxes), dtype=bool)
    plain = np.where((boxes[:, 2] >= 1) & (boxes[:, 3] >= 1), boxes[:, 2] * boxes[:, 3], 0)
    alone = np.zeros(len(boxes), dtype=bool)
    alone[np.argsort(-plain, kind="stable")[:MOST_BOXES]] = True
    return alone & (plain > 0)


def _gaps(chunk_map: _Map) -> Iterator[Shape]:
    """Yields the area below the highest byte in use. Boxes cover it; what stays visible is free."""
    data, area, rows = chunk_map.data, chunk_map.area, chunk_map.rows
    edges = column_edges(data.last, int(area.width), data.timed)
    top = skyline(edges, data.begin[rows], data.end[rows], data.high[rows])
    if len(top):
        yield Polygon(area.points([(0.0, 0.0), *stairs(edges, top), (data.last, 0.0)]), "gap")


def _merged(chunk_map: _Map) -> Iterator[Shape]:
    """Yields the boxes that are not drawn one by one, as one group for each paint."""
    small = ~chunk_map.alone
    if small.any():
        area = chunk_map.area
        kind = np.minimum(chunk_map.data.kind[chunk_map.rows[small]], len(KINDS))
        frame = (area.left, area.top, area.width, area.height)
        for number, runs in merge(chunk_map.boxes[small], kind, frame).items():
            yield RectGroup(runs, paint_of(number))


def _singles(chunk_map: _Map) -> dict[int, Rect]:
    """Returns the boxes that are drawn one by one, by chunk."""
    boxes = dict[int, Rect]()
    for chunk, pixels in zip(chunk_map.rows[chunk_map.alone].tolist(), chunk_map.boxes[chunk_map.alone], strict=True):
        x, y, width, height = pixels.tolist()
        across, down = (_INSET if width > 3 else 0.0), (_INSET if height > 3 else 0.0)
        width, height = max(width - 2 * across, 0.3), max(height - 2 * down, 0.3)
        paint, radius = paint_of(int(chunk_map.data.kind[chunk])), 2.0 if min(width, height) > 8 else 0.0
        title = chunk_map.data.title(chunk)
        boxes[chunk] = Rect(x + across, y + down, width, height, paint, title, radius)
    return boxes


def _has_wedge(data: PlotData, chunk: int, box: Rect) -> bool:
    """Returns whether a chunk overwrites another and its box is large enough for the mark."""
    if data.rectangles.overwrites[chunk] == NOTHING or box.width <= 3 * WEDGE or box.height <= 2 * WEDGE:
        return False
    return not _is_turned(box) or box.width > 2 * WEDGE + SMALL + 3


def wedge(x: float, y: float, paint: str = "inside") -> Shape:
    """Returns the mark at the left edge of a chunk that overwrites another."""
    return Polygon(((x, y - WEDGE), (x + WEDGE, y), (x, y + WEDGE)), paint)


def _is_turned(box: Rect) -> bool:
    return box.width < 40 and box.height > box.width


def _label(data: PlotData, chunk: int, box: Rect) -> Iterator[Shape]:
    """Yields one or two lines in the middle of a box, if they fit; in a narrow, high box they run upwards."""
    turned = _is_turned(box)
    aside = WEDGE if _has_wedge(data, chunk, box) and not turned else 0.0
    along, across = (box.height, box.width) if turned else (box.width - aside, box.height)
    if across < SMALL + 2 or along < 26:
        return
    size = format_bytes(int(data.rectangles.size[chunk]))
    both = across >= 2 * _LINE + 4 and text_width(size, SMALL) <= along - 6
    lines = [_named(printable(data.rectangles.name[chunk]), along - 6), *([(size, SMALL)] if both else [])]
    lines = [(line, font) for line, font in lines if line]
    x, y = box.x + (box.width + aside) / 2, box.y + box.height / 2
    clip = (box.x, box.y, box.width, box.height)
    for i, (line, font) in enumerate(lines):
        shift = (i - (len(lines) - 1) / 2) * _LINE + font * 0.36
        at = (x + shift, y) if turned else (x, y + shift)
        yield TextLabel(*at, line, font, "inside", "middle", turned=turned, clip=clip)


def _named(name: str, width: float) -> tuple[str, float]:
    """Returns a name that fits into `width`, and its font size: it is made smaller before it is cut."""
    size = SMALL if text_width(name, SMALL) <= width else _TINY
    return fitted(name, size, width), size
