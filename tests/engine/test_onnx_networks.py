"""The nine classification networks of the onnx package, with seeded weights: what they need; all modes agree."""

import pytest

import engine
from engine.cli.comparison import compare_graph
from tests.helpers.allocations import check_allocates_nothing
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.light_models import LIGHT_MODELS, light_graph, slow

ONNXRUNTIME_BYTES = {
    "resnet50": 7.23e6,
    "vgg19": 25.69e6,
    "inception_v1": 10.17e6,
    "densenet121": 12.44e6,
    "shufflenet": 3.19e6,
    "squeezenet": 3.93e6,
}
"""What onnxruntime 1.31 plans for activations (and requests besides), batch 1, in units of 10 kB."""


@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_a_network_meets_its_bound_and_all_modes_agree(name: str) -> None:
    graph = light_graph(name)
    comparison = compare_graph(graph, random_feeds(graph), runs=1)
    report = comparison.report
    assert comparison.outputs_equal
    assert report.arena_bytes <= 1.02 * report.lower_bound
    assert report.arena_bytes <= report.dynamic_peak_bytes + report.alignment_loss
    assert report.arena_without_workspace <= ONNXRUNTIME_BYTES.get(name, report.naive_bytes) + 5e3


@pytest.mark.parametrize("name", ["shufflenet", *slow("resnet50")])
def test_a_network_allocates_nothing_while_it_runs(name: str) -> None:
    graph = light_graph(name)
    exe, feeds = engine.compile(graph), random_feeds(graph)
    out = exe.run(feeds)
    check_allocates_nothing(lambda: exe.run(feeds, out=out))
