"""The picture of a partition: a bar for each part as tall as its capacity, and what parts send to each other."""

from collections.abc import Iterator

from allocator.cuts.problem import TRAFFIC
from engine.partitions.result import OPTIMAL, Part, Partition
from engine.pictures.shapes import Drawing, Polygon, Polyline, Rect, Shape, TextLabel
from engine.pictures.wording import fitted
from engine.text.names import printable
from engine.text.palette import KINDS
from engine.text.units import counted, format_bytes

_TOP, _HEIGHT, _LEFT = 74.0, 220.0, 24.0
_BAR, _GAP = 96.0, 64.0
_SMALL, _NORMAL, _LARGE = 11.0, 12.5, 17.0
_WEIGHTS, _ARENA = KINDS[0], KINDS[1]


def draw(partition: Partition) -> Drawing:
    """Returns the picture of a partition."""
    parts = partition.parts
    width = max(_LEFT * 2 + len(parts) * _BAR + (len(parts) - 1) * _GAP, 420.0)
    height = _TOP + _HEIGHT + 92.0
    most = max(part.capacity for part in parts) or 1
    shapes: list[Shape] = [Rect(0, 0, width, height, "card"), *_title(partition, width)]
    for number, part in enumerate(parts):
        shapes += _part(part, number, most)
    shapes += _arrows(partition)
    summary = partition.text()
    return Drawing(width, height, tuple(shapes), f"{partition.graph.name} in parts", summary)


def _title(partition: Partition, width: float) -> Iterator[Shape]:
    name = fitted(f"{printable(partition.graph.name)}: {counted(len(partition.parts), 'part')}", _LARGE, width - 48)
    yield TextLabel(_LEFT, 26, name, _LARGE, "ink", bold=True)
    good = "the best there is" if partition.status == OPTIMAL else f"within {partition.gap:.1%} of the best"
    what = f"{format_bytes(partition.traffic_bytes)} sent between parts"
    if partition.objective != TRAFFIC:
        what = f"{partition.speedup:.2f} times the throughput of one part"
    yield TextLabel(_LEFT, 45, fitted(f"{what}: {good}", _NORMAL, width - 48), _NORMAL, "quiet")
    bottom = _TOP + _HEIGHT + 74
    for x, paint, word in ((_LEFT, _WEIGHTS, "weights"), (_LEFT + 82, _ARENA, "arena"), (_LEFT + 152, "gap", "free")):
        yield Rect(x, bottom - 10, 12, 12, paint)
        yield TextLabel(x + 17, bottom, word, _SMALL, "quiet")


def _part(part: Part, number: int, most: int) -> Iterator[Shape]:
    """Yields the bar of a part: its capacity, and from below its weights and its arena."""
    left, scale = _LEFT + number * (_BAR + _GAP), _HEIGHT / most
    floor, tall = _TOP + _HEIGHT, part.capacity * scale
    weights, arena = part.weights_bytes * scale, part.arena_bytes * scale
    title = f"part {number + 1}: {format_bytes(part.nbytes)} of {format_bytes(part.capacity)}"
    yield Rect(left, floor - tall, _BAR, tall, "gap", title)
    for lower, size, paint, word, nbytes in (
        (floor, weights, _WEIGHTS, "weights", part.weights_bytes),
        (floor - weights, arena, _ARENA, "arena", part.arena_bytes),
    ):
        yield Rect(left, lower - size, _BAR, size, paint, f"{word}: {format_bytes(nbytes)}")
        if size > 16:
            yield TextLabel(left + _BAR / 2, lower - size / 2 + 4, format_bytes(nbytes), _SMALL, "inside", "middle")
    yield TextLabel(left + _BAR / 2, floor - tall - 6, format_bytes(part.capacity), _SMALL, "quiet", "middle")
    lines = (f"part {number + 1}", counted(len(part.operators), "operator"), f"{part.fill:.1%} full")
    for line, text in enumerate(lines):
        yield TextLabel(left + _BAR / 2, floor + 16 + 14 * line, text, _SMALL, "ink" if not line else "quiet", "middle")


def _arrows(partition: Partition) -> Iterator[Shape]:
    """Yields an arrow between neighbours, with the bytes that go from parts before it to parts behind."""
    for number in range(len(partition.parts) - 1):
        nbytes = sum(s.nbytes for s in partition.sends if s.maker <= number < s.reader)
        begin, end = _LEFT + number * (_BAR + _GAP) + _BAR + 6, _LEFT + (number + 1) * (_BAR + _GAP) - 6
        y = _TOP + _HEIGHT / 2
        yield Polyline(((begin, y), (end - 6, y)), "bound", 2)
        yield Polygon(((end, y), (end - 8, y - 5), (end - 8, y + 5)), "bound")
        yield TextLabel((begin + end) / 2, y - 9, format_bytes(nbytes), _SMALL - 1.5, "bound", "middle")
