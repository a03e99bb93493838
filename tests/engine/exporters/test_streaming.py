"""Traces of any length are written and read in little memory: nothing holds more than a block of their events."""

import io
import tracemalloc
from collections import deque
from pathlib import Path

import pytest

from engine import read_trace
from engine.exporters import FORMATS
from tests.helpers.traces.exported_files import exported
from tools.bench_trace import READ, columns, measure_afresh

EVENTS = 16_000
MOST = 4_500_000
"""Bytes; all events as objects have some more."""
WRITTEN = ("table", "csv", "json", "chrome", "perfetto", "pytorch", "massif", "speedscope")
SLOW = (*WRITTEN, f"{READ}csv", f"{READ}json")


class Sink(io.RawIOBase):
    """Forgets what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        assert isinstance(content, bytes)
        return len(content)


def test_a_list_of_all_trace_events_takes_more_memory() -> None:
    trace = columns(EVENTS)
    tracemalloc.start()
    try:
        kept = list(trace)
        assert tracemalloc.get_traced_memory()[1] > MOST and len(kept) > EVENTS
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_writing_a_trace_keeps_no_events(name: str) -> None:
    trace = columns(EVENTS)
    exported(name, columns(8))  # libraries are loaded now
    tracemalloc.start()
    try:
        FORMATS[name].write(trace, Sink())  # type: ignore[arg-type]
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_reading_a_trace_keeps_no_events(suffix: str, tmp_path: Path) -> None:
    (path := tmp_path / f"t.{suffix}").write_bytes(exported(suffix, columns(EVENTS)))
    tracemalloc.start()
    try:
        deque(read_trace(path), maxlen=0)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_trace_of_a_million_events_takes_less_than_fifty_megabytes(name: str) -> None:
    """Beyond the columns that they are made of."""
    assert measure_afresh(name, 1_000_000).growth_bytes < 50e6
