"""The page of several memories, and of cascades: lanes with what is in them, reasons, arrows, stripes."""

import re

import pytest

from engine.trace.rectangles import rectangles_of
from tests.helpers.browser.viewer_pages import Open
from tests.helpers.traces.cascaded_plans import cascaded_plan
from tests.helpers.traces.copied_beside import copied_beside
from tests.helpers.traces.moved_tensors import moved_tensors

_SHOWN = """() => ({
  svg: arenaplan.svg(),
  rows: [...document.querySelectorAll("#memories tr")].map((row) => [...row.cells].map((cell) => cell.innerText)),
  panel: [...document.querySelectorAll("#details dd")].map((cell) => cell.innerText).join("\\n"),
})"""
_BOXES = """many => Array.from({ length: many }, (_, chunk) => {
  const { x, y, width, height } = arenaplan.rectAt(chunk);
  return [x, y, width, height];
})"""


def test_the_page_has_a_lane_for_each_memory_with_its_tensors_weights_and_copies(shown: Open) -> None:
    plan = moved_tensors()
    trace, of = plan.trace(), rectangles_of(plan.trace())
    with shown(trace) as page:
        page.evaluate("document.getElementById('weights').click()")
        page.evaluate(f"arenaplan.select({of.name.index('far')})")
        said, boxes = page.evaluate(_SHOWN), page.evaluate(_BOXES, len(of) + len(of.weights))
    assert [row[:3] for row in said["rows"][1:]] == [
        ["sram", "12.00 KiB", "64.00 KiB"],
        ["dram", "4.00 KiB", "1.00 MiB"],
        ["flash", "8.00 KiB", "1.00 MiB"],
    ]
    for name, *sizes, _ in said["rows"][1:]:
        assert f"{name}: {sizes[0]} of {sizes[1]} used" in said["svg"]
    assert of.reason[of.name.index("far")].splitlines()[0] in said["panel"] and "up to 4,096 in dram" in said["panel"]
    lanes = [trace.facts.memory_at(at) for at in of.offset.tolist()] + [weight.memory for weight in of.weights]
    floors = {m: max(y + h for lane, (_, y, _, h) in zip(lanes, boxes, strict=True) if lane == m) for m in set(lanes)}
    tops = {m: min(y for lane, (_, y, _, _) in zip(lanes, boxes, strict=True) if lane == m) for m in set(lanes)}
    assert tops[0] > floors[1] and tops[1] > floors[2]  # y grows downwards, and the first memory is at the bottom
    starts = [part.start for part in trace.facts.memories]
    above = [at - starts[lanes[i]] for i, at in enumerate(of.offset.tolist())] + [w.offset for w in of.weights]
    pixels = boxes[0][3] / int(of.size[0])
    assert all(
        abs(floors[lane] - (y + h) - at * pixels) < 1e-6 * floors[lane]
        for lane, at, (_, y, _, h) in zip(lanes, above, boxes, strict=True)
    )
    assert said["svg"].count('stroke-width="1.75"') == len(of.moves) == 2


def test_the_same_tensor_of_another_plan_has_its_address_in_its_memory(shown: Open) -> None:
    trace = moved_tensors().trace()
    with shown(trace, trace) as page:
        page.evaluate(f"arenaplan.select({rectangles_of(trace).name.index('far')})")
        panel = page.evaluate(_SHOWN)["panel"].split("\n")
    assert any(line.startswith("0 up to 4,096 in dram") for line in panel)
    assert any(line.startswith("4.00 KiB at 0 in dram, ") for line in panel)


def test_copies_of_a_copy_engine_have_a_lane_of_their_own(shown: Open) -> None:
    plan = copied_beside()
    copies = {copied.tick for copied in plan.copy_times.copies}
    names = {call.name for call in plan.lowered.calls if call.tick in copies}
    for threads in (0, 1):
        with shown(plan.trace(threads=threads)) as page:
            svg = page.evaluate("arenaplan.svg()")
        (lane,) = re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>engine</text>', svg)
        (above,) = re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>operators</text>', svg)
        assert float(lane) - float(above) == pytest.approx(18)
        texts = re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>([^<]*)</text>', svg)
        in_lane = [text for y, text in texts if abs(float(y) - float(lane)) < 2]
        for text in set(in_lane) - {"engine"}:
            assert any(re.fullmatch(re.escape(text).replace("…", ".*"), name) for name in names)  # short of space
        assert "thread 1" not in svg
    assert len(in_lane) > 1  # the copies of weights are long enough for their names


def test_one_memory_has_no_lanes_and_no_table(shown: Open) -> None:
    with shown(cascaded_plan().trace()) as page:
        assert page.evaluate("document.getElementById('memories').hidden")
        assert ">engine<" not in page.evaluate("arenaplan.svg()")


def test_the_page_has_cascades_and_stripes_above_their_operators(shown: Open) -> None:
    plan = cascaded_plan()
    stripes, ((first, last, _), *_) = plan.trace().details().stripes, plan.optimisation[0].cascades[0].runs
    with shown(plan.trace()) as page:
        svg = page.evaluate("() => arenaplan.svg()")
    assert all(f">{name}</text>" in svg for name in ("cascades", "stripes", "operators"))
    assert f">{first} to {last}</text>" in svg
    assert f">{stripes[0].stripe + 1} of {stripes[0].count}</text>" in svg
