"""What the page tells of one tensor and of kinds of tensors: who uses it and why, weights, and areas of the curves."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import engine
from engine import Trace, zoo
from engine.execution_plan import ExecutionPlan
from engine.readers import read_trace
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles, rectangles_of
from tests.helpers.browser.browser_session import Session
from tests.helpers.browser.viewer_pages import Open, Page, opened, state
from tests.helpers.graphs.perceptrons import perceptron
from tests.helpers.traces.hostile_names import synthetic_trace
from tests.helpers.traces.sample_traces import staged
from tests.helpers.traces.saved_traces import save_trace

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return engine.make_plan(zoo.squeezenet(image=64), optimise=0)


@pytest.fixture(scope="module")
def step() -> ExecutionPlan:
    return engine.make_plan(perceptron(1, 64, engine.Adam(), "float32"), optimise=0)


def _panel(page: Page, chunk: int) -> dict[str, str]:
    """Returns the rows of the panel of a chunk, by their names."""
    return _panels(page, [chunk])[0]


def _panels(page: Page, chunks: Sequence[int]) -> list[dict[str, str]]:
    rows: list[list[list[str]]] = page.evaluate(_ROWS, list(chunks))
    return [dict(zip(names, values, strict=True)) for names, values in rows]


_ROWS = """chunks => chunks.map((chunk) => {
  arenaplan.select(chunk);
  return ["dt", "dd"].map((tag) => [...document.querySelectorAll(`#details ${tag}`)].map((e) => e.innerText));
})"""


def test_the_panel_lists_who_writes_and_who_reads(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    ran = {o.tick: o for o in of.operators}
    with shown(plan.trace()) as page:
        for chunk, panel in enumerate(_panels(page, range(len(of)))):
            ticks = sorted(of.read_tick[of.read_row == chunk].tolist())
            said = panel.get("read by", "").splitlines()
            assert [int(line.rpartition(" ")[2]) for line in said] == ticks
            for tick, line in zip(ticks, said, strict=True):
                assert line.startswith(ran[tick].name if tick in ran else "the caller, as an output")
            begin = int(of.begin[chunk])
            assert panel["written by"].startswith(of.operator[chunk] if begin else "the caller")
            if begin in ran and ran[begin].name == of.operator[chunk]:
                assert panel.get("attributes", "") == ran[begin].attributes


def test_the_panel_names_who_overwrites_whom(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    over = [i for i in range(len(of)) if of.overwrites[i] >= 0]
    assert over
    with shown(plan.trace()) as page:
        for chunk in over[:4]:
            taken = int(of.overwrites[chunk])
            assert _panel(page, chunk)["overwrites"] == of.name[taken]
            page.locator("#details dd button", has_text=re.compile(f"^{of.name[taken]}$")).first.click()
            assert state(page)["selected"]["chunk"] == taken
            assert _panel(page, taken)["overwritten by"] == of.name[chunk]


def test_a_reader_that_is_clicked_lists_its_tick(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    with shown(plan.trace()) as page:
        page.evaluate("arenaplan.select(0)")
        tick = int(of.read_tick[of.read_row == 0][0])
        page.locator("#details dd li button").first.click()
        assert page.inner_text("#table-title") == f"Alive in tick {tick}"


def test_the_panel_says_why_a_tensor_is_alive_at_the_peak(
    shown: Open, plan: ExecutionPlan, of: Rectangles, step: ExecutionPlan
) -> None:
    for planned, data in ((plan, of), (step, rectangles_of(step.trace()))):
        peak, at_peak = planned.report().peak_tick, set(data.at_peak.tolist())
        ran = {o.tick: o.name for o in data.operators}
        with shown(planned.trace()) as page:
            panels = _panels(page, range(len(data)))
        assert {i for i, panel in enumerate(panels) if "at the peak" in panel} == at_peak
        reasons = [panel.get("at the peak", "") for panel in panels]
        for chunk in at_peak:
            reads = data.read_tick[data.read_row == chunk]
            later = reads[reads > peak]
            assert ("written then" in reasons[chunk] or "scratch" in reasons[chunk]) == (data.begin[chunk] == peak)
            assert ("read then" in reasons[chunk]) == (peak in reads.tolist() and data.begin[chunk] != peak)
            is_taken = data.begin[data.overwrites == chunk].tolist() == [peak]
            assert ("written over it then" in reasons[chunk]) == is_taken
            if len(later) and not is_taken:
                who = ran.get(int(later[0]), "the caller")
                assert f"kept for {who}" in reasons[chunk]
                assert re.search(rf"\b{later[0] - peak} ticks? later", reasons[chunk])


def test_a_saved_trace_tells_no_readers_and_guesses_none(shown: Open, plan: ExecutionPlan, tmp_path: Path) -> None:
    with shown(read_trace(save_trace(plan.trace(), tmp_path / "trace.json"))) as page:
        panels = _panels(page, range(20))
        assert not page.is_visible("#weights")
    assert not any("read by" in panel or "attributes" in panel for panel in panels)
    reasons = [panel["at the peak"] for panel in panels if "at the peak" in panel]
    assert any("kept until tick" in reason for reason in reasons)
    assert not any("not needed" in reason for reason in reasons)


def test_stages_have_readers(shown: Open) -> None:
    trace = staged(1)
    of = rectangles_of(trace)
    with shown(trace) as page:
        assert "read by" in _panel(page, int(of.read_row[-1]))


def test_weights_are_a_band_of_their_own_on_demand(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    weights = of.weights
    with shown(plan.trace()) as page:
        home, table = state(page)["home"], page.inner_text("#table-totals")
        page.select_option("#colour", "role")
        assert "weight" not in page.locator("#legend .name").all_inner_texts()
        page.click("#weights")
        assert page.get_attribute("#weights", "aria-pressed") == "true"
        seen = state(page)["home"]
        assert -seen["b0"] >= plan.weights_bytes
        assert (seen["t0"], seen["t1"], seen["b1"]) == (home["t0"], home["t1"], home["b1"])
        assert page.inner_text("#table-totals") == table
        assert state(page)["plans"][0]["chunks"] == len(of) + len(weights)
        rects = page.evaluate(
            "n => Array.from({length: n}, (_, i) => arenaplan.rectAt(i).toJSON())", len(of) + len(weights)
        )
        floor = max(rect["bottom"] for rect in rects[: len(of)])
        high = sum(rect["height"] for rect in rects[len(of) :])
        per_byte = rects[0]["height"] / of.size[0]
        assert high == pytest.approx(per_byte * plan.weights_bytes, rel=1e-3)
        assert all(rect["top"] > floor for rect in rects[len(of) :])
        largest = max(range(len(weights)), key=lambda i: weights[i].bytes)
        panel = _panel(page, len(of) + largest)
        assert panel["role"] == "weight"
        assert [int(line.rpartition(" ")[2]) for line in panel["read by"].splitlines()] == list(weights[largest].ticks)
        rect = rects[len(of) + largest]
        page.mouse.move(rect["x"] + rect["width"] / 2, rect["y"] + rect["height"] / 2)
        assert weights[largest].name in page.inner_text("#tip")
        page.fill("#search", "role:weight")
        assert state(page)["matches"] == len(weights)
        assert "weights=1" in state(page)["link"]
        page.click("#weights")
        assert state(page)["home"] == home
        assert state(page)["matches"] == 0
        assert state(page)["selected"] is None


def test_weights_stand_below_a_run_without_addresses_too(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace("dynamic"), plan.trace(), before="location.hash ||= 'weights=1'") as page:
        assert "no addresses" in page.inner_text("#note")
        for pane in (0, 1):
            first = page.evaluate("pane => arenaplan.rectAt(0, pane).toJSON()", pane)
            last = page.evaluate(
                "pane => arenaplan.rectAt(arenaplan.state().plans[pane].chunks - 1, pane).toJSON()", pane
            )
            assert last["top"] > first["bottom"]


def test_a_plan_without_weights_has_no_button_for_them(shown: Open) -> None:
    with shown(synthetic_trace(9)) as page:
        assert not page.is_visible("#weights")


def test_training_has_its_classes(shown: Open, step: ExecutionPlan) -> None:
    of = rectangles_of(step.trace())
    with shown(step.trace()) as page:
        page.select_option("#colour", "role")
        labels = page.locator("#legend .name").all_inner_texts()
        tallies = [int(text) for text in page.locator("#legend .tally").all_inner_texts()]
        page.fill("#search", 'role:"saved for backward"')
        matches = state(page)["matches"]
    assert {"gradient", "optimiser state", "saved for backward", "weight update", "parameter"} <= set(labels)
    for label, tally in zip(labels, tallies, strict=True):
        assert tally == of.role.count(label) or label == "1 other"
    assert matches == of.role.count("saved for backward") > 0


def _areas(page: Page, colours: dict[str, str]) -> dict[str, list[tuple[float, float]]]:
    """Returns the points of the areas below the curves, by the label of their colour."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for path in ET.fromstring(page.evaluate("arenaplan.svg()")).iter(f"{SVG}path"):
        label = colours.get(path.get("fill", ""))
        if label:
            points = path.get("d", "").replace("M", "L").split("L")[1:]
            curves[label] = [(float(x), float(y)) for x, y in (point.split() for point in points)]
    return curves


@pytest.mark.parametrize("colour", ["role", "schema"])
def test_areas_below_the_curves_show_what_is_alive_by_colour(shown: Open, step: ExecutionPlan, colour: str) -> None:
    of = rectangles_of(step.trace())
    kinds = of.role if colour == "role" else [s or r for s, r in zip(of.schema, of.role, strict=True)]
    until = of.end.copy()
    for i, taken in enumerate(of.overwrites.tolist()):
        if taken >= 0:
            until[taken] = of.begin[i]
    with shown(step.trace(), color_scheme="light") as page:
        page.select_option("#colour", colour)
        labels = page.locator("#legend .name").all_inner_texts()
        fills = page.locator("#legend .swatch").evaluate_all("all => all.map(s => s.style.backgroundColor)")
        box, home = page.locator("#curves").bounding_box(), state(page)["home"]
        hexes = ["#{:02x}{:02x}{:02x}".format(*map(int, re.findall(r"\d+", fill))) for fill in fills]
        areas = _areas(page, dict(zip(hexes, labels, strict=True)))
    most, high, wide = home["b1"] * 1.02, box["height"] - 22 - 6, box["width"] - 76 - 12
    ticks = int(of.end.max())
    assert {label for label in labels if "other" not in label} <= set(areas) | {"1 other"}
    for label, points in areas.items():
        if "other" in label:
            continue
        mine = np.array([kind == label for kind in kinds])
        alive = [int(of.size[mine & (of.begin <= t) & (t < until)].sum()) for t in range(ticks)]
        for tick, size in enumerate(alive):
            x = 76 + (tick + 0.5) / ticks * wide
            assert _height(points, x) / high * most == pytest.approx(size, abs=most / high * 0.2 + 1), (label, tick)


def _height(points: list[tuple[float, float]], x: float) -> float:
    """Returns how high an area is at an x: it goes to the right along its upper side, and back along its lower one."""
    upper = [p for p in points if p[0] <= x]
    middle = points.index(max(points, key=lambda p: p[0]))
    above = [p for p in points[: middle + 1] if p[0] <= x][-1][1]
    below = [p for p in points[middle + 1 :] if p[0] <= x]
    return (below[0][1] if below else above) - above if upper else 0.0


_OVERLAPS = """() => {
  const file = new DOMParser().parseFromString(arenaplan.svg(), "image/svg+xml");
  const svg = document.body.appendChild(document.importNode(file.documentElement, true));
  const boxes = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
  const whole = svg.getBoundingClientRect();
  svg.remove();
  const bad = [];
  boxes.forEach(([a, p], i) => {
    if (p.left < whole.left - 1 || p.right > whole.right + 1) bad.push(`${a} is cut`);
    for (const [b, q] of boxes.slice(i + 1)) {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 0.5 && down > 3) bad.push(`${a} over ${b}`);
    }
  });
  return bad;
}"""


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize("which", ["one", "two", "training"])
def test_no_label_lies_over_another(
    shown: Open, plan: ExecutionPlan, step: ExecutionPlan, which: str, width: int
) -> None:
    traces = {
        "one": [plan.trace()],
        "two": [plan.trace(), plan.trace("dynamic", heap="pytorch")],
        "training": [step.trace()],
    }[which]
    with shown(*traces, viewport={"width": width, "height": 844}) as page:
        assert page.evaluate(_OVERLAPS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


_CUT = """() => {
  const bad = [], boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    const isHeard = parent.closest(".unseen, .word, script, noscript, select, dialog");
    if (!node.data.trim() || !parent.checkVisibility() || isHeard) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) boxes.push([node.data.trim(), box]);
    const isBox = getComputedStyle(parent).display !== "inline";
    if (isBox && parent.scrollWidth > parent.clientWidth + 1) bad.push(`${node.data} is cut`);
  }
  boxes.forEach(([a, p], i) => {
    if (p.left < 0 || p.right > innerWidth) bad.push(`${a} is outside`);
    for (const [b, q] of boxes.slice(i + 1)) {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 1 && down > 4) bad.push(`${a} over ${b}`);
    }
  });
  return bad;
}"""


@pytest.mark.parametrize("width", [1280, 800, 390])
@pytest.mark.parametrize("which", ["one", "two", "training", "missed"])
def test_no_word_of_the_page_is_cut_or_lies_over_another(
    shown: Open, plan: ExecutionPlan, step: ExecutionPlan, which: str, width: int
) -> None:
    trace = plan.trace()
    facts = evolve(trace.facts, budget_bytes=plan.arena_bytes // 2)
    traces = {
        "one": [trace],
        "two": [trace, plan.trace("dynamic", heap="pytorch")],
        "training": [step.trace()],
        "missed": [Trace(facts, lambda: iter(trace))],
    }[which]
    with shown(*traces, viewport={"width": width, "height": 844}) as page:
        assert page.evaluate(_CUT) == []
        page.select_option("#colour", "role")
        page.evaluate("arenaplan.select(3)")
        assert page.evaluate(_CUT) == []


def test_a_budget_that_is_missed_is_a_line_in_both_pictures(shown: Open, plan: ExecutionPlan) -> None:
    trace, budget = plan.trace(), plan.arena_bytes // 2
    missed = Trace(evolve(trace.facts, budget_bytes=budget), lambda: iter(trace))
    with shown(missed, color_scheme="light") as page:
        home, plot, curves = state(page)["home"], *(page.locator(n).bounding_box() for n in ("#plot", "#curves"))
        colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--budget')")
        svg = ET.fromstring(page.evaluate("arenaplan.svg()"))
        figures = " ".join(page.inner_text("#figures").split())
        page.evaluate("b => arenaplan.find('size<' + b)", budget)
    lines = [p for p in svg.iter(f"{SVG}path") if p.get("stroke") == colour.strip() and p.get("d", "").count("L") == 1]
    heights = sorted({float(line.get("d", "").split()[-1]) for line in lines})
    wanted = [8 + (plot["height"] - 32) * (1 - budget / home["b1"])]
    wanted += [22 + (curves["height"] - 28) * (1 - budget / (home["b1"] * 1.02))]
    for y in wanted:
        assert any(height == pytest.approx(y, abs=1) for height in heights), (y, heights)
    assert "budget" in "".join(svg.itertext())
    assert f"budget {format_bytes(budget)} missed by {format_bytes(plan.arena_bytes - budget)}" in figures


def test_after_a_tap_the_picture_and_the_tensor_are_in_sight(
    browser: Session, tmp_path: Path, plan: ExecutionPlan, of: Rectangles
) -> None:
    large = max(range(len(of)), key=lambda i: int(of.size[i]) * int(of.end[i] - of.begin[i]))
    how: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    with opened(browser, tmp_path, plan.trace(), **how) as page:
        assert not page.is_visible("#close-tensor")
        rect = page.evaluate("i => arenaplan.rectAt(i).toJSON()", large)
        page.touchscreen.tap(rect["x"] + rect["width"] / 2, rect["y"] + rect["height"] / 2)
        assert state(page)["selected"]["chunk"] == large
        panel, head = page.locator("#tensor").bounding_box(), page.locator("#details h3").bounding_box()
        assert page.inner_text("#details h3") == of.name[large]
        assert head["y"] >= 0 and head["y"] + head["height"] <= 844
        rect = page.evaluate("i => arenaplan.rectAt(i).toJSON()", large)
        assert rect["top"] >= 0 and rect["bottom"] <= panel["y"] + 1
        page.click("#close-tensor")
        assert state(page)["selected"] is None


def test_what_a_heap_takes_is_called_reserved(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace("dynamic", heap="pytorch")) as page:
        texts = page.inner_text("body") + "".join(ET.fromstring(page.evaluate("arenaplan.svg()")).itertext())
        held = format_bytes(plan.trace("dynamic", heap="pytorch").facts.footprint_bytes)
        assert "reserved by pytorch" in texts and held in texts
        assert "held" not in texts
