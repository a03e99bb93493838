"""The page under two fingers, and the operators below its picture, in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import engine
from engine import Trace, zoo
from engine.execution_plan import ExecutionPlan
from engine.exporters import html
from engine.trace.rectangles import rectangles_of
from tests.helpers.browser.browser_session import Session

Page = Any


@pytest.fixture(scope="module")
def plan() -> ExecutionPlan:
    return engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0)


@contextmanager
def _page(browser: Session, tmp_path: Path, trace: Trace) -> Iterator[Page]:
    file = tmp_path / "view.html"
    with file.open("wb") as out:
        html.write(trace, out)
    with browser.visit(file, has_touch=True) as page:
        page.wait_for_selector("body[data-ready=true]")
        yield page


def _box(page: Page, of: str) -> dict[str, float]:
    box: dict[str, float] = page.locator(of).bounding_box()
    return box


def test_a_click_on_an_operator_lists_its_tick(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    trace = plan.trace()
    ran = rectangles_of(trace).operators[5]
    with _page(browser, tmp_path, trace) as page:
        home = page.evaluate("arenaplan.state().home")
        box = _box(page, "#lanes")
        left, width = 76, box["width"] - 76 - 12  # engine/viewer/js/scale.js: LEFT, RIGHT
        x = box["x"] + left + (ran.tick + 0.5 - home["t0"]) / (home["t1"] - home["t0"]) * width
        page.mouse.move(x, box["y"] + box["height"] / 2)
        assert ran.name in page.inner_text("#tip")
        page.mouse.click(x, box["y"] + box["height"] / 2)
        assert page.evaluate("arenaplan.state().tick") == ran.tick


def test_threads_have_lanes_of_their_own(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    with _page(browser, tmp_path, plan.trace()) as page:
        one = _box(page, "#lanes")["height"]
    trace = plan.trace(threads=2)
    assert {ran.thread for ran in rectangles_of(trace).operators} == {0, 1}
    with _page(browser, tmp_path, trace) as page:
        two = _box(page, "#lanes")["height"]
        page.select_option("#axis", "ticks")
        page.evaluate("arenaplan.redraw()")
        assert _box(page, "#lanes")["height"] == one
    assert two > one


def test_two_fingers_zoom_around_the_point_between_them(browser: Session, tmp_path: Path, plan: ExecutionPlan) -> None:
    with _page(browser, tmp_path, plan.trace()) as page:
        box, hand = _box(page, "#plot"), page.context.new_cdp_session(page)

        def touch(kind: str, *points: tuple[float, float]) -> None:
            at = [{"x": box["x"] + x, "y": box["y"] + y, "id": i} for i, (x, y) in enumerate(points)]
            hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

        before = page.evaluate("arenaplan.state().view")
        touch("touchStart", (400, 200), (500, 300))
        touch("touchMove", (350, 150), (550, 350))
        touch("touchEnd")
        after = page.evaluate("arenaplan.state().view")
        for low, high in (("t0", "t1"), ("b0", "b1")):
            assert (after[high] - after[low]) / (before[high] - before[low]) == pytest.approx(0.5, abs=0.05)
            assert before[low] < after[low] < after[high] < before[high]
