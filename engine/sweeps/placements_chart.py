"""Placements of networks as bars: a panel a batch size, a group a network, a bar a way to place its activations."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from engine.pictures.matplotlib import new_figure
from engine.sweeps.rows import Row, label_of
from engine.sweeps.table import Table
from engine.sweeps.task import BATCH


@frozen(eq=False)
class Series:
    """Bars of one colour (of Okabe and Ito's, which colour-blind people tell apart)."""

    label: str
    colour: str
    column: str


SERIES = (
    Series("not optimised", "#999999", "unoptimised_bytes"),
    Series("dynamic, reserved by PyTorch's allocator", "#D55E00", "pytorch_bytes"),
    Series("dynamic, reference counting without loss", "#E69F00", "refcount_bytes"),
    Series("TensorFlow Lite's greedy by size", "#56B4E9", "tflite_bytes"),
    Series("planned arena", "#0072B2", "arena_bytes"),
)
_BAR, _GROUP = 0.16, 1.0
"""Heights of a bar, and of a group with the blank below it, in units of the axis."""
_CUT_BEYOND = 2.0
"""Bars that are so much longer than the longest of the others are cut, and say so."""
_LONGEST = 0.8
"""The longest bar that is not cut, as a share of the axis; its number stands behind it."""
_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))


@frozen(eq=False)
class _Panel:
    """The bars on one pair of axes; `unit` in bytes, `end` of the axis in units."""

    axes: Any
    rows: Sequence[Row]
    unit: int
    end: float


def placements_chart(table: Table) -> Any:
    """Returns a matplotlib Figure. Raises EngineError where matplotlib is not installed."""
    rows, names = table.good, [name for name in table.varied if name != BATCH]
    batches = list(dict.fromkeys(row[BATCH] for row in rows))
    by_batch = [[row for row in rows if row[BATCH] == batch] for batch in batches]
    tallest = max(map(len, by_batch))
    figure = new_figure(max(5.4 * len(batches) + 0.6, 7.4), 1.35 * tallest + 1.5)
    for axes, part in zip(figure.subplots(1, len(batches), squeeze=False)[0], by_batch, strict=True):
        _draw(_panel(axes, part), [label_of(row, names) for row in part])
    bound, *bars = zip(*figure.axes[0].get_legend_handles_labels(), strict=True)
    figure.legend(
        *zip(*bars, bound, strict=True),
        loc="outside lower center",
        ncols=min(len(batches) + 1, 3),
        frameon=False,
        fontsize=9,
    )
    figure.suptitle("Memory for activations, weights not counted", fontsize=12, fontweight="bold")
    return figure


def _panel(axes: Any, rows: Sequence[Row]) -> _Panel:
    """Chooses the end of the axis: bars far beyond all others run out of it."""
    *_, second, longest = sorted(max(1, *(row[series.column] for row in rows)) for series in SERIES)
    most = second if longest > _CUT_BEYOND * second else longest
    name, unit = next((name, unit) for name, unit in _UNITS if most >= unit)
    axes.set_xlabel(name)
    return _Panel(axes, rows, unit, most / unit / _LONGEST)


def _draw(panel: _Panel, labels: Sequence[str]) -> None:
    for group, row in enumerate(panel.rows):
        for place, series in enumerate(SERIES):
            _bar(panel, series, group, group * _GROUP + (place - len(SERIES) / 2 + 0.5) * _BAR, row)
        _bound(panel, group, row)
    axes = panel.axes
    axes.set_title(f"batch {panel.rows[0][BATCH]}", fontsize=11)
    axes.set_yticks([g * _GROUP for g in range(len(panel.rows))], labels, fontsize=10)
    axes.set_xlim(0, panel.end)
    axes.set_ylim(len(panel.rows) * _GROUP - _GROUP / 2, -_GROUP / 2)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _bar(panel: _Panel, series: Series, group: int, middle: float, row: Row) -> None:
    length = row[series.column] / panel.unit
    at, label = min(length, panel.end), series.label if group == 0 else "_"
    panel.axes.barh(middle, at, _BAR * 0.9, color=series.colour, label=label)
    if length > panel.end:
        _cut(panel, middle)
    shift, side = (-4, "right") if length > (_LONGEST + 0.05) * panel.end else (4, "left")
    panel.axes.annotate(
        f"{length:.2f}", (at, middle), (shift, 0), textcoords="offset points", va="center", ha=side, fontsize=8
    )


def _cut(panel: _Panel, middle: float) -> None:
    """Draws two white strokes across a bar that is longer than it is drawn."""
    for part in (0.855, 0.87):
        x = [(part - 0.006) * panel.end, (part + 0.006) * panel.end]
        panel.axes.plot(x, [middle + _BAR * 0.6, middle - _BAR * 0.6], color="white", linewidth=1.6)


def _bound(panel: _Panel, group: int, row: Row) -> None:
    reach = len(SERIES) / 2 * _BAR + 0.05
    bound, middle = row["lower_bound"] / panel.unit, group * _GROUP
    label = "lower bound of the arena" if group == 0 else "_"
    panel.axes.plot([bound] * 2, [middle - reach, middle + reach], color="black", linewidth=1.3, label=label)
