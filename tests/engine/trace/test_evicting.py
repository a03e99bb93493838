"""Traces of runs that evict: a replay of their events, and what the command and other tools show of them."""

import json
from pathlib import Path

import pytest

import engine
from engine import read_trace
from engine.cli.main import main
from engine.executor.evicting import EvictingExecutor
from engine.text.errors import OptionError
from engine.trace.trace import ARRIVALS, EVICT, FREE, OVERWRITE, Event
from tests.helpers.cli.cli_checks import data, error
from tests.helpers.graphs.training_graphs import chain
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.traces.saved_traces import save_trace
from tools import trace_alloc

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained() -> engine.Executable:
    graph = chain(12)
    plain = engine.make_plan(graph, optimise=0).report().dynamic_peak_bytes
    return engine.compile(graph, mode="dynamic", budget=plain * 6 // 10, evict="dtr", optimise=0, threads=1)


def executor_of(exe: engine.Executable) -> EvictingExecutor:
    assert isinstance(exe.executor, EvictingExecutor)
    return exe.executor


def replay(events: list[Event], most: int) -> None:
    """Checks that chunks lie apart below `most` bytes while they are there, and that live bytes are theirs."""
    places, evicted = dict[int, tuple[int, int]](), list[int]()
    for event in events:
        if event.kind == OVERWRITE:
            assert places.pop(event.overwrites) == (event.offset, event.offset + event.bytes)
        if event.kind in ARRIVALS:
            low, high = event.offset, event.offset + event.bytes
            assert 0 <= low <= high <= most and event.chunk not in places
            assert all(high <= other or end <= low for other, end in places.values())
            places[event.chunk] = low, high
        if event.kind == EVICT:
            evicted.append(event.chunk)
            assert places[event.chunk] == (event.offset, event.offset + event.bytes)
        elif event.kind == FREE:
            del places[event.chunk]
            assert not evicted or evicted.pop() == event.chunk
        assert event.live_bytes == sum(end - low for low, end in places.values())
    assert not places


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_a_saved_trace_comes_back_and_is_that_of_no_plan(
    suffix: str, trained: engine.Executable, tmp_path: Path, capsys: Capture
) -> None:
    trace, path = trained.trace("dynamic"), tmp_path / f"trace.{suffix}"
    assert tuple(read_trace(save_trace(trace, path))) == tuple(trace)
    assert main(["trace", str(path)]) == 0
    assert "no plan needs less" not in capsys.readouterr().out


def test_a_trace_tells_each_eviction_and_each_operator_that_runs_again(trained: engine.Executable) -> None:
    eviction, trace = executor_of(trained).eviction, trained.trace("dynamic")
    events = list(trace)
    replay(events, eviction.peak_reserved)
    assert sum(event.kind == EVICT for event in events) == eviction.evictions > 0
    again = [event.operator for event in events if event.kind == "end" and event.operator.endswith("/again")]
    assert len(again) == eviction.reruns > 0
    facts = trace.facts
    assert facts.footprint_bytes == eviction.peak_reserved
    assert 0.9 * eviction.peak_in_use < facts.peak_bytes <= eviction.peak_in_use  # which counts rounded sizes
    assert (facts.mode, facts.heap, facts.budget_bytes) == ("dynamic", "best_fit", executor_of(trained).budget)
    static = trained.trace().facts
    assert static.mode == "static" and static.arena_bytes == facts.arena_bytes


def test_a_measured_trace_has_a_time_for_each_run_of_an_operator(trained: engine.Executable) -> None:
    _, timings = trained.timed(random_feeds(trained.graph))
    events = list(trained.trace("dynamic", timings=timings))
    replay(events, executor_of(trained).eviction.peak_reserved)
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)
    assert [event.seconds for event in events if event.kind == "end"] == [timing.end for timing in timings]
    with pytest.raises(OptionError, match=r"of another run: they have .* calls, this run has"):
        trained.trace("dynamic", timings=timings[1:])


def test_what_a_run_that_evicts_has_not_is_told(trained: engine.Executable) -> None:
    with pytest.raises(OptionError, match="heap='pytorch': a run that evicts lies in one block, where best_fit places"):
        trained.trace("dynamic", heap="pytorch")
    with pytest.raises(OptionError, match="threads=1: times of a run that evicts are measured, not estimated"):
        trained.trace("dynamic", threads=1)


@pytest.mark.slow
def test_the_command_shows_evictions_in_other_tools(tmp_path: Path, capsys: Capture) -> None:
    line = ["zoo:random_wired?image=32,nodes=5,batch=4,optimiser=sgd", "--mode", "dynamic", "--optimise", "0"]
    (evicted,) = data(["run", *line, "--evict", "lru", "--budget", "1GiB"], capsys)["evicted"]
    file = tmp_path / "run.json"
    line += ["--evict", "lru", "--budget", str(evicted["smallest_budget"])]
    assert trace_alloc.main([*line, "--format", "chrome", "-o", str(file)]) == 0
    shown = json.loads(file.read_text())["traceEvents"]
    evictions = [event for event in shown if event.get("cat") == EVICT]
    assert evictions and all(event["ph"] == "i" and event["name"].startswith("evict ") for event in evictions)
    assert any(event["ph"] == "X" and event["name"].endswith("/again") for event in shown)
    assert trace_alloc.main([*line, "--format", "csv"]) == 0
    assert sum(row.split(",")[1] == EVICT for row in capsys.readouterr().out.splitlines()) == len(evictions)
    assert trace_alloc.main([*line, "--format", "perfetto", "-o", str(tmp_path / "run.pftrace")]) == 0
    assert b"evict " in (tmp_path / "run.pftrace").read_bytes()
    refused = error(["trace", line[0], "--evict", "lru", "--budget", "1MiB"], 2, capsys)
    assert "evict='lru' is for mode='dynamic'" in refused
