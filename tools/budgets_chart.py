"""The chart of `tools/bench_budgets.py`: slow-down over budget, a panel a network, a line for each way."""

from collections.abc import Iterator, Sequence

from engine.exporters.svg import to_svg
from engine.pictures.frame import Panel, Scale
from engine.pictures.shapes import Circle, Drawing, Polyline, Rect, Shape, TextLabel
from engine.text.palette import LINES
from tools.bench_budgets import PLAN, WAYS, Cost

_COLUMNS, _SMALL, _NORMAL, _LARGE = 3, 11.0, 12.5, 17.0
_WIDTH, _HEIGHT = 250.0, 170.0
"""Of a panel."""
_LEFT, _TOP, _ACROSS, _DOWN = 62.0, 84.0, 54.0, 74.0
"""Margins, and distances between panels."""
_CEILING = 2.0
"""Slow-downs above it are not drawn: the table has them."""
_STEP, _MARKS = 0.25, (100, 80, 60, 40, 20)
_PAINTS = {way: "ink" if way == PLAN else LINES[i - 1] for i, way in enumerate(WAYS)}


def budgets_chart(costs: Sequence[Cost], summary: str) -> bytes:
    """Returns the chart as SVG, light or dark as the reader prefers; `summary` describes it in words."""
    return to_svg(_drawing(costs, summary)).encode()


def _drawing(costs: Sequence[Cost], summary: str) -> Drawing:
    networks = list(dict.fromkeys(cost.network for cost in costs))
    rows = -(-(len(networks) + 1) // _COLUMNS)  # one place is for the legend
    width = _LEFT + _COLUMNS * _WIDTH + (_COLUMNS - 1) * _ACROSS + 24
    height = _TOP + rows * _HEIGHT + (rows - 1) * _DOWN + 56
    name = "Work within a budget, over the work without one"
    shapes: list[Shape] = [Rect(0, 0, width, height, "card", radius=8)]
    shapes.append(TextLabel(_LEFT, 30, name, _LARGE, "ink", bold=True))
    under = "budget in percent of the arena without one; a line ends at the smallest budget; above 2.00 see the table"
    shapes.append(TextLabel(_LEFT, 50, under, _NORMAL, "quiet"))
    for place, network in enumerate(networks):
        shapes += _panel(network, [c for c in costs if c.network == network], _area(place))
    return Drawing(width, height, (*shapes, *_legend(_area(len(networks)))), name, summary)


def _area(place: int) -> Panel:
    """Returns a place for a panel: across is 100 - percent, upwards slow-down - 1."""
    row, column = divmod(place, _COLUMNS)
    left, top = _LEFT + column * (_WIDTH + _ACROSS), _TOP + row * (_HEIGHT + _DOWN)
    across, up = Scale(80.0, left + 6, left + _WIDTH - 6), Scale(_CEILING - 1, top + _HEIGHT - 8, top + 4)
    return Panel(left, top, _WIDTH, _HEIGHT, across, up)


def _panel(network: str, costs: Sequence[Cost], area: Panel) -> Iterator[Shape]:
    yield Rect(area.left, area.top, area.width, area.height, "plot")
    yield TextLabel(area.left, area.top - 8, network, _NORMAL, "ink", bold=True)
    for mark in range(round((_CEILING - 1) / _STEP) + 1):
        y = area.up.at(mark * _STEP)
        yield Polyline(((area.left, y), (area.right, y)), "grid")
        yield TextLabel(area.left - 8, y + 4, f"{1 + mark * _STEP:.2f}", _SMALL, "quiet", "end")
    for percent in _MARKS:
        x = area.across.at(100.0 - percent)
        yield Polyline(((x, area.bottom), (x, area.bottom + 4)), "quiet")
        yield TextLabel(x, area.bottom + 17, f"{percent} %", _SMALL, "quiet", "middle")
    for way in reversed(WAYS):  # the plan on top
        yield from _line([c for c in costs if c.way == way], _PAINTS[way], area)


def _line(costs: Sequence[Cost], paint: str, area: Panel) -> Iterator[Shape]:
    """Yields a line through what was measured, larger budgets first, up to the upper edge of the panel."""
    measured = sorted({(100 - c.percent, c.slowdown - 1) for c in costs if c.slowdown})
    corners = list[tuple[float, float]]()
    for before, point in zip([measured[0], *measured], measured, strict=False) if measured else ():
        if point[1] > _CEILING - 1:
            share = (_CEILING - 1 - before[1]) / (point[1] - before[1]) if point[1] > before[1] else 0.0
            corners.append((before[0] + share * (point[0] - before[0]), _CEILING - 1))
            break
        corners.append(point)
    width = 3.0 if paint == "ink" else 1.6
    yield Polyline(area.points(corners), paint, width)
    if len(corners) == len(measured) and measured and measured[-1][1] <= _CEILING - 1:
        (x, y) = area.points(corners[-1:])[0]
        yield Circle(x, y, width + 1, paint)


def _legend(area: Panel) -> Iterator[Shape]:
    for line, way in enumerate(WAYS):
        y = area.top + 10 + 21 * line
        yield Polyline(((area.left, y - 4), (area.left + 28, y - 4)), _PAINTS[way], 3.0 if way == PLAN else 1.6)
        text = "plan, in which operators run again" if way == PLAN else f"eviction at run time: {way}"
        yield TextLabel(area.left + 38, y, text, _NORMAL, "ink")
