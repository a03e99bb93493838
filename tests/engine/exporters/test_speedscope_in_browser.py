"""Files for speedscope are opened in speedscope itself (from npm, in a browser), and say there what the plan says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import engine
from engine import Trace, zoo
from engine.exporters import speedscope
from tests.helpers.browser.browser_session import Session, node_module
from tests.helpers.traces.hostile_names import HOSTILE, synthetic_trace

SANDWICH = "3"
"""The key for the list of frames."""


@contextmanager
def _opened(browser: Session, trace: Trace, folder: Path) -> Iterator[Any]:
    """Opens speedscope, and yields it as soon as it has read the file of a trace."""
    viewer, file = node_module("speedscope/dist/release/index.html"), folder / "trace.speedscope.json"
    with file.open("wb") as out:
        speedscope.write(trace, out)
    with browser.visit(viewer, allowed=(viewer.parent.as_uri(),), is_ours=False) as page:
        page.set_input_files("input[type=file]", file)
        page.get_by_text("Left Heavy").wait_for()
        yield page


def _exported(page: Any, folder: Path) -> dict[str, Any]:
    """Returns what speedscope understood, as it saves it."""
    with page.expect_download() as waiting:
        page.get_by_text("Export").click()
    waiting.value.save_as(folder / "exported.json")
    document: dict[str, Any] = json.loads((folder / "exported.json").read_text("utf-8"))
    return document


def test_speedscope_shows_what_the_peak_is_made_of(browser: Session, tmp_path: Path) -> None:
    plan = engine.make_plan(zoo.squeezenet(), optimise=0)
    report = plan.report()
    with _opened(browser, plan.trace(), tmp_path) as page:
        assert page.title()
        understood = _exported(page, tmp_path)
        page.keyboard.press(SANDWICH)
        page.get_by_text("Symbol Name").wait_for()
        listed = page.inner_text("body")
    [profile] = understood["profiles"]
    assert profile["unit"] == "bytes"
    assert profile["endValue"] - profile["startValue"] == report.peak_bytes
    assert report.peak_operator in profile["name"]
    for tensor in report.peak_tensors:
        assert f"{tensor.name} [" in listed
        assert tensor.kind in listed


def test_speedscope_shows_operators_in_time(browser: Session, tmp_path: Path) -> None:
    plan = engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0)
    trace = plan.trace(threads=2)
    with _opened(browser, trace, tmp_path) as page:
        understood = _exported(page, tmp_path)
    peak, *threads = understood["profiles"]
    assert peak["unit"] == "bytes"
    assert [t["unit"] for t in threads] == ["nanoseconds"] * 2
    assert sum(len(t["events"]) for t in threads) == sum(e.kind in {"begin", "end"} for e in trace)


def test_names_that_hold_anything_run_nothing_in_speedscope(browser: Session, tmp_path: Path) -> None:
    trace = synthetic_trace(len(HOSTILE), name=lambda i: HOSTILE[i % len(HOSTILE)])
    with _opened(browser, trace, tmp_path) as page:
        page.keyboard.press(SANDWICH)
        page.get_by_text("Symbol Name").wait_for()
        assert "<script>alert(1)</script>" in page.inner_text("body")
        assert _exported(page, tmp_path)["profiles"][0]["endValue"] == trace.facts.peak_bytes
