"""Traces are opened by Perfetto's own page, whose trace processor answers questions about them."""

from collections.abc import Iterator
from typing import Any

import pytest

import engine
from engine import Trace, zoo
from engine.trace.trace import BEGIN
from tests.helpers.browser.browser_session import Session
from tests.helpers.browser.perfetto_page import ask, opened
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import arrivals, hostile, peak, staged

_PEAK = """
select max(value) from counter join counter_track on counter.track_id = counter_track.id
where counter_track.name = 'live bytes'
"""
_TENSORS = """
select count(*), sum(extract_arg(arg_set_id, '{0}.bytes')), min(dur) >= 0 from slice
where extract_arg(arg_set_id, '{0}.dtype') is not null and name not like 'view %'
"""
_OPERATORS = """
select count(*), min(dur) >= 0 from slice
where extract_arg(arg_set_id, '{0}.schema') is not null and extract_arg(arg_set_id, '{0}.dtype') is null
"""
_ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
"""What the trace processor could not make sense of."""


def _cases() -> Iterator[Any]:
    """Yields the cases; a page takes seconds to open, so that only one case is quick."""
    network = engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0)
    heap = network.trace("dynamic", heap="pytorch")
    traces = {"parallel": network.trace(threads=2), "hostile": hostile(staged(2)), "heap": heap}
    for name in ("perfetto", "chrome"):
        for kind, trace in traces.items():
            marks = () if (name, kind) == ("perfetto", "parallel") else pytest.mark.slow
            yield pytest.param(trace, name, marks=marks, id=f"{name}-{kind}")


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "name"), list(_cases()))
def test_the_trace_processor_finds_the_peak_all_tensors_and_operators(
    browser: Session, trace: Trace, name: str
) -> None:
    with opened(browser, exported(name, trace)) as page:
        assert ask(page, _ERRORS) == []
        assert ask(page, _PEAK) == [[peak(trace)]]
        where = {"perfetto": "debug", "chrome": "args"}[name]
        born = arrivals(trace)
        assert ask(page, _TENSORS.format(where)) == [[len(born), sum(e.bytes for e in born), 1]]
        assert ask(page, _OPERATORS.format(where)) == [[sum(e.kind == BEGIN for e in trace), 1]]
