"""Traces of every kind, some with names that hold any characters, for tests of exporters."""

from collections.abc import Iterator

from attrs import evolve
from hypothesis import strategies as st

import engine
from engine import Event, Trace
from engine.trace.trace import ARRIVALS, RunInfo
from tests.helpers.graphs.staged_graphs import WIDTH, rows, staged_graph
from tests.helpers.onnx.small_models import model, node, value
from tests.helpers.traces.hostile_names import HOSTILE
from tests.helpers.traces.saved_traces import traces

EMPTY = Trace(RunInfo("", "static"), lambda: iter(()))
"""The trace of a run without events."""


@st.composite
def any_traces(draw: st.DrawFn) -> Trace:
    """Draws traces of all kinds, some in stages, some cut; every other one has hostile names."""
    modes = st.sampled_from(["static", "dynamic"])
    trace = staged(draw(st.integers(1, 2)), draw(modes)) if draw(_SOME) else draw(traces())
    if draw(_SOME):
        trace = cut(trace, draw(st.integers(0, 40)))
    return hostile(trace) if draw(st.booleans()) else trace


_SOME = st.integers(0, 5).map(lambda n: n == 5)


def staged(cuts: int, mode: str = "static") -> Trace:
    """Returns the trace of a timed run in stages."""
    exe = engine.compile(staged_graph([0] * cuts, [True]), mode=mode, optimise=0)
    _, timings = exe.timed({"x": rows(9, WIDTH)})
    return exe.trace(mode, timings=timings)


def layered() -> Trace:
    """Returns the trace of a plan of operators of which one is in the layer `layer1.0`, and the others in none."""
    nodes = [
        node("Relu", ["x"], ["h"], name="layer1.0/relu"),
        node("Exp", ["h"], ["e"], name="exp"),
        node("Mul", ["e", "h"], ["y"], name="last"),
    ]
    return engine.make_plan(engine.load_onnx(model(nodes, [value("x", (2, 4))], ["y"])), optimise=0).trace()


def cut(trace: Trace, most: int) -> Trace:
    """Returns the first events alone, so that chunks are alive and an operator runs at the end."""
    return Trace(trace.facts, lambda: (event for _, event in zip(range(most), trace, strict=False)))


def hostile(trace: Trace) -> Trace:
    """Returns the same trace with hostile names."""

    def events() -> Iterator[Event]:
        for event in trace:
            number = event.chunk + event.tick
            names = [HOSTILE[(number + i) % len(HOSTILE)] for i in range(2)]
            yield evolve(event, tensor=names[0], operator=names[1])

    return Trace(evolve(trace.facts, model=HOSTILE[0], peak_operator=HOSTILE[4]), events)


def peak(trace: Trace) -> int:
    """Returns the maximum of the live bytes of all events."""
    return max((event.live_bytes for event in trace), default=0)


def arrivals(trace: Trace) -> list[Event]:
    """Returns the events that begin chunks."""
    return [event for event in trace if event.kind in ARRIVALS]
