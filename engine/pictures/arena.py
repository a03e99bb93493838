"""Draws a run: which bytes of the arena hold which chunk and when, how many are live, and where the peak is."""

from engine.pictures.captions import draw_caption, draw_legend, draw_title, headline, summary
from engine.pictures.chunks import draw_chunks
from engine.pictures.curves import draw_budget, draw_curves, draw_peak_label
from engine.pictures.frame import (
    AXIS_HEIGHT,
    CARD_MARGIN,
    NAMES_HEIGHT,
    backdrop,
    byte_axis,
    operator_names,
    panel,
    plot_tops,
    stage_lines,
    time_axis,
)
from engine.pictures.lanes import draw_engine, draw_moves, lane_panels, lane_titles, strip_height
from engine.pictures.options import PictureOptions
from engine.pictures.plot_data import HEADROOM, PlotData, plot_data_of
from engine.pictures.shapes import Drawing, Rect, Shape
from engine.trace.rectangles import Rectangles


def draw(rectangles: Rectangles, options: PictureOptions) -> Drawing:
    """Returns a map of time and addresses above the curves of live bytes; without addresses only the curves."""
    data = plot_data_of(rectangles)
    shapes, bottom, merged = _plots(data, options)
    if not options.compact:
        if options.title:
            shapes += draw_title(data, options)
        if options.legend and data.has_addresses:
            legend, bottom = draw_legend(data, options, bottom)
            shapes += legend
        if options.caption:
            caption, bottom = draw_caption(data, options, merged, bottom)
            shapes += caption
    height = bottom + (4 if options.compact else CARD_MARGIN)
    card = Rect(0.5, 0.5, options.width - 1, height - 1, "card", radius=0 if options.compact else 8)
    return Drawing(options.width, height, (card, *shapes), headline(data), summary(data))


def _plots(data: PlotData, options: PictureOptions) -> tuple[list[Shape], float, int]:
    """Returns the plots, the y below them, and how many chunks were too small to be drawn one by one."""
    shapes, merged = list[Shape](), 0
    top, below, height = plot_tops(options, data.has_addresses)
    bottom = top
    if data.has_addresses:
        strip = strip_height(data)
        areas = lane_panels(options, top, data.last, data.lanes, strip)
        for lane, area in enumerate(areas):
            shapes += [backdrop(area), *([] if options.compact else byte_axis(area, 6 if len(areas) == 1 else 2))]
            chunks, small = draw_chunks(data, area, lane)
            shapes += [*chunks, *draw_budget(data, area), *stage_lines(area, data.stage_starts)]
            merged += small
        if not options.compact:
            shapes += lane_titles(data.lanes, areas)
        shapes += draw_moves(data, areas)
        area = areas[0]
        bottom = area.bottom + strip
        if strip:
            shapes += draw_engine(data, area, named=not options.compact)
    if height:
        area = panel(options, below, height, data.last, data.ceiling * (1 + HEADROOM))
        shapes += [backdrop(area), *([] if options.compact else byte_axis(area, 3 if data.has_addresses else 6))]
        shapes += [*draw_curves(data, area), *stage_lines(area, data.stage_starts)]
        if not options.compact:
            shapes.append(draw_peak_label(data, area, area.top - 5 if data.has_addresses else area.top + 14))
        bottom = area.bottom
    if not options.compact:
        names = [] if data.timed else list(operator_names(area, data.operators))
        shapes += [*time_axis(area, data.timed), *names]
        bottom += AXIS_HEIGHT + (NAMES_HEIGHT if names else 0.0)
    return shapes, bottom, merged
