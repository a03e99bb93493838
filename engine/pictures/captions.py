"""The texts of a picture: title, legend, caption, and a summary for screen readers."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from engine.pictures.chunks import WEDGE, paint_of, wedge
from engine.pictures.frame import LARGE, NORMAL, SMALL
from engine.pictures.options import PictureOptions
from engine.pictures.plot_data import PlotData
from engine.pictures.shapes import Polyline, Rect, Shape, TextLabel
from engine.pictures.wording import fitted, text_width, wrapped
from engine.text.names import printable
from engine.text.palette import KINDS
from engine.text.units import format_bytes
from engine.trace.trace import NOTHING

_MARGIN, _ROW, _SWATCH = 20.0, 20.0, 11.0
_FILLED = 0.85
"""The part of a line that the caption fills: browsers without Helvetica take wider fonts, such as DejaVu Sans."""
Mark = Callable[[float, float], Shape]
"""Returns the sign of an entry of the legend, from the x and the baseline of the entry."""


def headline(data: PlotData) -> str:
    """Returns the name of the model and its bytes."""
    facts, model = data.facts, printable(data.facts.model, 60) or "a graph"
    if facts.mode == "static":
        return f"{model}: an arena of {format_bytes(facts.arena_bytes)}"
    reserved = int(data.footprint.max(initial=0))
    if data.facts.heap:
        return f"{model} on the heap {printable(facts.heap, 30)}: {format_bytes(reserved)} reserved"
    return f"{model} without a plan: {format_bytes(facts.peak_bytes)} alive"


def details(data: PlotData) -> list[str]:
    """Returns counts, strategy and lower bound; the most important part comes last."""
    facts = data.facts
    parts = [_count(data.tensors, "tensor"), _count(facts.ticks, "tick")]
    if facts.stages > 1:
        parts.append(f"{facts.stages} stages")
    if facts.policy:
        parts.append(f"parallel: {printable(facts.policy, 30)}")
    if facts.mode == "static" and facts.strategy:
        parts.append(f"strategy {printable(facts.strategy, 30)}")
    if facts.mode != "static" and facts.arena_bytes:
        parts.append(f"a plan needs {format_bytes(facts.arena_bytes)}")
    if data.bound:
        parts.append(f"lower bound {format_bytes(data.bound)}{_excess(data)}")
    if facts.budget_bytes:
        parts.append(f"budget {format_bytes(facts.budget_bytes)}{_missed(data)}")
    return parts


def summary(data: PlotData) -> str:
    """Returns sentences for a screen reader."""
    facts = data.facts
    where = f" at {printable(facts.peak_operator, 60)}, tick {facts.peak_tick}" if facts.peak_operator else ""
    return (
        f"{headline(data)}. {', '.join(details(data))}. At the peak{where}, {format_bytes(facts.peak_bytes)} are alive."
    )


def draw_title(data: PlotData, options: PictureOptions) -> list[Shape]:
    """Returns the two lines at the top; details that do not fit are left out."""
    width, parts = options.width - 2 * _MARGIN, details(data)
    while len(parts) > 1 and text_width(" · ".join(parts), NORMAL) > width:
        del parts[0]
    return [
        TextLabel(_MARGIN, 28, fitted(headline(data), LARGE, width), LARGE, "ink", bold=True),
        TextLabel(_MARGIN, 47, fitted(" · ".join(parts), NORMAL, width), NORMAL, "quiet"),
    ]


def draw_legend(data: PlotData, options: PictureOptions, top: float) -> tuple[list[Shape], float]:
    """Returns the legend, in as many rows as it needs, and the y below it."""
    shapes, x, y = list[Shape](), _MARGIN, top + NORMAL
    for text, mark in _entries(data, options):
        width = _SWATCH + 6 + text_width(text, SMALL) + 16
        if x + width > options.width and x > _MARGIN:
            x, y = _MARGIN, y + _ROW
        shapes += [mark(x, y), TextLabel(x + _SWATCH + 6, y, text, SMALL, "ink")]
        x += width
    return shapes, y + 10


def _entries(data: PlotData, options: PictureOptions) -> Iterator[tuple[str, Mark]]:
    count = np.bincount(data.kind, minlength=len(data.kinds)).tolist()
    for i, name in enumerate(data.kinds[: len(KINDS)]):
        yield f"{printable(name, 24)} {count[i]:,}", partial(_swatch, paint=paint_of(i))
    if others := data.kinds[len(KINDS) :]:
        yield (
            f"{_count(len(others), 'other')} {sum(count[len(KINDS) :]):,}",
            partial(_swatch, paint=paint_of(len(KINDS))),
        )
    yield "free, below bytes in use", partial(_swatch, paint="gap")
    if (data.rectangles.overwrites != NOTHING).any():
        yield "overwrites another", lambda x, y: wedge(x + _SWATCH - WEDGE, y - WEDGE, "ink")
    if data.stage_starts:
        yield "a stage begins", partial(_stroke, paint="quiet", dash=5.0)
    if options.curves:
        yield "alive", partial(_stroke, paint="live_line")
        yield "reserved", partial(_stroke, paint="footprint")
    if options.curves and data.bound:
        yield "lower bound", partial(_stroke, paint="bound", dash=5.0)
    if data.budget:
        yield "budget", partial(_stroke, paint="budget", dash=9.0)


def _swatch(x: float, y: float, paint: str) -> Shape:
    return Rect(x, y - _SWATCH + 1.5, _SWATCH, _SWATCH, paint, radius=2)


def _stroke(x: float, y: float, paint: str, dash: float = 0.0) -> Shape:
    return Polyline(((x - 2, y - 4), (x + _SWATCH + 2, y - 4)), paint, 1.6, dash)


def draw_caption(data: PlotData, options: PictureOptions, merged: int, top: float) -> tuple[list[Shape], float]:
    """Returns the caption, which says how to read the picture and what was merged, and the y below it."""
    lines = ["Each box is a tensor: as wide as it lives, as high as its bytes, at its address."]
    if not data.has_addresses:
        lines = ["This run has no addresses: only what is alive can be drawn."]
    if data.facts.memories and data.has_addresses:
        lines.append("Each memory has a scale of its own; weights are there all the time.")
    if data.rectangles.moves:
        lines.append("An arrow is a copy to another memory.")
    if merged:
        lines.append(f"{merged:,} of {len(data.begin):,} tensors are smaller than a pixel and drawn together.")
    y = top + SMALL
    lines = wrapped(" ".join(lines), SMALL, (options.width - 2 * _MARGIN) * _FILLED)
    shapes = [TextLabel(_MARGIN, y + 16 * i, line, SMALL, "quiet") for i, line in enumerate(lines)]
    return list(shapes), y + 16 * (len(lines) - 1)


def _excess(data: PlotData) -> str:
    facts = data.facts
    if not facts.arena_bytes:
        return ""
    if facts.arena_bytes == facts.lower_bound:
        return ", reached"
    return f" (the arena is {facts.arena_bytes / facts.lower_bound - 1:.1%} larger)"


def _missed(data: PlotData) -> str:
    facts = data.facts
    excess = (facts.arena_bytes if facts.mode == "static" else facts.footprint_bytes) - facts.budget_bytes
    return f", missed by {format_bytes(excess)}" if excess > 0 else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
