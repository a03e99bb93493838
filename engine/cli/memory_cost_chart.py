"""What each trick saves, as bars: a panel for training and one for forward only, a group a network, a bar a trick.

Both panels have one scale, so that bars of one can be compared with those of the other.
"""

from collections.abc import Sequence
from typing import Any

from engine.cli.memory_cost import BOTH, IN_PLACE, NONE, SHARING, MemoryCost
from engine.pictures.matplotlib import new_figure

COLOURS = {NONE: "#999999", IN_PLACE: "#E69F00", SHARING: "#56B4E9", BOTH: "#0072B2"}
"""Colours of Okabe and Ito, which colour-blind people can tell apart."""
_BAR = 0.19
_UNIT = 2**20


def cost_chart(rows: Sequence[MemoryCost]) -> Any:
    """Returns a matplotlib Figure. Raises EngineError where matplotlib is not installed."""
    modes = list(dict.fromkeys(row.mode for row in rows))
    tallest = max(sum(row.mode == mode for row in rows) for mode in modes)
    figure = new_figure(max(5.2 * len(modes), 6.4), 1.2 * tallest + 1.6)
    panels = figure.subplots(1, len(modes), squeeze=False, sharex=True)[0]
    for axes, mode in zip(panels, modes, strict=True):
        _draw(axes, mode, [row for row in rows if row.mode == mode])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(COLOURS), frameon=False, fontsize=9)
    figure.suptitle("Internal memory, weights not counted", fontsize=12, fontweight="bold")
    return figure


def _draw(axes: Any, mode: str, rows: Sequence[MemoryCost]) -> None:
    for place, (name, colour) in enumerate(COLOURS.items()):
        sizes = [row.internal_bytes[name] / _UNIT for row in rows]
        at = [group + (place - (len(COLOURS) - 1) / 2) * _BAR for group in range(len(rows))]
        bars = axes.barh(at, sizes, _BAR * 0.9, color=colour, label=name)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8)
    axes.set_title(mode, fontsize=11)
    axes.set_xlabel("MiB")
    axes.set_yticks(range(len(rows)), [f"{_name(row)}\nbatch {row.batch}" for row in rows], fontsize=10)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.margins(x=0.16)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _name(row: MemoryCost) -> str:
    return row.model.removeprefix("zoo:").removesuffix(".onnx")
