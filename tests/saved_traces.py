"""Traces of random graphs, and files that they are saved to."""

from pathlib import Path

from hypothesis import strategies as st

import engine
from engine import Graph, Trace
from engine.executable import PlanOptions
from tests.exports import exported
from tests.graphs import graphs

HEAPS = ("", "refcount", "first_fit", "pytorch", "buddy")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Of all kinds: in one arena, on heaps or on none, in ticks or with estimated times."""
    return traced(draw, draw(graphs()))


def traced(draw: st.DrawFn, graph: Graph) -> Trace:
    """A plan of any kind, told in any way."""
    options: PlanOptions = {"padding": draw(st.sampled_from([0, 5])), "parallel": draw(st.sampled_from(["", "exact"]))}
    plan = engine.make_plan(graph, **options)
    if draw(st.booleans()):
        return plan.trace("dynamic", heap=draw(st.sampled_from(HEAPS)))
    return plan.trace(threads=draw(st.sampled_from([0, 1, 2] if options["parallel"] else [0, 1])))


def save_trace(trace: Trace, path: Path) -> Path:
    """In the format that the suffix names."""
    path.write_bytes(exported(path.suffix[1:], trace))
    return path
