"""Values that the page shows of runs of all kinds: bounds, peaks and ticks, in words and in its curves."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from engine import Graph, Trace, zoo
from engine.execution_plan import ExecutionPlan
from engine.exporters import html
from engine.text.units import format_bytes
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import RunInfo
from tests.helpers.browser.browser_session import Session
from tests.helpers.browser.viewer_pages import Page, opened, state
from tests.helpers.traces.sample_traces import staged

SVG = "{http://www.w3.org/2000/svg}"
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 22, 6
"""Pixels around the curves: engine/viewer/js/scale.js and curves.js."""
COLOURS = {"live": "#1f6fb5", "footprint": "#8a5a00"}


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return engine.make_plan(zoo.squeezenet(), optimise=0)


@pytest.fixture(scope="module")
def timed() -> Trace:
    """Returns a run whose peak is in a late stage."""
    return staged(3)


@pytest.fixture(scope="module")
def parallel() -> Trace:
    """Returns a run of two threads whose times are estimated, and so always the same; it peaks in the beginning."""
    return engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0).trace(threads=2)


def _peak_seconds(of: Rectangles) -> float:
    return float(of.time[of.live.argmax()])


def _saved(page: Page) -> ET.Element:
    return ET.fromstring(page.evaluate("arenaplan.svg()"))


def _heights(page: Page, what: str) -> list[float]:
    """Returns the y of all points of a curve, in bytes."""
    [path] = (p for p in _saved(page).iter(f"{SVG}path") if p.get("stroke") == COLOURS[what] and p.get("fill") == "none"
              and p.get("d", "").count("L") > 1)  # fmt: skip
    high = page.locator("#curves").bounding_box()["height"] - TOP - BOTTOM
    most = state(page)["home"]["b1"] * 1.02
    points = path.get("d", "").replace("M", "L").split("L")[1:]
    return [(TOP + high - float(point.split()[1])) / high * most for point in points]


def _time_at(page: Page, x: float) -> float:
    view, wide = state(page)["view"], page.locator("#curves").bounding_box()["width"] - LEFT - RIGHT
    return float(view["t0"] + (x - LEFT) / wide * (view["t1"] - view["t0"]))


def _x_of(page: Page, time: float) -> float:
    view, box = state(page)["view"], page.locator("#curves").bounding_box()
    share = (time - view["t0"]) / (view["t1"] - view["t0"])
    return float(box["x"] + LEFT + share * (box["width"] - LEFT - RIGHT))


def test_the_caption_and_the_shares_are_those_of_the_report(
    browser: Session, tmp_path: Path, plan: ExecutionPlan
) -> None:
    report = plan.report()
    with opened(browser, tmp_path, plan.trace()) as page:
        caption = page.inner_text("#peak-table caption")
        cells = page.locator("#peak-table tbody td:nth-child(2)").all()
        shares = [cell.get_attribute("title").rpartition(", ")[2] for cell in cells]
    size = format_bytes(report.peak_bytes)
    many = len(report.peak_tensors)
    assert caption == f"{many} tensors, {size}, in tick {report.peak_tick}, {report.peak_operator}"
    wanted = sorted((tensor.bytes for tensor in report.peak_tensors), reverse=True)
    assert shares == [f"{100 * b / report.peak_bytes:.1f} %" for b in wanted]


def test_the_curves_are_what_is_alive_and_what_is_held(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    trace = plan.trace("dynamic", heap="pytorch")
    of = rectangles_of(trace)
    assert of.footprint.max() > of.live.max()
    with opened(browser, tmp_path, trace, color_scheme="light") as page:
        near = state(page)["home"]["b1"] / 2_000
        assert max(_heights(page, "footprint")) == pytest.approx(of.footprint.max(), abs=near)
        assert max(_heights(page, "live")) == pytest.approx(of.live.max(), abs=near)


@pytest.mark.parametrize("which", ["late", "early"])
def test_the_peak_is_marked_where_it_is_in_seconds(
    which: str, browser: Session, tmp_path: Path, timed: Trace, parallel: Trace
) -> None:
    trace = timed if which == "late" else parallel
    of = rectangles_of(trace)
    with opened(browser, tmp_path, trace) as page:
        assert state(page)["axis"] == "seconds"
        [dot] = _saved(page).iter(f"{SVG}circle")
        home = state(page)["home"]["t1"]
        assert _time_at(page, float(dot.get("cx", ""))) == pytest.approx(_peak_seconds(of), abs=home / 500)
        page.keyboard.press("p")
        view = state(page)["view"]
        assert view["t1"] - view["t0"] < home / 2
        assert view["t0"] <= _peak_seconds(of) <= view["t1"]


def test_a_click_in_the_curves_lists_the_tick_of_that_second(browser: Session, tmp_path: Path, parallel: Trace) -> None:
    operators = rectangles_of(parallel).operators
    longest = max(operators[len(operators) // 2 :], key=lambda ran: ran.end - ran.begin)
    time = (longest.begin + longest.end) / 2
    last = max((ran for ran in operators if ran.begin <= time), key=lambda ran: ran.begin)
    with opened(browser, tmp_path, parallel) as page:
        box = page.locator("#curves").bounding_box()
        page.mouse.click(_x_of(page, time), box["y"] + box["height"] / 2)
        assert state(page)["tick"] == last.tick
        assert page.inner_text("#table-title") == f"Alive in tick {last.tick}"


def test_the_header_has_every_figure_under_its_name(browser: Session, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"weights_bytes": 3 << 20, "prepacked_bytes": 5 << 19, "resident_weights_bytes": 7 << 19}
    plan = engine.make_plan(_two_branches()).trace()
    facts = evolve(plan.facts, arena_bytes=5 << 20, lower_bound=4 << 20, status="feasible", **sizes)
    shown = f"tick {facts.peak_tick} {facts.peak_operator}"
    with opened(browser, tmp_path, Trace(facts, lambda: iter(plan))) as page:
        names, values = (page.locator(f"#figures {tag}").all_inner_texts() for tag in ("dt", "dd"))
        title = page.inner_text("#model")
    assert title == facts.model
    assert {name.lower(): " ".join(value.split()) for name, value in zip(names, values, strict=True)} == {
        "arena": "5.00 MiB 25.0 % above the bound",
        "alive at the peak": f"{format_bytes(facts.peak_bytes)} {shown}",
        "lower bound": "4.00 MiB feasible",
        "weights": "3.00 MiB 2.50 MiB prepacked",
        "resident weights": "3.50 MiB not in the arena",
        "tensors": f"{len(rectangles_of(plan))} {facts.ticks} ticks",
    }


@pytest.mark.parametrize(("budget", "said"), [(3 << 20, "3.00 MiB missed by 2.00 MiB"), (6 << 20, "6.00 MiB met")])
def test_the_header_says_whether_the_budget_is_met(browser: Session, tmp_path: Path, budget: int, said: str) -> None:
    plan = engine.make_plan(_two_branches()).trace()
    facts = evolve(plan.facts, arena_bytes=5 << 20, lower_bound=4 << 20, budget_bytes=budget)
    with opened(browser, tmp_path, Trace(facts, lambda: iter(plan))) as page:
        names, values = (page.locator(f"#figures {tag}").all_inner_texts() for tag in ("dt", "dd"))
    assert (
        dict(zip([name.lower() for name in names], [" ".join(v.split()) for v in values], strict=True))["budget"]
        == said
    )


def test_two_plans_are_compared_by_what_they_need(browser: Session, tmp_path: Path) -> None:
    plan = engine.make_plan(_two_branches()).trace()
    one, other = (
        Trace(evolve(plan.facts, arena_bytes=size, strategy=name), lambda: iter(plan))
        for size, name in ((4 << 20, "first"), (5 << 20, "second"))
    )
    with opened(browser, tmp_path, one, other) as page:
        values = [" ".join(value.split()) for value in page.locator("#figures dd").all_inner_texts()]
        names = [name.lower() for name in page.locator("#figures dt").all_inner_texts()]
    assert names == ["a", "b", "b needs more"]
    assert values == ["4.00 MiB first", "5.00 MiB second", "1.00 MiB 25.0 %"]


def test_the_table_of_a_parallel_run_lists_what_the_header_counts(browser: Session, tmp_path: Path) -> None:
    """A tensor of another thread is alive at the peak, but not in its tick: ticks run one after the other."""
    trace = engine.make_plan(_two_branches(), parallel="exact", optimise=0).trace(threads=2)
    of, peak, tick = rectangles_of(trace), trace.facts.peak_bytes, trace.facts.peak_tick
    in_tick = of.size[(of.begin <= tick) & (tick < of.end)].sum()
    assert in_tick < of.size[of.at_peak].sum() == peak
    with opened(browser, tmp_path, trace) as page:
        assert format_bytes(peak) in page.inner_text("#figures")
        assert page.inner_text("#table-totals").startswith(f"{len(of.at_peak)} tensors, {format_bytes(peak)}, in tick ")
        page.keyboard.press(",")
        [begin] = [ran.begin for ran in of.operators if ran.tick == tick - 1]
        alive = (of.born <= begin) & (begin < of.died)
        size = format_bytes(int(of.size[alive].sum()))
        assert page.inner_text("#table-totals").startswith(
            f"{alive.sum()} tensors, {size}, when tick {tick - 1} begins"
        )


def _two_branches() -> Graph:
    """Returns two independent branches, each of which is large in its middle and small at its end."""
    graph = Graph()
    x = graph.input("x", (1000, 1))
    for name in "ab":
        wide = ops.exp(x + graph.constant(np.ones((1, 100), np.float32)))
        graph.output(ops.reduce_sum(wide, axes=(1,)), name)
    return graph


def test_a_run_without_a_plan_claims_no_bound(browser: Session, tmp_path: Path) -> None:
    trace = staged(3, "dynamic")
    with opened(browser, tmp_path, trace) as page:
        figures, summary = page.inner_text("#figures"), page.inner_text("#summary")
        drawn = "".join(_saved(page).itertext())
    assert "bound" not in figures + summary + drawn
    assert "optimal" not in figures
    assert f"A plan would need {format_bytes(trace.facts.arena_bytes)}." in summary


def test_the_span_of_a_tensor_names_operators_that_there_are(browser: Session, tmp_path: Path, timed: Trace) -> None:
    of = rectangles_of(timed)
    ran = {o.tick: o.name for o in of.operators}
    open_ended = [i for i in range(len(of)) if of.begin[i] in ran and of.end[i] - 1 not in ran]
    assert open_ended
    with opened(browser, tmp_path, timed) as page:
        for chunk in open_ended:
            page.evaluate("i => arenaplan.select(i)", chunk)
            assert f"from {ran[int(of.begin[chunk])]} on" in page.inner_text("#details")


def test_two_models_are_both_named_and_counted(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    other = staged(1)
    with opened(browser, tmp_path, plan.trace(), other) as page:
        assert page.inner_text("#model") == f"squeezenet beside {other.facts.model}"
        tallies = [text.split(" | ") for text in page.locator("#legend .tally").all_inner_texts()]
    for k, trace in enumerate((plan.trace(), other)):
        assert sum(int(tally[k].replace(",", "")) for tally in tallies) == len(rectangles_of(trace))


def test_a_plan_that_is_too_small_to_be_seen_is_told(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    with opened(browser, tmp_path, plan.trace(), staged(1)) as page:
        assert "B is small beside A" in page.inner_text("#note")
    with opened(browser, tmp_path, plan.trace(), plan.trace("dynamic", heap="pytorch")) as page:
        assert not page.is_visible("#note")


def test_an_empty_plan_says_so_in_a_sentence(browser: Session, tmp_path: Path) -> None:
    with opened(browser, tmp_path, Trace(RunInfo("empty", "static"), lambda: iter(()))) as page:
        assert page.inner_text("#note") == "This plan has no tensors."
        assert not page.is_visible("#peak-table")
        saved = _saved(page)
        assert not list(saved.iter(f"{SVG}circle"))
        assert "peak" not in "".join(saved.itertext())


def test_keys_list_other_ticks_and_zoom_in_time_alone(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    peak = plan.report().peak_tick
    with opened(browser, tmp_path, plan.trace()) as page:
        page.keyboard.press(".")
        assert state(page)["tick"] == peak + 1
        for _ in range(peak + 3):
            page.keyboard.press(",")
        assert state(page)["tick"] == 0
        home = state(page)["home"]
        page.keyboard.press("Shift+Equal")
        view = state(page)["view"]
        assert (view["b0"], view["b1"]) == (home["b0"], home["b1"])
        assert view["t1"] - view["t0"] == pytest.approx((home["t1"] - home["t0"]) / 1.5)


def test_ticks_without_end_keep_labels_that_can_be_read(browser: Session, tmp_path: Path) -> None:
    far = 10**11
    trace = Trace(RunInfo("far", "static", ticks=far, arena_bytes=8), lambda: iter(()))
    with opened(browser, tmp_path, trace) as page:
        texts = [text.text or "" for text in _saved(page).iter(f"{SVG}text")]
    assert not any("…" in text for text in texts)


def test_an_old_browser_is_told_which_ones_can(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    file = tmp_path / "view.html"
    with file.open("wb") as out:
        html.write(plan.trace(), out)
    with browser.visit(file, before="delete globalThis.DecompressionStream") as page:
        page.wait_for_selector("body[data-ready=failed]")
        assert "Firefox 113" in page.inner_text("#failure")


@pytest.mark.parametrize("size", [(700, 900), (1024, 500)])
def test_pictures_keep_their_height_in_a_small_window(browser: Session, tmp_path: Path, size: tuple[int, int]) -> None:
    trace = engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0).trace(threads=4)
    with opened(browser, tmp_path, trace, viewport={"width": size[0], "height": size[1]}) as page:
        high = page.locator("#plot").bounding_box()["height"]
        assert high >= (0.5 * size[1] if size[0] <= 760 else 160)
        if size[0] > 760:
            assert page.evaluate("document.documentElement.scrollHeight") <= size[1]


def test_paper_shows_no_focus_and_the_table_marks_its_row(
    browser: Session, tmp_path: Path, plan: ExecutionPlan
) -> None:
    outline: Any = 'getComputedStyle(document.getElementById("plot")).outlineStyle'
    with opened(browser, tmp_path, plan.trace()) as page:
        page.keyboard.press("]")
        page.evaluate('document.getElementById("plot").focus()')
        assert page.evaluate(outline) == "solid"
        page.emulate_media(media="print")
        assert page.evaluate(outline) == "none"
        page.emulate_media(media="screen")
        page.locator("#peak-table tbody tr").first.click()
        assert page.locator("#peak-table tr[aria-current=true]").count() == 1
        assert page.locator("[aria-selected]").count() == 0
        assert "MiB as small as can be" in " ".join(page.inner_text("#figures").split())
