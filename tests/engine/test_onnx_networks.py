"""The nine classification networks of the onnx package, with seeded weights: what they need; all modes agree."""

import tracemalloc
from pathlib import Path

import numpy as np
import onnx.backend.test
import pytest

import engine
from engine import Graph
from engine.cli.comparison import compare_graph
from engine.onnx.seeded import seed_weights
from tests.helpers.graphs.unplanned_run import random_feeds

LIGHT = Path(onnx.backend.test.__file__).parent / "data" / "light"
QUICK = ("squeezenet", "shufflenet")
SLOW = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512")
ONNXRUNTIME_BYTES = {
    "resnet50": 7.23e6,
    "vgg19": 25.69e6,
    "inception_v1": 10.17e6,
    "densenet121": 12.44e6,
    "shufflenet": 3.19e6,
    "squeezenet": 3.93e6,
}
"""What onnxruntime 1.31 plans for activations (and requests besides), batch 1, in units of 10 kB."""


def load(name: str) -> Graph:
    """A network by its name, with seeded weights."""
    return engine.load_onnx(seed_weights(onnx.load(LIGHT / f"light_{name}.onnx")))


def _check(name: str) -> None:
    graph = load(name)
    comparison = compare_graph(graph, random_feeds(graph), runs=1)
    report = comparison.report
    assert comparison.outputs_equal
    assert report.arena_bytes <= 1.02 * report.lower_bound
    assert report.arena_bytes <= report.dynamic_peak_bytes + report.alignment_loss
    assert report.arena_without_workspace <= ONNXRUNTIME_BYTES.get(name, report.naive_bytes) + 5e3


@pytest.mark.parametrize("name", QUICK)
def test_a_network_meets_its_bound_and_all_modes_agree(name: str) -> None:
    _check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_larger_network_meets_its_bound_and_all_modes_agree(name: str) -> None:
    _check(name)


def _check_allocates_nothing(name: str) -> None:
    graph = load(name)
    exe, feeds = engine.compile(graph), random_feeds(graph)
    out = exe.run(feeds)
    only = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    tracemalloc.start()
    exe.run(feeds, out=out)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    exe.run(feeds, out=out)
    after, peak = tracemalloc.get_traced_memory()
    arrays = tracemalloc.take_snapshot().filter_traces([only]).traces
    tracemalloc.stop()
    assert sum(t.size for t in arrays) == 0
    assert peak - min(before, after) < 16 * 1024


def test_a_network_allocates_nothing_while_it_runs() -> None:
    _check_allocates_nothing("shufflenet")


@pytest.mark.slow
def test_resnet50_allocates_nothing_while_it_runs() -> None:
    _check_allocates_nothing("resnet50")
