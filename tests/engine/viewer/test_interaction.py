"""The page that shows plans, driven in a browser: what it says is what the plan says, and no name does anything."""

import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

import engine
from engine import Trace, zoo
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import RunInfo
from ops.elementwise.smooth import SIGMOID
from tests.helpers.browser.viewer_pages import Open, Page, state
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

SVG = "{http://www.w3.org/2000/svg}"


def _until(page: Page, expression: str) -> None:
    """Waits; the page's own policy lets no text become a program, so Playwright cannot wait inside it."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(25)
    raise AssertionError(f"never: {expression}")


def _centre(page: Page, chunk: int, pane: int = 0) -> tuple[float, float]:
    box = page.evaluate("([chunk, pane]) => arenaplan.rectAt(chunk, pane).toJSON()", [chunk, pane])
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def _span(view: dict[str, float]) -> tuple[float, float]:
    return view["t1"] - view["t0"], view["b1"] - view["b0"]


def test_the_figures_are_those_of_the_report(shown: Open, plan: ExecutionPlan) -> None:
    report = plan.report()
    with shown(plan.trace()) as page:
        [shown_plan] = state(page)["plans"]
        facts = shown_plan["facts"]
        assert (facts["peak_bytes"], facts["peak_tick"]) == (report.peak_bytes, report.peak_tick)
        assert (facts["arena_bytes"], facts["lower_bound"]) == (report.arena_bytes, report.lower_bound)
        assert shown_plan["chunks"] == len(rectangles_of(plan.trace()))
        assert page.inner_text("#model") == plan.trace().facts.model


def test_the_table_has_what_is_alive_at_the_peak(shown: Open, plan: ExecutionPlan) -> None:
    report = plan.report()
    with shown(plan.trace()) as page:
        rows = page.locator("#peak-table tbody tr")
        sizes = [row.locator("td").nth(1).get_attribute("title") for row in rows.all()]
        names = [row.locator("td").nth(0).get_attribute("title") for row in rows.all()]
    bytes_of = [int(size.split(" bytes")[0].replace(",", "")) for size in sizes]
    assert sum(bytes_of) == report.peak_bytes
    assert bytes_of == sorted(bytes_of, reverse=True)
    assert Counter(zip(names, bytes_of, strict=True)) == Counter((t.name, t.bytes) for t in report.peak_tensors)


def test_a_screen_reader_gets_the_table_and_the_totals(shown: Open, plan: ExecutionPlan) -> None:
    report = plan.report()
    with shown(plan.trace()) as page:
        tree = page.locator("#peak-table").aria_snapshot()
        summary = page.inner_text("#summary")
        pictures = page.locator("main").aria_snapshot()
    units = {"B": 1, "KiB": 2**10, "MiB": 2**20}
    cells = re.findall(r'cell "([\d.]+) (B|KiB|MiB)"', tree)
    read = [float(number) * units[unit] for number, unit in cells]
    assert read == pytest.approx([tensor.bytes for tensor in report.peak_tensors], rel=0.005)
    for tensor in report.peak_tensors:
        assert f'button "{tensor.name}"' in tree
    assert tree.count("- row ") == len(report.peak_tensors) + 1
    assert f"in tick {report.peak_tick}, {report.peak_operator}" in summary
    assert 'img "Tensors as rectangles' in pictures


def test_the_mouse_shows_what_it_rests_on_and_a_click_keeps_it(
    shown: Open, plan: ExecutionPlan, of: Rectangles
) -> None:
    large = sorted(range(len(of)), key=lambda i: -int(of.size[i]) * int(of.end[i] - of.begin[i]))[:6]
    with shown(plan.trace()) as page:
        for chunk in large:
            page.mouse.move(*_centre(page, chunk))
            assert state(page)["hovered"]["chunk"] == chunk
            tip = page.inner_text("#tip")
            assert of.name[chunk] in tip
            assert of.shape[chunk] in tip
            assert f"at {of.offset[chunk]:,}" in tip
        page.mouse.down()
        page.mouse.up()
        assert not page.is_visible("#tip")
        details = page.inner_text("#details")
        assert of.name[chunk] in details
        assert f"{of.offset[chunk]:,} up to {of.offset[chunk] + of.size[chunk]:,}" in details
        assert f"{of.begin[chunk]} to {of.end[chunk] - 1}" in details or f"tick {of.begin[chunk]}" in details
        page.mouse.move(5, 5)
        assert not page.is_visible("#tip")
        assert state(page)["selected"]["chunk"] == chunk
        page.keyboard.press("Escape")
        assert state(page)["selected"] is None


def test_each_rectangle_stands_where_its_bytes_are(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    with shown(plan.trace()) as page:
        rects = page.evaluate("n => Array.from({length: n}, (_, i) => arenaplan.rectAt(i).toJSON())", len(of))
    high = (rects[0]["bottom"] - rects[0]["top"]) / of.size[0]
    floor = rects[0]["bottom"] + high * of.offset[0]
    for i, rect in enumerate(rects):
        assert rect["bottom"] == pytest.approx(floor - high * of.offset[i], abs=0.1)
        assert rect["height"] == pytest.approx(high * of.size[i], abs=0.1)


def test_the_viewer_zooms_by_wheel_keys_and_box(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace()) as page:
        home = state(page)["home"]
        x, y = _centre(page, 3)
        page.mouse.move(x, y)
        page.mouse.wheel(0, -300)
        _until(page, "arenaplan.state().view.t1 < arenaplan.state().home.t1")
        assert _centre(page, 3) == pytest.approx((x, y), abs=30)
        page.keyboard.press("0")
        assert state(page)["view"] == home
        page.keyboard.press("+")
        assert _span(state(page)["view"]) == pytest.approx([s / 1.5 for s in _span(home)])
        page.keyboard.press("ArrowRight")
        page.keyboard.press("-")
        page.keyboard.press("0")
        box = page.locator("#plot").bounding_box()
        ends = [(box["x"] + box["width"] * f, box["y"] + box["height"] * f) for f in (0.4, 0.6)]
        page.keyboard.down("Shift")
        page.mouse.move(*ends[0])
        page.mouse.down()
        page.mouse.move(*ends[1])
        page.mouse.up()
        page.keyboard.up("Shift")
        across, up = _span(state(page)["view"])
        assert across / _span(home)[0] == pytest.approx(0.2, abs=0.03)
        assert up / _span(home)[1] == pytest.approx(0.2, abs=0.03)
        page.dblclick("#plot")
        assert state(page)["view"] == home


def test_p_goes_to_the_peak_and_a_click_in_the_curves_lists_its_tick(shown: Open, plan: ExecutionPlan) -> None:
    report = plan.report()
    with shown(plan.trace()) as page:
        page.keyboard.press("p")
        view = state(page)["view"]
        assert view["t0"] <= report.peak_tick <= view["t1"]
        box = page.locator("#curves").bounding_box()
        page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.6)
        tick = state(page)["tick"]
        assert tick != report.peak_tick
        assert page.inner_text("#table-title") == f"Alive in tick {tick:,}"
        page.click("#at-peak")
        assert state(page)["tick"] == report.peak_tick


def test_colours_change_and_the_legend_shows_one_alone(shown: Open, plan: ExecutionPlan, of: Rectangles) -> None:
    with shown(plan.trace()) as page:
        modes = page.locator("#colour option").evaluate_all("options => options.map(o => o.value)")
        assert {"schema", "size"} <= set(modes)
        pictures = set()
        for mode in modes:
            page.select_option("#colour", mode)
            assert state(page)["colour"] == mode
            tallies = page.locator("#legend .tally").all_inner_texts()
            assert sum(int(tally.replace(",", "")) for tally in tallies) == len(of)
            pictures.add(page.locator("#plot").screenshot())
        assert len(pictures) == len(modes)
        page.locator("#legend button").first.click()
        assert state(page)["isolated"] >= 0
        assert page.locator("#legend button").first.get_attribute("aria-pressed") == "true"
        page.keyboard.press("Escape")
        assert state(page)["isolated"] == -1


def test_two_plans_stand_side_by_side_and_zoom_together(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace(), plan.trace("dynamic", heap="pytorch")) as page:
        assert len(state(page)["plans"]) == 2
        before = [_centre(page, 0, pane) for pane in (0, 1)]
        assert before[1][0] > before[0][0]
        page.mouse.move(*before[0])
        assert state(page)["hovered"]["pane"] == 0
        page.mouse.wheel(0, -200)
        _until(page, "arenaplan.state().view.t1 < arenaplan.state().home.t1")
        sizes = page.evaluate("[0, 1].map(pane => arenaplan.rectAt(0, pane).width)")
        assert sizes[0] / sizes[1] == pytest.approx(1, rel=0.01)
        page.keyboard.press("0")
        page.mouse.move(*before[1])
        assert state(page)["hovered"]["pane"] == 1
        page.mouse.down()
        page.mouse.up()
        assert "in the other" in page.inner_text("#details")


def test_themes_follow_the_system_until_somebody_chooses(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace(), color_scheme="dark") as page:
        assert state(page)["theme"] == "dark"
        dark = page.screenshot()
        page.click("#theme")
        assert state(page)["theme"] == "light"
        assert page.screenshot() != dark
        page.keyboard.press("t")
        assert state(page)["theme"] == "dark"


def test_the_viewer_saves_what_is_seen_as_svg_and_png(shown: Open, plan: ExecutionPlan, tmp_path: Path) -> None:
    with shown(plan.trace()) as page:
        for suffix in ("svg", "png"):
            with page.expect_download() as waiting:
                page.click(f"#save-{suffix}")
            assert waiting.value.suggested_filename == f"{plan.trace().facts.model}.{suffix}"
            waiting.value.save_as(tmp_path / suffix)
    root = ET.fromstring((tmp_path / "svg").read_text("utf-8"))
    assert root.tag == f"{SVG}svg"
    assert len(list(root.iter(f"{SVG}rect"))) > 20
    png = (tmp_path / "png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20]) > 1000


def test_the_viewer_prints_on_white(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace(), color_scheme="dark") as page:
        paper = page.pdf(format="A4", landscape=True)
        assert paper.startswith(b"%PDF")
        assert paper.count(b"/Type /Page\n") <= 2
        page.emulate_media(media="print")
        assert not page.is_visible("#save-svg")
        assert not page.is_visible("#details")
        page.emulate_media(media="screen")
        assert state(page)["theme"] == "dark"


def test_names_that_hold_anything_run_nothing_in_the_viewer(shown: Open) -> None:
    trace = synthetic_trace(len(HOSTILE), name=lambda i: HOSTILE[i % len(HOSTILE)])
    with shown(trace, trace) as page:
        title = page.title()
        scripts = page.locator("script").count()
        for chunk in range(len(HOSTILE)):
            page.evaluate("i => arenaplan.select(i)", chunk)
            page.mouse.move(*_centre(page, chunk))
            assert page.locator("#details h3").inner_text() != ""
        page.select_option("#colour", "schema")
        for text in ("<script>", "</script>", "\\$", "日本", "."):
            page.fill("#search", text)
        saved = ET.fromstring(page.evaluate("arenaplan.svg()"))
        assert not list(saved.iter(f"{SVG}script"))
        assert page.title() == title
        assert page.locator("script").count() == scripts
        assert page.locator("img").count() == 0


def test_a_run_without_addresses_says_so(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace("dynamic")) as page:
        assert "no addresses" in page.inner_text("#note")
        peak = plan.report().dynamic_peak_bytes
        assert state(page)["plans"][0]["facts"]["peak_bytes"] == peak
        page.evaluate("arenaplan.select(0)")
        assert "none: this run has no" in page.inner_text("#details")


def _of_layers(names: tuple[str, ...]) -> ExecutionPlan:
    """Returns a plan of a chain of operators with these names."""
    graph = Graph("layers")
    x = graph.input("x", (4, 8))
    for name in names:
        (x,) = graph.add(SIGMOID, [x], name=name)
    graph.output(x, "y")
    return engine.make_plan(graph, optimise=0)


def test_tensors_are_told_apart_by_layer(shown: Open) -> None:
    plan = _of_layers(("layer1.0/act", "layer1.0/act2", "layer1.1/act", "layer1.1/act2", "head/act", "head/act2"))
    with shown(plan.trace()) as page:
        page.select_option("#colour", "layer")
        labels = set(page.locator("#legend .name").all_inner_texts())
        assert labels == {"layer1.0", "layer1.1", "head", "no layer"}
        last = rectangles_of(plan.trace()).operator.index("layer1.1/act2")
        page.evaluate(f"arenaplan.select({last})")
        assert "layer\nlayer1.1\n" in page.inner_text("#details")
    with shown(_of_layers(("a", "b", "c", "d")).trace()) as page:
        assert not page.locator("#colour option[value=layer]").count()
        page.evaluate("arenaplan.select(0)")
        assert "layer" not in page.inner_text("#details dl")


def test_a_run_with_times_has_an_axis_of_seconds_and_threads(shown: Open) -> None:
    plan = engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0)
    with shown(plan.trace(threads=2)) as page:
        assert state(page)["axis"] == "seconds"
        modes = page.locator("#colour option").evaluate_all("options => options.map(o => o.value)")
        assert "thread" in modes
        page.select_option("#colour", "thread")
        page.select_option("#axis", "ticks")
        assert state(page)["axis"] == "ticks"
        assert state(page)["home"]["t1"] == plan.trace().facts.ticks


def test_the_viewer_of_an_empty_plan_shows_nothing(shown: Open) -> None:
    graph = Graph("nothing")
    graph.output(graph.input("x", (0,)), "y")
    for trace in (engine.make_plan(graph, optimise=0).trace(), Trace(RunInfo("empty", "static"), lambda: iter(()))):
        with shown(trace) as page:
            for key in ("p", "+", "0", "]", "n", "Escape"):
                page.keyboard.press(key)
            page.mouse.move(300, 300)
            assert page.locator("#peak-table tbody tr").count() <= 1


@pytest.mark.parametrize("size", [(1440, 900), (1024, 700), (640, 480)])
def test_the_viewer_cuts_nothing_off_in_a_small_window(shown: Open, plan: ExecutionPlan, size: tuple[int, int]) -> None:
    with shown(plan.trace(), viewport={"width": size[0], "height": size[1]}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        for name in ("#plot", "#curves", "#search", "#theme"):
            box = page.locator(name).bounding_box()
            assert box["width"] > 20
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= size[0]


def test_the_help_of_the_viewer_opens_and_closes(shown: Open, plan: ExecutionPlan) -> None:
    with shown(plan.trace()) as page:
        page.keyboard.press("?")
        assert page.is_visible("#help")
        page.keyboard.press("Escape")
        assert not page.is_visible("#help")


@pytest.mark.slow
def test_the_viewer_shows_100_000_tensors(shown: Open) -> None:
    with shown(synthetic_trace(100_000)) as page:
        assert state(page)["plans"][0]["chunks"] == 100_000
        page.mouse.move(700, 400)
        page.mouse.wheel(0, -2_000)
        page.fill("#search", "tensor_777.?$")
        assert state(page)["matches"] == 11
        page.press("#search", "Enter")
        assert "tensor_777" in page.inner_text("#details")
