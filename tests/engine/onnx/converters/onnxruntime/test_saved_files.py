"""Models that onnxruntime has optimised and saved: read, run, and compared with onnxruntime's own run."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime import GraphOptimizationLevel as Level
from onnxruntime.quantization import QuantFormat

import engine
from engine import Graph
from engine.text.errors import UnsupportedError
from engine.zoo import densenet121, encoder, minilm, mobilenet_v2, resnet18, squeezenet
from engine.zoo.encoder import EncoderSize
from ops.quantised.nhwc_tiled import has_vnni
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx.onnx_writer import to_onnx
from tests.helpers.onnx.quantised_models import dynamically_quantised_model, quantised_model
from tools.onnxruntime_arena import onnxruntime_activations

SAVED = {"basic": Level.ORT_ENABLE_BASIC, "extended": Level.ORT_ENABLE_EXTENDED, "all": Level.ORT_ENABLE_ALL}
NETWORKS: dict[str, Callable[[], Graph]] = {
    "mobilenet_v2": lambda: mobilenet_v2(1, 32),
    "encoder": lambda: encoder(EncoderSize(layers=1, width=32, heads=2, sequence=5)),
    "resnet18": lambda: resnet18(1, 64),
    "densenet121": lambda: densenet121(1, 64),
    "minilm": lambda: minilm(2, 12),
}
QUICK = ("mobilenet_v2", "encoder")


def saved(source: Graph | Path, level: str, folder: Path) -> tuple[Path, onnxruntime.InferenceSession]:
    """Returns the file that onnxruntime saves at a level, and its session."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = SAVED[level]
    path = folder / f"{level}.onnx"
    options.optimized_model_filepath = str(path)
    model = str(source) if isinstance(source, Path) else to_onnx(source).SerializeToString()
    return path, onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@pytest.mark.slow
@pytest.mark.parametrize("level", ["basic", "extended"])
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS])
def test_a_file_that_onnxruntime_saved_gives_the_same_outputs(name: str, level: str, tmp_path: Path) -> None:
    graph = NETWORKS[name]()
    path, session = saved(graph, level, tmp_path)
    feeds = random_feeds(graph)
    outputs = engine.compile(engine.load_onnx(path)).run(feeds).values()
    for got, want in zip(outputs, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * float(np.abs(want).max()))


def test_the_extended_level_writes_operators_of_its_own(tmp_path: Path) -> None:
    for name, wanted in (("mobilenet_v2", "FusedConv"), ("encoder", "SkipLayerNormalization")):
        path, _ = saved(NETWORKS[name](), "extended", tmp_path)
        assert Counter(node.op_type for node in onnx.load(path).graph.node)[wanted]


def test_a_file_for_one_processor_is_refused(tmp_path: Path) -> None:
    path, _ = saved(NETWORKS["mobilenet_v2"](), "all", tmp_path)
    with pytest.raises(UnsupportedError, match=r"nchwc\.Conv: this file was optimised for one processor; save it at "):
        engine.load_onnx(path)


QUANTISED: dict[str, Callable[[Graph, Path], Path]] = {
    "dynamic": dynamically_quantised_model,
    "qoperator": lambda graph, folder: quantised_model(graph, folder, form=QuantFormat.QOperator, narrow=True),
    "qdq": lambda graph, folder: quantised_model(graph, folder, narrow=True),
}
"""Quantised models that onnxruntime computes exactly on any processor."""
SMALL = {name: NETWORKS[name] for name in QUICK} | {"squeezenet": lambda: squeezenet(1, 64)}
NEEDS_VNNI = pytest.mark.skipif(not has_vnni(), reason="other kernels need a workspace")


@pytest.mark.parametrize("kind", QUANTISED)
@pytest.mark.parametrize("name", ["encoder", pytest.param("squeezenet", marks=pytest.mark.slow)])
def test_a_quantised_file_gives_the_same_outputs_as_it_was_written_and_as_it_was_optimised(
    name: str, kind: str, tmp_path: Path
) -> None:
    graph = SMALL[name]()
    written = QUANTISED[kind](graph, tmp_path)
    optimised, session = saved(written, "extended", tmp_path)
    feeds = random_feeds(graph, 5)
    (wanted,) = session.run(None, feeds)
    assert float(np.std(wanted)) > 0
    for path in (written, optimised):
        (got,) = engine.compile(engine.load_onnx(path)).run(feeds).values()
        difference = np.abs(got - wanted) / np.abs(wanted).max()
        assert float(difference.max()) < 0.05  # a rounding may move a number by a step of 8 bits
        assert float(difference.mean()) < 0.01  # of files as written and optimised, in onnxruntime alone: 0.0055


def check_arena(path: Path) -> None:
    """Checks that a file needs no larger arena than in onnxruntime, whose arena has no inputs."""
    graph = engine.load_onnx(path)
    needed = onnxruntime_activations(path)
    arena = engine.make_plan(graph, caller_buffers=tuple(graph.inputs)).arena_bytes
    assert 0 < arena <= needed.planned + needed.besides


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_saved_files_need_no_larger_arena_than_in_onnxruntime(name: str, tmp_path: Path) -> None:
    for level in ("basic", "extended"):
        check_arena(saved(SMALL[name](), level, tmp_path)[0])


@pytest.mark.slow
@NEEDS_VNNI
@pytest.mark.parametrize("kind", QUANTISED)
@pytest.mark.parametrize("name", SMALL)
def test_quantised_files_need_no_larger_arena_than_in_onnxruntime(name: str, kind: str, tmp_path: Path) -> None:
    check_arena(QUANTISED[kind](SMALL[name](), tmp_path))
