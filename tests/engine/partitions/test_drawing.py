"""The picture of a partition shows each part, and what it holds."""

from xml.etree import ElementTree as ET

from engine import zoo
from engine.exporters.svg import to_svg
from engine.partitions.drawing import draw
from engine.partitions.partition import partition
from engine.pictures.shapes import Rect, TextLabel
from engine.text.units import format_bytes


def test_bars_are_as_tall_as_what_parts_hold() -> None:
    result = partition(zoo.squeezenet(), ["4MiB", "20MiB"])
    drawing = draw(result)
    titled = {s.title: s for s in drawing.shapes if isinstance(s, Rect) and s.title}
    for number, part in enumerate(result.parts):
        bar = titled[f"part {number + 1}: {format_bytes(part.nbytes)} of {format_bytes(part.capacity)}"]
        arena = titled[f"arena: {format_bytes(part.arena_bytes)}"]
        assert arena.height / bar.height == part.arena_bytes / part.capacity
    texts = [s.text for s in drawing.shapes if isinstance(s, TextLabel)]
    assert format_bytes(result.traffic_bytes) in texts
    assert ET.fromstring(to_svg(drawing)).tag.endswith("svg")
