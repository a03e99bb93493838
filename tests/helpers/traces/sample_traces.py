"""Traces of every kind, and with names that hold anything: what files for other tools have to bear."""

from collections.abc import Iterator

from attrs import evolve
from hypothesis import strategies as st

import engine
from engine import Event, Trace
from engine.trace.trace import ARRIVALS, RunInfo
from tests.helpers.graphs.staged_graphs import WIDTH, rows, staged_graph
from tests.helpers.traces.hostile_names import HOSTILE
from tests.helpers.traces.saved_traces import traces

EMPTY = Trace(RunInfo("", "static"), lambda: iter(()))
"""Of a run in which nothing happened."""


@st.composite
def any_traces(draw: st.DrawFn) -> Trace:
    """Of all kinds, stages and cut ends among them; every other one with names that hold anything."""
    modes = st.sampled_from(["static", "dynamic"])
    trace = staged(draw(st.integers(1, 2)), draw(modes)) if draw(_SOME) else draw(traces())
    if draw(_SOME):
        trace = cut(trace, draw(st.integers(0, 40)))
    return hostile(trace) if draw(st.booleans()) else trace


_SOME = st.integers(0, 5).map(lambda n: n == 5)


def staged(cuts: int, mode: str = "static") -> Trace:
    """Of a run in some stages, as it was timed."""
    exe = engine.compile(staged_graph([0] * cuts, [True]), mode=mode)
    _, timings = exe.timed({"x": rows(9, WIDTH)})
    return exe.trace(mode, timings=timings)


def cut(trace: Trace, most: int) -> Trace:
    """Its first events alone, so that something is alive and runs in the end."""
    return Trace(trace.facts, lambda: (event for _, event in zip(range(most), trace, strict=False)))


def hostile(trace: Trace) -> Trace:
    """The same with other names."""

    def tell() -> Iterator[Event]:
        for event in trace:
            number = event.chunk + event.tick
            names = [HOSTILE[(number + i) % len(HOSTILE)] for i in range(2)]
            yield evolve(event, tensor=names[0], operator=names[1])

    return Trace(evolve(trace.facts, model=HOSTILE[0], peak_operator=HOSTILE[4]), tell)


def peak(trace: Trace) -> int:
    """Most bytes that are alive at once, of what is told."""
    return max((event.live_bytes for event in trace), default=0)


def arrivals(trace: Trace) -> list[Event]:
    """What comes to be."""
    return [event for event in trace if event.kind in ARRIVALS]
