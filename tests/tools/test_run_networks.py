"""The networks that runs are timed on: the default equals onnxruntime, in an arena no larger than its planned block."""

from pathlib import Path

import numpy as np
import pytest

from engine.api import compile_graph
from engine.cli.oracle import TOLERANCE, compare_with_oracle, onnxruntime_runner
from ops.quantised.nhwc_tiled import has_vnni
from tests.helpers.onnx.quantised_models import DRIFTING
from tools import run_networks
from tools.onnxruntime_arena import onnxruntime_activations
from tools.run_networks import NETWORKS, loaded, network_file

QUICK = ("crnn", "detector")
COMPARED = [name for name in NETWORKS if name not in DRIFTING]
ONE_CODE = 0.01
"""A step of codes, as a part of the largest value, at most: onnxruntime's own passes move results of int8 by one."""
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in COMPARED]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_networks, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_the_default_of_a_timed_network_equals_onnxruntime_in_no_larger_arena(name: str, folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    if name.endswith("_int8") and not has_vnni():
        pytest.skip("sums of onnxruntime saturate on a processor without VNNI")
    path = network_file(name)
    assert path.parent == folder
    graph, feeds = loaded(path)
    executable = compile_graph(graph, threads=1)
    ours = executable.run(feeds)
    is_int8 = name.endswith("_int8")
    tolerance = ONE_CODE if is_int8 else TOLERANCE
    comparison = compare_with_oracle(ours, onnxruntime_runner(path, feeds, 1)(), "onnxruntime", tolerance)
    assert comparison.outputs_agree, comparison.text()
    assert all(np.isfinite(array).all() and array.std() > 0 for array in ours.values())
    # the block of onnxruntime has no inputs, and the floats that a network of int8 takes are most of its arena
    inputs = sum(feed.nbytes for feed in feeds.values()) if is_int8 else 0
    assert executable.arena_bytes <= onnxruntime_activations(path).planned + inputs


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_the_detector_selects_some_boxes_and_drops_others() -> None:
    graph, feeds = loaded(network_file("detector"))
    assert graph.is_symbolic  # sizes that data decide
    outputs = compile_graph(graph).run(feeds)
    assert 10 < len(outputs["boxes"]) == len(outputs["scores"]) == len(outputs["classes"]) < 2535
    assert outputs["scores"].min() > 0.8
