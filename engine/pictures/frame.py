"""Where the parts of a picture stand, and the axes around them."""

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from engine.pictures.options import PictureOptions
from engine.pictures.scales import Scale, byte_values, tick_values, time_values
from engine.pictures.shapes import Polyline, Rect, Shape, TextLabel
from engine.pictures.wording import fitted, printable

SMALL, NORMAL, LARGE = 11.0, 12.5, 17.0
"""Heights of letters."""
_LEFT, _RIGHT = 72.0, 20.0
_TITLE, _GAP, _CURVES = 62.0, 22.0, 100.0
_NAME = 30.0
"""Width of a tick from which on its operator is named."""
AXIS_ROOM, NAMES_ROOM, CARD_MARGIN = 25.0, 15.0, 14.0
"""Heights below the lowest plot: of the axis, of names of operators; and below everything."""


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
        """Pixels of (time, bytes)."""
        return tuple((self.across.at(time), self.up.at(size)) for time, size in corners)


def panel(options: PictureOptions, top: float, height: float, last: float, most: float) -> Panel:
    """Room for a plot of `last` ticks or seconds and `most` bytes."""
    left, right = (4.0, 4.0) if options.compact else (_LEFT, _RIGHT)
    width = options.width - left - right
    return Panel(left, top, width, height, Scale(last, left, left + width), Scale(most, top + height, top))


def plot_tops(options: PictureOptions, has_map: bool) -> tuple[float, float, float]:
    """The y of the map and of the curves, and the height of the curves (0: there are none)."""
    top = 4.0 if options.compact else _TITLE if options.title else 16.0
    if not has_map:
        return top, top, float(options.height)
    curves = _CURVES if options.curves and not options.compact else 0.0
    return top, top + options.height + _GAP, curves


def backdrop(area: Panel) -> Shape:
    """The ground of a plot."""
    return Rect(area.left, area.top, area.width, area.height, "plot")


def byte_axis(area: Panel, most: int) -> Iterator[Shape]:
    """Lines across, with sizes at the left."""
    for value, label in byte_values(area.up.last, most):
        y = area.up.at(value)
        yield Polyline(((area.left, y), (area.right, y)), "grid")
        yield TextLabel(area.left - 8, y + 4, label, SMALL, "quiet", "end")


def time_axis(area: Panel, timed: bool) -> Iterator[Shape]:
    """Small strokes below, with ticks or seconds; what they are is said at the left."""
    values = (time_values if timed else tick_values)(area.across.last, max(2, int(area.width // 80)))
    for value, label in values:
        x = area.across.at(value)
        yield Polyline(((x, area.bottom), (x, area.bottom + 4)), "quiet")
        yield TextLabel(x, area.bottom + 17, label, SMALL, "quiet", "middle")
    yield TextLabel(area.left - 14, area.bottom + 17, "time" if timed else "tick", SMALL, "quiet", "end")


def stage_lines(area: Panel, starts: Iterable[float]) -> Iterator[Shape]:
    """Where a run learns sizes that it did not know, and goes on with another plan."""
    for start in starts:
        x = area.across.at(start)
        yield Polyline(((x, area.top), (x, area.bottom)), "quiet", 1, 5)


def operator_names(area: Panel, operators: Iterable[tuple[int, str]]) -> Iterator[Shape]:
    """Below the ticks, each in the middle of its own, where ticks are wide enough."""
    room = area.across.length(1.0) - 6
    for tick, name in operators:
        label = fitted(printable(name), SMALL, room) if room > _NAME else ""
        if label:
            yield TextLabel(area.across.at(tick + 0.5), area.bottom + 32, label, SMALL, "quiet", "middle")
