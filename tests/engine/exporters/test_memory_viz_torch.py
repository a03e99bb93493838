"""PyTorch's own functions on memory snapshots read what is written for them."""

import pickle
import re

import pytest

import engine
from engine import Trace, zoo
from engine.trace.trace import ARRIVALS
from tests.helpers.torch import REASON
from tests.helpers.traces.exported_files import exported
from tests.helpers.traces.sample_traces import EMPTY, hostile, staged

viz = pytest.importorskip("torch.cuda._memory_viz", reason=REASON)


@pytest.mark.parametrize(
    "trace",
    [
        engine.make_plan(zoo.squeezenet(), optimise=0).trace(),
        engine.make_plan(zoo.squeezenet(), optimise=0).trace("dynamic", heap="pytorch"),
        engine.make_plan(zoo.squeezenet(), optimise=0).trace("dynamic"),
        hostile(staged(2)),
        EMPTY,
    ],
    ids=["static", "heap", "dynamic", "hostile", "empty"],
)
def test_functions_of_pytorch_read_a_snapshot(trace: Trace) -> None:
    snapshot = pickle.loads(exported("pytorch", trace))
    count = sum(e.kind in ARRIVALS and e.bytes > 0 for e in trace)
    text = viz.trace(snapshot)
    assert len(re.findall(r"^\w+ = \w+\[\d+:", text, re.MULTILINE)) == count
    total = sum(segment["total_size"] for segment in snapshot["segments"])
    assert f"total_reserved: {viz.Bytes(total)}" in viz.segsum(snapshot)
    for plot in (viz.trace_plot, viz.segment_plot):
        assert "add_local_files" in plot(snapshot)
    assert viz.segments(snapshot, format_flamegraph=str) == "" or total
    assert viz.memory(snapshot, format_flamegraph=str) == "" or total
