"""Traces of random graphs, and files that they are saved to."""

from pathlib import Path

from hypothesis import strategies as st

import engine
from engine import Graph, Trace
from engine.planning.options import PlanOptions
from tests.helpers.graphs.random_graphs import build
from tests.helpers.graphs.training_graphs import random_training
from tests.helpers.traces.exported_files import exported

HEAPS = ("", "refcount", "first_fit", "pytorch", "buddy")


_SOME = st.integers(0, 3).map(lambda n: n == 3)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Draws traces of all kinds: in an arena, on a heap or none, in ticks or with estimated times; some of training."""

    def choose(n: int) -> int:
        return draw(st.integers(0, n - 1))

    return traced(draw, random_training(choose, 5) if draw(_SOME) else build(choose))


def traced(draw: st.DrawFn, graph: Graph) -> Trace:
    """Draws a plan of a graph with any options, and returns its trace of any mode."""
    options: PlanOptions = {
        "nodes": 100,
        "optimise": 0,
        "padding": draw(st.sampled_from([0, 5])),
        "parallel": draw(st.sampled_from(["", "exact"])),
    }
    plan = engine.make_plan(graph, **options)
    if draw(st.booleans()):
        return plan.trace("dynamic", heap=draw(st.sampled_from(HEAPS)))
    return plan.trace(threads=draw(st.sampled_from([0, 1, 2] if options["parallel"] else [0, 1])))


def save_trace(trace: Trace, path: Path) -> Path:
    """Writes a trace in the format of the suffix, and returns the path."""
    path.write_bytes(exported(path.suffix[1:], trace))
    return path
