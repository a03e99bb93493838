"""A sweep as a picture: a panel of arenas by option for each model, and one of arena against time for all.

Presets have charts of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from engine.pictures.matplotlib import new_figure
from engine.sweeps.measures import PLACEMENTS, TRICKS
from engine.sweeps.placements_chart import placements_chart
from engine.sweeps.rows import MODEL, Row, label_of
from engine.sweeps.table import ARENA, RUN, Table
from engine.sweeps.tricks_chart import tricks_chart
from engine.text.errors import EngineError
from engine.text.palette import OKABE_ITO

_MOST_BARS = 60
"""Rows that are drawn as bars, in all panels; the points are drawn for all rows."""
_MOST_NAMED = 12
"""Models in the legend of the points."""
_UNIT = 2**20
_OTHERS = "#BBBBBB"
_OF_PRESETS: Mapping[str, Callable[[Table], Any]] = MappingProxyType(
    {PLACEMENTS: placements_chart, TRICKS: tricks_chart}
)
"""The charts of presets that have one of their own."""


def sweep_chart(table: Table) -> Any:
    """Returns a matplotlib Figure. Raises EngineError where matplotlib is not installed, or no row has an arena."""
    rows = [row for row in table.good if row.get(ARENA) is not None]
    if not rows:
        raise EngineError("there is nothing to draw: no row has an arena")
    if table.measure in _OF_PRESETS:
        return _OF_PRESETS[table.measure](table)
    models = list(dict.fromkeys(row[MODEL] for row in rows))
    height = max(4.0, 0.24 * min(len(rows), _MOST_BARS) + 0.5 * len(models) + 1.2)
    figure = new_figure(12, height)
    bars, points = figure.subplots(1, 2)
    _draw_bars(bars, table, rows[:_MOST_BARS])
    _draw_points(points, table, models)
    figure.suptitle("Arenas of a sweep, weights not counted", fontsize=12, fontweight="bold")
    return figure


def _draw_bars(axes: Any, table: Table, rows: Sequence[Row]) -> None:
    """Draws a bar a row, and a mark at its lower bound; bars of one model stand together in its colour."""
    models = list(dict.fromkeys(row[MODEL] for row in rows))
    ordered = sorted(rows, key=lambda row: models.index(row[MODEL]))
    at = [place + 0.8 * models.index(row[MODEL]) for place, row in enumerate(ordered)]
    sizes = [row[ARENA] / _UNIT for row in ordered]
    colours = [_colour(models.index(row[MODEL])) for row in ordered]
    bars = axes.barh(at, sizes, 0.75, color=colours)
    axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=7)
    bounds = [
        (place, row["lower_bound"] / _UNIT) for place, row in zip(at, ordered, strict=True) if "lower_bound" in row
    ]
    axes.scatter([b for _, b in bounds], [p for p, _ in bounds], marker="|", s=60, color="black")
    axes.set_yticks(at, [label_of(row, table.varied) for row in ordered], fontsize=7)
    axes.invert_yaxis()
    axes.margins(x=0.14, y=0.02)
    axes.set_xlabel("MiB; a black mark is the lower bound")
    axes.set_title(
        "arena by option" + (f" (the first {len(rows)} rows)" if len(table.good) > len(rows) else ""), fontsize=10
    )
    _plain(axes, "x")


def _draw_points(axes: Any, table: Table, models: Sequence[str]) -> None:
    """Draws a point a row, and a line through those that no other beats in both."""
    for row in table.good:
        if row.get(ARENA) is not None and row.get(table.time) is not None:
            axes.scatter(row[table.time] * 1e3, row[ARENA] / _UNIT, s=12, color=_OTHERS)
    for front in table.fronts:
        points = [(row[table.time] * 1e3, row[ARENA] / _UNIT) for row in front]
        model = front[0][MODEL]
        style = {"ms": 5, "lw": 1, "color": _colour(models.index(model)), "label": model}
        axes.plot([time for time, _ in points], [size for _, size in points], "o-", **style)
    _scale(axes)
    axes.set_xlabel(f"milliseconds of {'a run' if table.time == RUN else 'planning'}")
    axes.set_ylabel("MiB")
    axes.set_title("arena against time; lines: no row is better in both", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    axes.legend(list(shown.values())[:_MOST_NAMED], list(shown)[:_MOST_NAMED], fontsize=7, frameon=False)
    _plain(axes, "both")


def _scale(axes: Any) -> None:
    """Makes both axes logarithmic, with numbers that are no powers."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.tick_params(which="minor", labelbottom=False, labelleft=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        axis.set_major_formatter("{x:g}")


def _colour(place: int) -> str:
    return OKABE_ITO[place % len(OKABE_ITO)]


def _plain(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
