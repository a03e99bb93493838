"""The benchmark of the page measures a page that works; synthetic traces are sound."""

import pytest

from tests.helpers.browser.browser_session import Session
from tools.bench_viewer import measure, show
from tools.synthetic_trace import synthetic_trace


@pytest.mark.slow
def test_bench_viewer_measures_a_page(browser: Session) -> None:
    row = measure(browser.browser, 300, runs=1)
    assert row.tensors == 300
    assert min(row.megabytes, row.load, row.draw, row.zoom) > 0
    assert show([row]).splitlines()[0].split() == ["tensors", "megabytes", "make", "load", "draw", "zoom"]


def test_tensors_of_a_synthetic_trace_never_overlap_and_its_facts_are_those_of_its_events() -> None:
    trace = synthetic_trace(500)
    alive, most = dict[int, tuple[int, int]](), 0
    for event in trace:
        if event.kind == "alloc":
            box = (event.offset, event.offset + event.bytes)
            assert all(box[1] <= low or high <= box[0] for low, high in alive.values())
            alive[event.chunk] = box
        elif event.kind == "free":
            del alive[event.chunk]
        assert event.live_bytes == sum(high - low for low, high in alive.values())
        most = max(most, event.live_bytes)
    assert alive == {}
    assert most == trace.facts.peak_bytes
