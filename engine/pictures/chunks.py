"""The map of the arena: each chunk a box, as wide as it lives and as high as its bytes."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from engine.pictures.columns import column_edges, skyline, stairs
from engine.pictures.curves import draw_peak_line
from engine.pictures.frame import SMALL, Panel
from engine.pictures.merging import merge
from engine.pictures.paints import KINDS, OTHER
from engine.pictures.plot_data import PlotData
from engine.pictures.shapes import Polygon, Rect, RectGroup, Shape, TextLabel
from engine.pictures.wording import fitted, printable, text_width
from engine.text.units import format_bytes
from engine.trace.trace import NOTHING
from ops.tensor.spec import Array

MOST_BOXES = 3_000
"""Boxes that are drawn, and told of, one by one."""
_INSET = 0.35
"""Pixels that a box leaves free on each side, so that neighbours stay apart."""
WEDGE = 4.0
"""Width of the mark of what takes the bytes of another, and half its height."""
_MARK = 9.0
"""How far below the upper edge of a box the mark stands at most."""
_LINE = 13.0
"""From one line of a label to the next."""
_TINY = 9.5
"""Height of letters of a name that would be cut otherwise."""


@frozen(eq=False)
class _Map:
    """`boxes` are rows (x, y, width, height) in pixels; `alone` says which are drawn one by one."""

    data: PlotData
    area: Panel
    boxes: Array
    alone: Array


def draw_chunks(data: PlotData, area: Panel) -> tuple[list[Shape], int]:
    """What is drawn, and how many chunks were merged because they are too small."""
    across, up = area.across, area.up
    x, width = across.at(data.begin), across.length(data.end - data.begin)
    y, height = up.at(data.high), up.length(data.high - data.low)
    rows = np.stack([x, y, width, height], axis=1)
    found = _Map(data, area, rows, _alone(rows))
    boxes = _singles(found)
    labels = [text for chunk, box in boxes.items() for text in _label(data, chunk, box)]
    heirs = [
        wedge(box.x, box.y + min(box.height / 2, _MARK))
        for chunk, box in boxes.items()
        if _shows_heir(data, chunk, box)
    ]
    shapes = [*_gaps(data, area), *_crowd(found), *boxes.values(), *heirs, *draw_peak_line(data, area), *labels]
    return shapes, int((~found.alone).sum())


def paint_of(kind: int) -> str:
    """The paint of a kind by its rank."""
    return KINDS[kind] if kind < len(KINDS) else OTHER


def _alone(boxes: Array) -> Array:
    """All if they are few; else the largest, of those that are a pixel at least."""
    if len(boxes) <= MOST_BOXES:
        return np.ones(len(boxes), dtype=bool)
    plain = np.where((boxes[:, 2] >= 1) & (boxes[:, 3] >= 1), boxes[:, 2] * boxes[:, 3], 0)
    alone = np.zeros(len(boxes), dtype=bool)
    alone[np.argsort(-plain, kind="stable")[:MOST_BOXES]] = True
    return alone & (plain > 0)


def _gaps(data: PlotData, area: Panel) -> Iterator[Shape]:
    """The ground below the highest byte in use, which boxes then cover: what still shows is free."""
    edges = column_edges(data.last, int(area.width), data.timed)
    top = skyline(edges, data.begin, data.end, data.high)
    if len(top):
        yield Polygon(area.points([(0.0, 0.0), *stairs(edges, top), (data.last, 0.0)]), "gap")


def _crowd(found: _Map) -> Iterator[Shape]:
    crowd = ~found.alone
    if crowd.any():
        area = found.area
        kind = np.minimum(found.data.kind[crowd], len(KINDS))
        frame = (area.left, area.top, area.width, area.height)
        for number, runs in merge(found.boxes[crowd], kind, frame).items():
            yield RectGroup(runs, paint_of(number))


def _singles(found: _Map) -> dict[int, Rect]:
    """By chunk."""
    made = dict[int, Rect]()
    for chunk in np.flatnonzero(found.alone).tolist():
        x, y, width, height = found.boxes[chunk].tolist()
        across, down = (_INSET if width > 3 else 0.0), (_INSET if height > 3 else 0.0)
        width, height = max(width - 2 * across, 0.3), max(height - 2 * down, 0.3)
        paint, radius = paint_of(int(found.data.kind[chunk])), 2.0 if min(width, height) > 8 else 0.0
        made[chunk] = Rect(x + across, y + down, width, height, paint, found.data.title(chunk), radius)
    return made


def _shows_heir(data: PlotData, chunk: int, box: Rect) -> bool:
    if data.rectangles.overwrites[chunk] == NOTHING or box.width <= 3 * WEDGE or box.height <= 2 * WEDGE:
        return False
    return not _is_turned(box) or box.width > 2 * WEDGE + SMALL + 3


def wedge(x: float, y: float, paint: str = "inside") -> Shape:
    """Marks the left edge of what takes the bytes of another."""
    return Polygon(((x, y - WEDGE), (x + WEDGE, y), (x, y + WEDGE)), paint)


def _is_turned(box: Rect) -> bool:
    return box.width < 40 and box.height > box.width


def _label(data: PlotData, chunk: int, box: Rect) -> Iterator[Shape]:
    """One or two lines in the middle of a box, if they fit; they run upwards in one that is narrow and high."""
    turned = _is_turned(box)
    aside = WEDGE if _shows_heir(data, chunk, box) and not turned else 0.0
    along, room = (box.height, box.width) if turned else (box.width - aside, box.height)
    if room < SMALL + 2 or along < 26:
        return
    size = format_bytes(int(data.rectangles.size[chunk]))
    both = room >= 2 * _LINE + 4 and text_width(size, SMALL) <= along - 6
    lines = [_named(printable(data.rectangles.name[chunk]), along - 6), *([(size, SMALL)] if both else [])]
    lines = [(line, letters) for line, letters in lines if line]
    x, y = box.x + (box.width + aside) / 2, box.y + box.height / 2
    clip = (box.x, box.y, box.width, box.height)
    for i, (line, letters) in enumerate(lines):
        shift = (i - (len(lines) - 1) / 2) * _LINE + letters * 0.36
        at = (x + shift, y) if turned else (x, y + shift)
        yield TextLabel(*at, line, letters, "inside", "middle", turned=turned, clip=clip)


def _named(name: str, room: float) -> tuple[str, float]:
    """A name, or as much of it as there is room for, and the height of its letters: smaller ones rather than fewer."""
    letters = SMALL if text_width(name, SMALL) <= room else _TINY
    return fitted(name, letters, room), letters
