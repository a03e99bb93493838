"""The plots of a picture: their boxes and scales in pixels, their axes, and round numbers for the axes."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from attrs import frozen

from engine.pictures.options import PictureOptions
from engine.pictures.shapes import Polyline, Rect, Shape, TextLabel
from engine.pictures.wording import fitted
from engine.text.names import printable
from ops.tensor.spec import Array

Number = TypeVar("Number", float, Array)

SMALL, NORMAL, LARGE = 11.0, 12.5, 17.0
"""Font sizes."""
_LEFT, _RIGHT = 72.0, 20.0
"""Widths beside the plots: of the labels of the byte axis, and of the margin."""
_TITLE, _GAP, _CURVES = 62.0, 22.0, 100.0
"""Heights: of the title, of the gap between the two plots, of the plot of the curves."""
_NAME = 30.0
"""Width of a tick from which on its operator is named."""
AXIS_HEIGHT, NAMES_HEIGHT, CARD_MARGIN = 25.0, 15.0, 14.0
"""Heights below the lowest plot: of the axis, of names of operators; and below everything."""
_UNITS = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
_TIMES = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))


@frozen
class Scale:
    """A map of values from 0 to `last` to pixels from `start` to `stop`."""

    last: float
    start: float
    stop: float

    def at(self, value: Number) -> Number:
        """Returns the pixel of a value."""
        return value * ((self.stop - self.start) / self.last) + self.start

    def length(self, value: Number) -> Number:
        """Returns the pixels of a difference of values."""
        return value * (abs(self.stop - self.start) / self.last)


@frozen(eq=False)
class Panel:
    """A plot: its box in pixels and its scales; `across` is time, `up` bytes."""

    left: float
    top: float
    width: float
    height: float
    across: Scale
    up: Scale

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """The x of its right edge."""
        return self.left + self.width

    def points(self, corners: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
        """Returns points in pixels of corners in (time, bytes)."""
        return tuple((self.across.at(time), self.up.at(size)) for time, size in corners)


def panel(options: PictureOptions, top: float, height: float, last: float, most: float) -> Panel:
    """Returns a plot of `last` ticks or seconds and `most` bytes."""
    left, right = (4.0, 4.0) if options.compact else (_LEFT, _RIGHT)
    width = options.width - left - right
    return Panel(left, top, width, height, Scale(last, left, left + width), Scale(most, top + height, top))


def plot_tops(options: PictureOptions, has_map: bool) -> tuple[float, float, float]:
    """Returns the y of the map and of the curves, and the height of the curves (0: there are none)."""
    top = 4.0 if options.compact else _TITLE if options.title else 16.0
    if not has_map:
        return top, top, float(options.height)
    curves = _CURVES if options.curves and not options.compact else 0.0
    return top, top + options.height + _GAP, curves


def backdrop(area: Panel) -> Shape:
    """Returns the background of a plot."""
    return Rect(area.left, area.top, area.width, area.height, "plot")


def byte_axis(area: Panel, most: int) -> Iterator[Shape]:
    """Yields horizontal grid lines, at most `most` above 0, with their sizes at the left."""
    for value, label in byte_values(area.up.last, most):
        y = area.up.at(value)
        yield Polyline(((area.left, y), (area.right, y)), "grid")
        yield TextLabel(area.left - 8, y + 4, label, SMALL, "quiet", "end")


def time_axis(area: Panel, timed: bool) -> Iterator[Shape]:
    """Yields the marks and labels of ticks or seconds below a plot, with the name of the axis at the left."""
    values = (time_values if timed else tick_values)(area.across.last, max(2, int(area.width // 80)))
    for value, label in values:
        x = area.across.at(value)
        yield Polyline(((x, area.bottom), (x, area.bottom + 4)), "quiet")
        yield TextLabel(x, area.bottom + 17, label, SMALL, "quiet", "middle")
    yield TextLabel(area.left - 14, area.bottom + 17, "time" if timed else "tick", SMALL, "quiet", "end")


def stage_lines(area: Panel, starts: Iterable[float]) -> Iterator[Shape]:
    """Yields a vertical dashed line where each of these stages starts."""
    for start in starts:
        x = area.across.at(start)
        yield Polyline(((x, area.top), (x, area.bottom)), "quiet", 1, 5)


def operator_names(area: Panel, operators: Iterable[tuple[int, str]]) -> Iterator[Shape]:
    """Yields the names of operators below the middle of their ticks, where ticks are wide enough."""
    width = area.across.length(1.0) - 6
    for tick, name in operators:
        label = fitted(printable(name), SMALL, width) if width > _NAME else ""
        if label:
            yield TextLabel(area.across.at(tick + 0.5), area.bottom + 32, label, SMALL, "quiet", "middle")


def round_step(last: float, most: int) -> float:
    """Returns the smallest of 1, 2, 5, 10, 20, 50, ... of which no more than `most` are in `last`."""
    rough = last / most
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def _round_values(last: float, most: int) -> list[float]:
    """Returns multiples of a round step from 0 to `last`."""
    step = round_step(last, most)
    return [i * step for i in range(math.floor(last / step * (1 + 1e-9)) + 1)]


def byte_values(last: float, most: int) -> list[tuple[float, str]]:
    """Returns round sizes up to `last` bytes, with their labels."""
    name, unit = next((n, u) for n, u in _UNITS if last >= u or u == 1)
    values = _round_values(last / unit, most)
    return [(v * unit, f"{v:g} {name}" if v else "0") for v in values if unit > 1 or v == int(v)]


def tick_values(last: float, most: int) -> list[tuple[float, str]]:
    """Returns round ticks up to `last`, with their labels."""
    return [(v, f"{v:,.0f}") for v in _round_values(last, most) if v == int(v)]


def time_values(last: float, most: int) -> list[tuple[float, str]]:
    """Returns round times up to `last` seconds, with their labels."""
    name, unit = next(((n, u) for n, u in _TIMES if last >= u), _TIMES[-1])
    return [(v * unit, f"{v:g} {name}" if v else "0") for v in _round_values(last / unit, most)]
