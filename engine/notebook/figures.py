"""An interactive figure: time and addresses above, live bytes below, moved and zoomed together."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from engine.notebook.bokeh import bokeh
from engine.pictures.plot_data import PlotData, plot_data_of
from engine.text.errors import OptionError
from engine.text.names import printable
from engine.text.palette import KINDS, OTHER, PAINTS
from engine.text.units import format_bytes
from engine.trace.rectangles import rectangles_of
from engine.trace.trace import NOTHING, Trace
from ops.tensor.spec import Array

WIDTH, MAP_HEIGHT, CURVES_HEIGHT = 900, 380, 190
"""Pixels."""
_LEAST_WIDTH = 200
_TOOLS = "xpan,box_zoom,xwheel_zoom,undo,reset,save"
_CHUNK = (
    ("tensor", "@name"),
    ("operator", "@operator"),
    ("what", "@what"),
    ("bytes", "@size{0,0} (@text)"),
    ("address", "@address{0,0}"),
    ("memory", "@memory"),
    ("ticks", "[@begin, @until)"),
    ("overwrites", "@overwrites"),
)
_MOMENT = (
    ("from", "@time{0,0.[000000]}"),
    ("to", "@until{0,0.[000000]}"),
    ("alive", "@live{0,0} B"),
    ("reserved", "@footprint{0,0} B"),
)


@runtime_checkable
class HasTrace(Protocol):
    """A plan, or another object with a trace."""

    def trace(self) -> Trace:
        """Returns the trace of its static run."""


def figure(shown: HasTrace | Trace, width: int = WIDTH) -> Any:
    """Returns a bokeh layout of a plan or a trace, for `bokeh.io.show`; `width` in pixels.

    Rectangles are chunks, coloured by the kind of operator that writes them. Below are the live bytes, the footprint,
    the lower bound and the peak. Several memories stand upon each other, with their weights. A trace without addresses
    has only the curves. Raises EngineError where bokeh is not installed, OptionError.
    """
    if not isinstance(shown, HasTrace | Trace):
        raise OptionError(f"{type(shown).__name__} has no trace; give a plan, or what `plan.trace()` returns")
    if not isinstance(width, int) or width < _LEAST_WIDTH:
        raise OptionError(f"a width of {width!r} is no integer from {_LEAST_WIDTH} on; it counts pixels")
    data = plot_data_of(rectangles_of(shown if isinstance(shown, Trace) else shown.trace()))
    below = _curves(data, width)
    if not data.has_addresses:
        return bokeh("layouts").column(below)
    above = _map(data, width)
    below.x_range = above.x_range
    return bokeh("layouts").gridplot([[above], [below]], merge_tools=True, toolbar_location="right")


def _map(data: PlotData, width: int) -> Any:
    models = bokeh("models")
    floors = np.cumsum([0, *(lane.bytes for lane in data.lanes)])
    plot = _empty(data, width, MAP_HEIGHT, int(max(floors[-1], data.ceiling)))
    plot.title = models.Title(text=_plain(data.facts.model))
    columns = _rectangles(data, floors[data.lane])
    kinds = list(dict.fromkeys(columns["group"]))
    for kind in kinds:
        chosen = np.flatnonzero(columns["group"] == kind)
        source = models.ColumnDataSource({key: column[chosen] for key, column in columns.items()}, name="chunks")
        edges = {"left": "left", "right": "right", "bottom": "bottom", "top": "top"}
        colours = {"fill_color": "colour", "line_color": "#16191D", "line_alpha": 0.35, "line_width": 0.5}
        plot.quad(source=source, legend_label=_plain(str(kind)), hover_line_alpha=1.0, **edges, **colours)
    plot.add_tools(models.HoverTool(tooltips=list(_CHUNK), point_policy="follow_mouse"))
    plot.legend.update(click_policy="hide", label_text_font_size="9pt", spacing=0, padding=4)
    plot.add_layout(plot.legend[0], "right")
    if len(data.lanes) == 1:
        plot.add_layout(models.Span(location=data.facts.arena_bytes, dimension="width", line_dash="dotted"))
        return plot
    for lane, floor in zip(data.lanes, floors.tolist(), strict=False):
        plot.add_layout(models.Span(location=floor, dimension="width", line_width=1.5))
        named = {"text": _plain(lane.title), "text_font_size": "8pt", "background_fill_alpha": 0.6}
        plot.add_layout(models.Label(x=0, y=floor, background_fill_color="#FFFFFF", **named))
    return plot


def _rectangles(data: PlotData, floor: Array) -> dict[str, Any]:
    """Returns columns with a row a chunk; `left` to `right` in ticks or seconds, `bottom` to `top` in bytes.

    `floor` has the bytes below the memory of each row, as several memories stand upon each other.
    """
    of, shown = data.rectangles, range(len(data.rectangles))
    colours = [PAINTS[paint].light for paint in KINDS]
    rest = len(data.kinds) > len(colours)
    groups = [k if not rest or i < len(colours) else "others" for i, k in enumerate(data.kinds)]
    paints = [colours[i] if i < len(colours) else PAINTS[OTHER].light for i in range(len(data.kinds))]
    descriptions = [" ".join(filter(None, (of.shape[i], of.dtype[i], of.role[i]))) for i in shown]
    taken = [printable(of.name[o]) if o != NOTHING else "-" for o in of.overwrites.tolist()]
    memories = [part.name for part in data.facts.memories] or ["-"]
    return {
        "left": data.begin,
        "right": data.end,
        "bottom": data.low + floor,
        "top": data.high + floor,
        "address": data.low,
        "begin": of.begin,
        "until": of.end,
        "size": of.size,
        "text": _texts([format_bytes(size) for size in of.size.tolist()]),
        "name": _texts(map(printable, of.name)),
        "operator": _texts(printable(f"{o} {s}".rstrip()) for o, s in zip(of.operator, of.schema, strict=True)),
        "what": _texts(map(printable, descriptions)),
        "memory": _texts(memories[lane] for lane in data.lane.tolist()),
        "overwrites": _texts(taken),
        "group": _texts(printable(groups[k]) for k in data.kind.tolist()),
        "colour": _texts(paints[k] for k in data.kind.tolist()),
    }


def _texts(texts: Iterable[str]) -> Any:
    return np.array(list(texts), dtype=object)


def _curves(data: PlotData, width: int) -> Any:
    models = bokeh("models")
    plot = _empty(data, width, CURVES_HEIGHT, data.ceiling)
    plot.xaxis.axis_label = "seconds" if data.timed else "tick"
    source = models.ColumnDataSource(_moments(data), name="curves")
    live, reserved, bound = (PAINTS[name].light for name in ("live_line", "footprint", "bound"))
    plot.varea_step(x="time", y1=0, y2="live", source=source, step_mode="after", fill_color=live, fill_alpha=0.25)
    step = {"x": "time", "source": source, "mode": "after"}
    plot.step(y="live", line_color=live, line_width=1.5, legend_label="alive", **step)
    plot.step(y="footprint", line_color=reserved, legend_label="reserved", **step)
    if data.bound:
        row = {"line_color": bound, "line_dash": "dashed", "legend_label": "lower bound"}
        plot.line([0, data.last], [data.bound] * 2, **row)
    if data.budget:
        row = {"line_color": PAINTS["budget"].light, "line_dash": "dashed", "legend_label": "budget"}
        plot.line([0, data.last], [data.budget] * 2, **row)
    _mark_peak(plot, data)
    edges = {"left": "time", "right": "until", "bottom": 0, "top": data.ceiling * 1.03}
    moments = plot.quad(
        source=source, fill_alpha=0.0, line_alpha=0.0, hover_fill_alpha=0.12, hover_fill_color=live, **edges
    )
    plot.add_tools(models.HoverTool(tooltips=list(_MOMENT), renderers=[moments], point_policy="follow_mouse"))
    plot.legend.update(label_text_font_size="9pt", spacing=0, padding=4)
    plot.add_layout(plot.legend[0], "right")
    return plot


def _moments(data: PlotData) -> dict[str, Any]:
    """Returns columns with a row for each time between two changes.

    A free that is followed by an allocation at the same time does not lower the curve.
    """
    times, live = data.times, data.live
    until, then = np.append(times[1:], data.last)[: len(times)], np.append(live[1:], 0)[: len(times)]
    kept = (until > times) | (live >= then)
    columns = {"time": times, "until": until, "live": live, "footprint": data.footprint}
    return {name: column[kept] for name, column in columns.items()}


def _mark_peak(plot: Any, data: PlotData) -> None:
    peak = int(np.argmax(data.live)) if len(data.live) else NOTHING
    if peak != NOTHING:
        at = [float(data.times[peak])], [int(data.live[peak])]
        plot.scatter(*at, size=7, color=PAINTS["peak"].light, legend_label="peak", name="peak")


def _empty(data: PlotData, width: int, height: int, ceiling: int) -> Any:
    models = bokeh("models")
    plot = bokeh("plotting").figure(width=width, height=height, tools=_TOOLS, active_drag="box_zoom")
    plot.x_range = models.Range1d(0, data.last, bounds=(0, data.last))
    plot.y_range = models.Range1d(0, ceiling * 1.03, bounds=(0, ceiling * 1.03))
    units = {"mantissas": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512], "base": 1024}
    plot.yaxis.ticker = models.AdaptiveTicker(
        **units, min_interval=1, num_minor_ticks=0, desired_num_ticks=max(height // 60, 2)
    )
    plot.yaxis.formatter = models.CustomJSTickFormatter(code=_BYTES)
    plot.min_border_left = 74
    plot.grid.grid_line_alpha = 0.4
    return plot


_BYTES = """
const units = ["B", "KiB", "MiB", "GiB", "TiB"];
let value = tick, unit = 0;
while (Math.abs(value) >= 1024 && unit < 4) { value /= 1024; unit += 1; }
return `${+value.toFixed(2)} ${units[unit]}`;
"""
"""Writes sizes as `format_bytes` does."""


def _plain(name: str) -> str:
    """Returns a text that bokeh does not read as a formula; for formulas it would load a library."""
    shown = printable(name)
    while "$$" in shown or r"\(" in shown or r"\[" in shown:
        shown = shown.replace("$$", "$ $").replace(r"\(", "\\ (").replace(r"\[", "\\ [")
    return shown
