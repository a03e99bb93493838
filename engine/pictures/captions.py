"""What a picture says in words: title, legend, caption, and the summary for who cannot see it."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from engine.pictures.chunks import WEDGE, paint_of, wedge
from engine.pictures.frame import LARGE, NORMAL, SMALL
from engine.pictures.look import Look
from engine.pictures.paints import KINDS
from engine.pictures.shapes import Box, Line, Shape, Text
from engine.pictures.subject import Subject
from engine.pictures.wording import fitted, printable, text_width, wrapped
from engine.text.units import format_bytes
from engine.trace.trace import NOTHING

_MARGIN, _ROW, _SWATCH = 20.0, 20.0, 11.0
Mark = Callable[[float, float], Shape]
"""From where a text begins, its baseline: what stands before it."""


def headline(subject: Subject) -> str:
    """Whose run, and what it takes."""
    facts, model = subject.facts, printable(subject.facts.model, 60) or "a graph"
    if facts.mode == "static":
        return f"{model}: an arena of {format_bytes(facts.arena_bytes)}"
    held = int(subject.footprint.max(initial=0))
    if subject.facts.heap:
        return f"{model} on the heap {printable(facts.heap, 30)}: {format_bytes(held)} held"
    return f"{model} without a plan: {format_bytes(facts.peak_bytes)} alive"


def details(subject: Subject) -> list[str]:
    """How good that is; what matters most comes last."""
    facts = subject.facts
    parts = [_count(len(subject.begin), "tensor"), _count(facts.ticks, "tick")]
    if facts.stages > 1:
        parts.append(f"{facts.stages} stages")
    if facts.policy:
        parts.append(f"parallel: {printable(facts.policy, 30)}")
    if facts.mode == "static" and facts.strategy:
        parts.append(f"strategy {printable(facts.strategy, 30)}")
    if facts.mode != "static" and facts.arena_bytes:
        parts.append(f"a plan needs {format_bytes(facts.arena_bytes)}")
    if subject.bound:
        parts.append(f"lower bound {format_bytes(subject.bound)}{_excess(subject)}")
    return parts


def summary(subject: Subject) -> str:
    """Sentences for a screen reader."""
    facts = subject.facts
    where = f" at {printable(facts.peak_operator, 60)}, tick {facts.peak_tick}" if facts.peak_operator else ""
    return (
        f"{headline(subject)}. {', '.join(details(subject))}."
        f" At the peak{where}, {format_bytes(facts.peak_bytes)} are alive."
    )


def draw_title(subject: Subject, look: Look) -> list[Shape]:
    """Two lines at the top."""
    room, parts = look.width - 2 * _MARGIN, details(subject)
    while len(parts) > 1 and text_width(" · ".join(parts), NORMAL) > room:
        del parts[0]
    return [
        Text(_MARGIN, 28, fitted(headline(subject), LARGE, room), LARGE, "ink", bold=True),
        Text(_MARGIN, 47, fitted(" · ".join(parts), NORMAL, room), NORMAL, "quiet"),
    ]


def draw_legend(subject: Subject, look: Look, top: float) -> tuple[list[Shape], float]:
    """Kinds of operators with their colours, in as many rows as they need, then what else there is; the y below."""
    shapes, x, y = list[Shape](), _MARGIN, top + NORMAL
    for text, mark in _entries(subject, look):
        width = _SWATCH + 6 + text_width(text, SMALL) + 16
        if x + width > look.width and x > _MARGIN:
            x, y = _MARGIN, y + _ROW
        shapes += [mark(x, y), Text(x + _SWATCH + 6, y, text, SMALL, "ink")]
        x += width
    return shapes, y + 10


def _entries(subject: Subject, look: Look) -> Iterator[tuple[str, Mark]]:
    count = np.bincount(subject.kind, minlength=len(subject.kinds)).tolist()
    for i, name in enumerate(subject.kinds[: len(KINDS)]):
        yield f"{printable(name, 24)} {count[i]:,}", partial(_swatch, paint=paint_of(i))
    if others := subject.kinds[len(KINDS) :]:
        yield (
            f"{_count(len(others), 'other')} {sum(count[len(KINDS) :]):,}",
            partial(_swatch, paint=paint_of(len(KINDS))),
        )
    yield "free, below bytes in use", partial(_swatch, paint="gap")
    if (subject.lives.overwrites != NOTHING).any():
        yield "overwrites another", lambda x, y: wedge(x + _SWATCH - WEDGE, y - WEDGE, "ink")
    if subject.stage_starts:
        yield "a stage begins", partial(_stroke, paint="quiet", dash=5.0)
    if look.curves:
        yield "alive", partial(_stroke, paint="live_line")
        yield "held", partial(_stroke, paint="footprint")
    if look.curves and subject.bound:
        yield "lower bound", partial(_stroke, paint="bound", dash=5.0)


def _swatch(x: float, y: float, paint: str) -> Shape:
    return Box(x, y - _SWATCH + 1.5, _SWATCH, _SWATCH, paint, radius=2)


def _stroke(x: float, y: float, paint: str, dash: float = 0.0) -> Shape:
    return Line(((x - 2, y - 4), (x + _SWATCH + 2, y - 4)), paint, 1.6, dash)


def draw_caption(subject: Subject, look: Look, merged: int, top: float) -> tuple[list[Shape], float]:
    """How to read it, and what could not be drawn one by one; the y below."""
    lines = ["Each box is a tensor: as wide as it lives, as high as its bytes, at its address."]
    if not subject.has_addresses:
        lines = ["This run has no addresses: only what is alive can be drawn."]
    if merged:
        lines.append(f"{merged:,} of {len(subject.begin):,} tensors are smaller than a pixel and drawn together.")
    y = top + SMALL
    lines = wrapped(" ".join(lines), SMALL, look.width - 2 * _MARGIN)
    shapes = [Text(_MARGIN, y + 16 * i, line, SMALL, "quiet") for i, line in enumerate(lines)]
    return list(shapes), y + 16 * (len(lines) - 1)


def _excess(subject: Subject) -> str:
    facts = subject.facts
    if not facts.arena_bytes:
        return ""
    if facts.arena_bytes == facts.lower_bound:
        return ", reached"
    return f" (the arena is {facts.arena_bytes / facts.lower_bound - 1:.1%} larger)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
