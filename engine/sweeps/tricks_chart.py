"""What each trick saves, as bars: a panel for training and one for forward only, a group a network, a bar a trick.

Both panels have one scale, so that bars of one can be compared with those of the other.
"""

from collections.abc import Sequence
from typing import Any

from engine.pictures.matplotlib import new_figure
from engine.sweeps.rows import Row, label_of
from engine.sweeps.table import Table
from engine.sweeps.task import BATCH
from engine.sweeps.tricks import BOTH, IN_PLACE, MODE, MODES, NONE, SHARING

BARS = {
    NONE: ("no optimisation", "#999999"),
    IN_PLACE: ("in place", "#E69F00"),
    SHARING: ("sharing", "#56B4E9"),
    BOTH: ("both", "#0072B2"),
}
"""What bars are called, and their colours: those of Okabe and Ito, which colour-blind people can tell apart."""
_BAR = 0.19
_UNIT = 2**20


def tricks_chart(table: Table) -> Any:
    """Returns a matplotlib Figure. Raises EngineError where matplotlib is not installed."""
    rows, names = table.good, [name for name in table.varied if name not in (BATCH, MODE)]
    modes = list(dict.fromkeys(row[MODE] for row in rows))
    tallest = max(sum(row[MODE] == mode for row in rows) for mode in modes)
    figure = new_figure(max(5.2 * len(modes), 6.4), 1.2 * tallest + 1.6)
    panels = figure.subplots(1, len(modes), squeeze=False, sharex=True)[0]
    for axes, mode in zip(panels, modes, strict=True):
        _draw(axes, MODES[mode], [row for row in rows if row[MODE] == mode], names)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(BARS), frameon=False, fontsize=9)
    figure.suptitle("Internal memory, weights not counted", fontsize=12, fontweight="bold")
    return figure


def _draw(axes: Any, mode: str, rows: Sequence[Row], names: Sequence[str]) -> None:
    for place, (column, (name, colour)) in enumerate(BARS.items()):
        sizes = [row[column] / _UNIT for row in rows]
        at = [group + (place - (len(BARS) - 1) / 2) * _BAR for group in range(len(rows))]
        bars = axes.barh(at, sizes, _BAR * 0.9, color=colour, label=name)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.set_title(mode, fontsize=11)
    axes.set_xlabel("MiB")
    axes.set_yticks(range(len(rows)), [f"{label_of(row, names)}\nbatch {row[BATCH]}" for row in rows], fontsize=10)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.16)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
