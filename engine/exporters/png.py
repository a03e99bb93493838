"""Writes the picture of `engine.exporters.svg` as PNG, for slides and chats; matplotlib draws the same shapes."""

import warnings
from collections.abc import Mapping
from typing import Any, BinaryIO

from engine.pictures.arena import draw
from engine.pictures.matplotlib import new_figure, new_rectangles, new_rounded, to_png
from engine.pictures.options import PAGE, PictureOptions
from engine.pictures.shapes import Circle, Polygon, Polyline, Rect, RectGroup, Shape, TextLabel
from engine.text.palette import PAINTS
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import Trace

_DENSITY = 2
"""Dots a pixel, so that letters are sharp on screens of high density."""
_INCH = 100.0
"""Pixels an inch, the unit of matplotlib's figures."""
_POINT = 72.0 / _INCH
"""Points a pixel, the unit of matplotlib's fonts and lines."""
_WIDE = 0.9
"""Scale of fonts: DejaVu Sans, matplotlib's font, is wider than those that texts were fitted to."""

_SIDES = {"start": ("left", "bottom"), "middle": ("center", "center"), "end": ("right", "top")}
_ANCHORS: Mapping[tuple[str, bool], Mapping[str, Any]] = {
    **{(a, False): {"ha": across, "va": "baseline"} for a, (across, _) in _SIDES.items()},
    **{(a, True): {"ha": "right", "va": up, "rotation": 90} for a, (_, up) in _SIDES.items()},
}
"""Which point of a text lies at its position, by its anchor and by whether it is turned."""


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes the picture of a trace. Raises EngineError where matplotlib is not installed."""
    out.write(png(rectangles_of(trace)))


def png(of: Rectangles, options: PictureOptions = PAGE, *, dark: bool = False) -> bytes:
    """Returns the picture as the bytes of a file, with _DENSITY dots a pixel. Raises EngineError."""
    drawing = draw(of, options)
    figure = new_figure(drawing.width / _INCH, drawing.height / _INCH, layout="none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0))
    axes.set_axis_off()
    figure.set_facecolor(_colour("card", dark))
    for depth, shape in enumerate(drawing.shapes):
        _add(axes, shape, dark).set_zorder(depth)
    with warnings.catch_warnings():
        # matplotlib draws a box for a character that its font lacks
        warnings.filterwarnings("ignore", "Glyph .* missing")
        return to_png(figure, int(_INCH) * _DENSITY)


def _add(axes: Any, shape: Shape, dark: bool) -> Any:
    colour = _colour(shape.paint, dark)
    match shape:
        case Rect():
            return axes.add_patch(_box(shape, color=colour, linewidth=0))
        case RectGroup():
            return axes.add_patch(new_rectangles(shape.boxes, color=colour, linewidth=0))
        case Polygon():
            return axes.fill(*zip(*shape.points, strict=True), color=colour, linewidth=0)[0]
        case Polyline():
            return _line(axes, shape, colour)
        case Circle():
            size = 2 * shape.radius * _POINT
            return axes.plot(shape.x, shape.y, "o", color=colour, markersize=size, markeredgewidth=0)[0]
        case TextLabel():
            return _text(axes, shape, colour)


def _box(box: Rect, **style: Any) -> Any:
    outline = (box.x, box.y, box.width, box.height)
    return new_rounded(outline, box.radius, **style) if box.radius else new_rectangles([outline], **style)


def _line(axes: Any, line: Polyline, colour: str) -> Any:
    stroke = line.dash / line.width
    x, y = zip(*line.points, strict=True)
    style = (0, (stroke, stroke)) if stroke else "solid"
    return axes.plot(x, y, color=colour, linewidth=line.width * _POINT, linestyle=style)[0]


def _text(axes: Any, text: TextLabel, colour: str) -> Any:
    """Adds a text; dollar signs in it do not begin a formula."""
    artist = axes.text(
        text.x,
        text.y,
        text.text,
        color=colour,
        fontsize=text.size * _POINT * _WIDE,
        fontweight="bold" if text.bold else "normal",
        parse_math=False,
        **_ANCHORS[text.anchor, text.turned],
    )
    if text.clip:
        artist.set_clip_path(new_rectangles([text.clip], transform=axes.transData))
    return artist


def _colour(paint: str, dark: bool) -> str:
    return PAINTS[paint].dark if dark else PAINTS[paint].light
