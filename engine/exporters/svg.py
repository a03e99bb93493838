"""Writes a picture of the arena as SVG, for documents and notebooks: light or dark as the reader prefers, no script."""

from collections.abc import Sequence
from html import escape
from typing import BinaryIO

from engine.pictures.arena import draw
from engine.pictures.options import PAGE, PictureOptions
from engine.pictures.shapes import Circle, Drawing, Polygon, Polyline, Rect, RectGroup, Shape, TextLabel
from engine.text.palette import PAINTS
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import Trace

_FONT = "Helvetica Neue,Helvetica,Arial,Liberation Sans,sans-serif"
_STEM = "arenaplan-picture"
"""Class of the whole picture: its colour rules must not change anything else of a page."""


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes the picture of a trace."""
    out.write(svg(rectangles_of(trace)).encode())


def svg(of: Rectangles, options: PictureOptions = PAGE, dark: str = "") -> str:
    """Returns the picture as one element, for a file of its own or for a page. The same input gives the same text.

    `dark` is a CSS selector of dark pages; without it the reader's system decides whether the picture is dark.
    """
    return to_svg(draw(of, options), dark)


def to_svg(drawing: Drawing, dark: str = "") -> str:
    """Returns a drawing as SVG. Its texts are printable already (`engine.text.names.printable`)."""
    width, height = _number(drawing.width), _number(drawing.height)
    body = "\n".join(map(_element, drawing.shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_STEM}" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" aria-label="{escape(drawing.name)}" font-family="{_FONT}">\n'
        f"<desc>{escape(drawing.summary)}</desc>\n<style>{_rules(drawing, dark)}</style>\n{body}\n</svg>\n"
    )


def _rules(drawing: Drawing, dark: str) -> str:
    """Returns the rules of dark colours; light colours are attributes, for programs without style sheets."""
    used = {name: PAINTS[name] for name in sorted({shape.paint for shape in drawing.shapes})}
    scope = f"{dark} .{_STEM}".lstrip()
    rules = "".join(
        f"{scope} .f-{name}{{fill:{paint.dark}}}{scope} .s-{name}{{stroke:{paint.dark}}}"
        for name, paint in used.items()
        if paint.light != paint.dark
    )
    if dark:  # it stands in a page, which may be narrower
        return f".{_STEM}{{max-width:100%;height:auto}}{rules}"
    return f"@media (prefers-color-scheme:dark){{{rules}}}"


def _element(shape: Shape) -> str:
    match shape:
        case Rect():
            return _box(shape)
        case RectGroup():
            return _path(_fill(shape.paint), "".join(map(_rectangle, shape.boxes)))
        case Polygon():
            return _path(_fill(shape.paint), f"{_outline(shape.points)}z")
        case Polyline():
            dash = f' stroke-dasharray="{_number(shape.dash)}"' if shape.dash else ""
            stroke = f'{_stroke(shape.paint)} fill="none" stroke-width="{_number(shape.width)}"{dash}'
            return _path(stroke, _outline(shape.points))
        case Circle():
            return f"<circle {_fill(shape.paint)} {_numbers(cx=shape.x, cy=shape.y, r=shape.radius)}/>"
        case TextLabel():
            return _text(shape)


def _box(box: Rect) -> str:
    place = _numbers(x=box.x, y=box.y, width=box.width, height=box.height)
    corners = f" {_numbers(rx=box.radius)}" if box.radius else ""
    rect = f"<rect {_fill(box.paint)} {place}{corners}"
    return f"{rect}><title>{escape(box.title)}</title></rect>" if box.title else f"{rect}/>"


def _path(attributes: str, drawn: str) -> str:
    return f'<path {attributes} d="{drawn}"/>'


def _rectangle(box: tuple[float, float, float, float]) -> str:
    x, y, width, height = map(_number, box)
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _text(text: TextLabel) -> str:
    """Returns a text. A clipped one stands in a nested <svg>: the id of a clip path might not be unique in a page."""
    left, top, width, height = text.clip or (0.0, 0.0, 0.0, 0.0)
    x, y = _number(text.x - left), _number(text.y - top)
    anchor = f' text-anchor="{text.anchor}"' if text.anchor != "start" else ""
    bold = ' font-weight="600"' if text.bold else ""
    turn = f' transform="rotate(-90 {x} {y})"' if text.turned else ""
    size = _number(text.size)
    words = (
        f'<text {_fill(text.paint)} x="{x}" y="{y}" font-size="{size}"{anchor}{bold}{turn}>{escape(text.text)}</text>'
    )
    if not text.clip:
        return words
    return f'<svg {_numbers(x=left, y=top, width=width, height=height)} pointer-events="none">{words}</svg>'


def _outline(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points)


def _fill(paint: str) -> str:
    return f'class="f-{paint}" fill="{PAINTS[paint].light}"'


def _stroke(paint: str) -> str:
    return f'class="s-{paint}" stroke="{PAINTS[paint].light}"'


def _numbers(**attributes: float) -> str:
    return " ".join(f'{name}="{_number(value)}"' for name, value in attributes.items())


def _number(value: float) -> str:
    """Returns a number to a hundredth of a pixel, without trailing zeros and without negative zero."""
    return f"{round(value, 2) + 0.0:g}" if abs(value) < 10_000 else f"{value:.2f}"
