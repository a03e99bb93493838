"""Pictures of several memories: a plot for each, with its tensors and weights, and arrows for copies."""

import re

import pytest

from engine.exporters.svg import svg
from engine.pictures.arena import draw
from engine.pictures.options import PAGE, PictureOptions
from engine.pictures.shapes import Polygon, Rect
from engine.trace.rectangles import rectangles_of
from tests.helpers.traces.cascaded_plans import cascaded_plan
from tests.helpers.traces.copied_beside import copied_beside
from tests.helpers.traces.moved_tensors import moved_tensors


def test_each_memory_has_a_plot_with_its_tensors_and_weights() -> None:
    of = rectangles_of(moved_tensors().trace())
    drawing = draw(of, PAGE)
    plots = [s for s in drawing.shapes if isinstance(s, Rect) and s.paint == "plot"][: len(of.facts.memories)]
    boxes = {s.title.split("\n")[0]: s for s in drawing.shapes if isinstance(s, Rect) and s.title}
    assert len(boxes) == len(of) + len(of.weights)
    lanes = [of.facts.memory_at(at) for at in of.offset.tolist()] + [weight.memory for weight in of.weights]
    for name, m in zip([*of.name, *(weight.name for weight in of.weights)], lanes, strict=True):
        box, plot = boxes[name], plots[m]
        assert plot.y <= box.y and box.y + box.height <= plot.y + plot.height
        assert f"in {of.facts.memories[m].name}" in box.title
    arrows = [s for s in drawing.shapes if isinstance(s, Polygon) and s.paint == "ink"]
    targets = [boxes[of.name[move.chunk]] for move in of.moves]
    assert all(box.y < s.points[0][1] < box.y + box.height for s, box in zip(arrows, targets, strict=True))


def test_a_picture_names_each_memory_and_what_is_used_of_it() -> None:
    texts = re.findall(r">([^<]*)</text>", svg(rectangles_of(moved_tensors().trace())))
    assert [text.split(",")[0] for text in texts if " used" in text] == [
        "sram: 12.00 KiB of 64.00 KiB used",
        "dram: 4.00 KiB of 1.00 MiB used",
        "flash: 8.00 KiB of 1.00 MiB used",
    ]
    assert not any(
        " used" in text for text in re.findall(r">([^<]*)</text>", svg(rectangles_of(cascaded_plan().trace())))
    )


@pytest.mark.parametrize("is_compact", [False, True])
def test_copies_of_a_copy_engine_have_a_strip_below_the_memories(is_compact: bool) -> None:
    plan = copied_beside()
    trace = plan.trace(threads=1)
    options = PictureOptions(compact=is_compact)
    shapes = draw(rectangles_of(trace), options).shapes
    boxes = [s for s in shapes if isinstance(s, Rect) and s.title.endswith("\ncopy engine")]
    lowest = max(s.y + s.height for s in shapes if isinstance(s, Rect) and "ticks" in s.title)
    whole = max(copied.end for copied in plan.copy_times.copies)
    for one, box in zip(plan.copy_times.copies, boxes, strict=True):
        assert box.y > lowest
        share = (box.x - boxes[0].x) / (boxes[-1].x + boxes[-1].width - boxes[0].x)
        assert share == pytest.approx((one.begin - plan.copy_times.copies[0].begin) / whole, abs=0.01)
    assert not any(
        isinstance(s, Rect) and s.title.endswith("copy engine")
        for s in draw(rectangles_of(moved_tensors().trace()), options).shapes
    )
