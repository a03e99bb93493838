"""The picture of a run: which bytes of the arena hold what and when, what is alive, and where the peak is."""

from engine.pictures.captions import draw_caption, draw_legend, draw_title, headline, summary
from engine.pictures.chunks import draw_chunks
from engine.pictures.curves import draw_curves, name_peak
from engine.pictures.frame import (
    AXIS_ROOM,
    CARD_MARGIN,
    NAMES_ROOM,
    backdrop,
    byte_axis,
    operator_names,
    panel,
    plot_tops,
    stage_lines,
    time_axis,
)
from engine.pictures.look import Look
from engine.pictures.shapes import Box, Drawing, Shape
from engine.pictures.subject import Subject, subject_of
from engine.trace.rectangles import Lives


def draw(lives: Lives, look: Look) -> Drawing:
    """A map of time and addresses over the curves of what is alive; of a run without addresses only the curves."""
    subject = subject_of(lives)
    shapes, bottom, merged = _plots(subject, look)
    if not look.compact:
        if look.title:
            shapes += draw_title(subject, look)
        if look.legend and subject.has_addresses:
            legend, bottom = draw_legend(subject, look, bottom)
            shapes += legend
        if look.caption:
            caption, bottom = draw_caption(subject, look, merged, bottom)
            shapes += caption
    height = bottom + (4 if look.compact else CARD_MARGIN)
    card = Box(0.5, 0.5, look.width - 1, height - 1, "card", radius=0 if look.compact else 8)
    return Drawing(look.width, height, (card, *shapes), headline(subject), summary(subject))


def _plots(subject: Subject, look: Look) -> tuple[list[Shape], float, int]:
    """The plots, the y below them, and how many chunks were too small to be drawn one by one."""
    shapes, merged = list[Shape](), 0
    top, below, height = plot_tops(look, subject.has_addresses)
    bottom = top
    if subject.has_addresses:
        area = panel(look, top, look.height, subject.last, subject.ceiling)
        shapes += [backdrop(area), *([] if look.compact else byte_axis(area, 6))]
        found, merged = draw_chunks(subject, area)
        shapes += [*found, *stage_lines(area, subject.stage_starts)]
        bottom = area.bottom
    if height:
        area = panel(look, below, height, subject.last, subject.ceiling * 1.12)
        shapes += [backdrop(area), *([] if look.compact else byte_axis(area, 3 if subject.has_addresses else 6))]
        shapes += [*draw_curves(subject, area), *stage_lines(area, subject.stage_starts)]
        if not look.compact:
            shapes += name_peak(subject, area, area.top - 5 if subject.has_addresses else area.top + 14)
        bottom = area.bottom
    if not look.compact:
        names = [] if subject.timed else list(operator_names(area, subject.operators))
        shapes += [*time_axis(area, subject.timed), *names]
        bottom += AXIS_ROOM + (NAMES_ROOM if names else 0.0)
    return shapes, bottom, merged
