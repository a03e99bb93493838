"""Files for speedscope, by the rules of its schema: stacks of the peak, and operators of each thread in turn.

What speedscope itself says of them is tested in test_speedscope_in_browser.py.
"""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

import engine
from engine import Event, Trace, zoo
from engine.exporters.events import alive_at_peak
from engine.text.layer_names import layers_around
from engine.trace.trace import BEGIN
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import EMPTY, any_traces, layered, staged


def _read(trace: Trace) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(exported("speedscope", trace))
    return document


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_stacks_of_the_peak_weigh_what_is_alive(trace: Trace) -> None:
    file = _read(trace)
    profile, frames = file["profiles"][0], file["shared"]["frames"]
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "bytes", 0)
    alive = [e for e in alive_at_peak(trace) if e.bytes]
    assert profile["weights"] == [e.bytes for e in alive]
    assert profile["endValue"] == sum(profile["weights"])
    for event, stack in zip(alive, profile["samples"], strict=True):
        assert frames[stack[0]]["name"] == event.role
        layers = ["layer"] * len(layers_around(event.operator))
        around = [*layers, "kind of operator", "operator"] if event.schema else []
        assert [frames[i]["file"] for i in stack] == ["role", *around, "tensor"]
        assert frames[stack[-1]]["name"].endswith(f" [{event.shape}] {event.dtype}")
    assert all(frame["name"] for frame in frames)
    assert len({(f["file"], f["name"]) for f in frames}) == len(frames)


@settings(max_examples=20, deadline=None)
@given(any_traces())
def test_operators_of_a_thread_open_and_close_in_turn(trace: Trace) -> None:
    file = _read(trace)
    _, *threads = file["profiles"]
    numbers = sorted({e.thread for e in trace if e.kind == BEGIN}) if trace.facts.is_timed else []
    assert [p["name"] for p in threads] == [f"operators, thread {number}" for number in numbers]
    for number, profile in zip(numbers, threads, strict=True):
        events = profile["events"]
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        assert [e["type"] for e in events] == ["O", "C"] * (len(events) // 2)
        assert [e["frame"] for e in events[::2]] == [e["frame"] for e in events[1::2]]
        times = [profile["startValue"], *(e["at"] for e in events), profile["endValue"]]
        assert times == sorted(times)
        assert len(events) == 2 * sum(e.kind == BEGIN and e.thread == number for e in trace)


def test_stacks_of_the_peak_have_the_layers_of_operators() -> None:
    file = _read(layered())
    frames = file["shared"]["frames"]
    stacks = [[(frames[i]["file"], frames[i]["name"]) for i in stack] for stack in file["profiles"][0]["samples"]]
    [stack] = [stack for stack in stacks if ("operator", "layer1.0/relu") in stack]
    assert stack[1:3] == [("layer", "layer1"), ("layer", "layer1.0")]


def test_speedscope_of_an_empty_trace_has_one_empty_profile() -> None:
    file = _read(EMPTY)
    assert [p["name"] for p in file["profiles"]] == ["nothing is ever alive"]
    assert file["shared"] == {"frames": []}


def test_threads_that_run_nothing_are_left_out_and_the_trace_is_read_a_few_times() -> None:
    trace, times = engine.make_plan(zoo.squeezenet(), parallel="exact", optimise=0).trace(threads=1000), list[int]()

    def tell() -> Iterator[Event]:
        times.append(1)
        return iter(trace)

    ran = {e.thread for e in trace if e.kind == BEGIN}
    _, *threads = _read(Trace(trace.facts, tell))["profiles"]
    assert len(threads) == len(ran) < 5 and len(times) <= 2


def test_the_peak_of_a_plan_is_its_report() -> None:
    plan = engine.make_plan(zoo.squeezenet(), optimise=0)
    [profile] = _read(plan.trace())["profiles"]
    assert profile["endValue"] == plan.report().peak_bytes
    assert len(_read(staged(1))["profiles"]) == 2
