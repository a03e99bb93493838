"""Executables in files: they give the same bits, nothing is packed twice, and weights stay where they are."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import engine
import ops
from engine import zoo
from engine.batch_runs.map import planned_contents
from engine.executor import pack_folder
from engine.graph.graph import Graph
from engine.graph.mapped import mapping_of
from engine.spool import Contents, open_spool, spooled, spooled_parts
from engine.training.training import SGD, train_step
from tests.helpers.graphs.unplanned_run import random_feeds
from tests.helpers.onnx import small_models
from tests.helpers.onnx.saved_models import save_perceptron

NETWORKS: dict[str, Callable[[], Graph]] = {
    "convolutions": lambda: zoo.squeezenet(image=64),
    "recurrent": lambda: zoo.lstm_classifier(sequence=5, vocabulary=20),
    "attention": lambda: zoo.minilm(sequence=8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_an_executable_from_files_gives_the_same_bits(name: str, backend: str, tmp_path: Path) -> None:
    graph = NETWORKS[name]()
    exe = engine.compile(graph, backend=backend, threads=1)
    feeds = random_feeds(graph, 0)
    wanted = exe.run(feeds)
    with spooled(planned_contents(graph, {"backend": backend, "threads": 1}), tmp_path) as spool:
        for _ in range(2):
            again = open_spool(spool)
            assert again.arena_bytes == exe.arena_bytes and again.report().origin == "from the file"
            outputs = again.run(feeds)
            assert all(np.array_equal(outputs[key], wanted[key]) for key in wanted)
        assert again.prepacked_bytes == exe.prepacked_bytes
    assert not list(tmp_path.iterdir())


def test_what_one_process_packed_no_other_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = zoo.squeezenet(image=64)
    with spooled(planned_contents(graph, {"threads": 1}), tmp_path) as spool:
        open_spool(spool)
        files = {path: path.stat().st_size for path in (spool / "packs").iterdir()}
        assert sum(files.values()) > 4_000_000

        def fail(*_: object) -> None:
            raise AssertionError("packed again")

        monkeypatch.setattr(pack_folder, "pack_call", fail)
        exe = open_spool(spool)
        packed = exe.executor._packed.arrays.values()  # type: ignore[union-attr]
        assert all(mapping_of(array) is not None for arrays in packed for array in arrays)


def test_the_file_of_the_process_that_was_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = zoo.squeezenet(image=64)
    with spooled(planned_contents(graph, {"threads": 1}), tmp_path) as spool:
        open_spool(spool)
        before = {path: path.stat().st_ino for path in (spool / "packs").iterdir()}
        monkeypatch.setattr(Path, "exists", lambda _: False)
        exe = open_spool(spool)
        monkeypatch.undo()
        assert {path: path.stat().st_ino for path in (spool / "packs").iterdir()} == before
        feeds = random_feeds(graph, 0)
        assert np.array_equal(exe.run(feeds)["y"], engine.compile(graph, threads=1).run(feeds)["y"])


def test_weights_in_a_mapped_file_are_not_copied(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    nodes = [small_models.node("MatMul", ["x", "w"], ["y"])]
    proto = small_models.model(nodes, [small_models.value("x", (2, 512))], initializers={"w": weights})
    onnx.save(proto, tmp_path / "m.onnx")
    graph = engine.load_onnx(tmp_path / "m.onnx")
    with spooled(planned_contents(graph, {"threads": 1}), tmp_path) as spool:
        assert (spool.parent / "weights").stat().st_size < weights.nbytes / 2
        feeds = random_feeds(graph, 0)
        assert np.array_equal(open_spool(spool).run(feeds)["y"], engine.compile(graph, threads=1).run(feeds)["y"])


def test_an_array_that_several_have_is_written_once(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
    weights.flags.writeable = False  # graphs keep the array itself
    graphs = [Graph("first"), Graph("second")]
    for graph in graphs:
        graph.output(graph.input("x", (2, 256)) @ graph.constant(weights, "w"), "y")
    parts = [planned_contents(graph, {"threads": 1}) for graph in graphs]
    with spooled_parts(parts, tmp_path) as spools:
        assert (spools[0].parent / "weights").stat().st_size < 1.5 * weights.nbytes
        feeds = random_feeds(graphs[0], 0)
        first, second = (open_spool(spool).run(feeds)["y"] for spool in spools)
        assert np.array_equal(first, second)
        assert np.array_equal(first, engine.compile(graphs[0], threads=1).run(feeds)["y"])
    assert not list(tmp_path.iterdir())


def test_parameters_have_their_present_values(tmp_path: Path) -> None:
    graph = Graph("linear")
    w = graph.parameter(np.ones((64, 64), np.float32), "w")
    graph.output(ops.reduce_sum(ops.relu(graph.input("x", (4, 64)) @ w)), "loss")
    exe = engine.compile(train_step(graph, graph.outputs["loss"], SGD(0.1)).graph, threads=1)
    feeds = random_feeds(exe.graph, 0)
    exe.run(feeds)
    _, (stepped, options, plan, parameters) = exe.__reduce__()
    with spooled(Contents(stepped, options, plan, parameters), tmp_path) as spool:
        again = open_spool(spool)
    outputs, wanted = again.run(feeds), exe.run(feeds)
    assert all(np.array_equal(outputs[key], wanted[key]) for key in wanted)
    assert all(np.array_equal(again.parameters[key], value) for key, value in exe.parameters.items())


def test_a_graph_with_open_lengths_is_planned_where_it_is_fed(tmp_path: Path) -> None:
    graph = engine.load_onnx(save_perceptron(tmp_path / "p.onnx", "n"))
    with spooled(planned_contents(graph, {"threads": 1}), tmp_path) as spool:
        exe = open_spool(spool)
        for rows in (2, 3):
            x = np.ones((rows, 8), np.float32)
            assert np.array_equal(exe.run({"x": x})["y"], engine.compile(graph).run({"x": x})["y"])
