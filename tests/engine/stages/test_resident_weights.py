"""Weights that stay in memory while a network runs with many lengths."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import engine
from engine import Graph
from engine.graph.deferred import Deferred

ROWS, WIDTH = 20_000, 16
TABLE_BYTES = ROWS * WIDTH * 4


def embedding(folder: Path) -> Graph:
    """Returns ids [n] -> Gather from a table -> y [n, 16]; the file has the table at an odd address."""
    table = np.random.default_rng(0).standard_normal((ROWS, WIDTH)).astype(np.float32)
    for length in range(1, 5):
        name = "g" * length
        graph = helper.make_graph(
            [helper.make_node("Gather", ["table", "ids"], ["y"])],
            name,
            [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(table, "table")],
        )
        path = folder / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        loaded = engine.load_onnx(path)
        if any(isinstance(entry, Deferred) for entry in loaded.constants.entries.values()):
            return loaded
    raise AssertionError("no file has the table at an odd address")


@pytest.fixture
def traced() -> Iterator[None]:
    """Counts the bytes of arrays."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_twenty_lengths_keep_one_copy_of_an_unaligned_weight(tmp_path: Path, mode: str) -> None:
    exe = engine.compile(embedding(tmp_path), mode=mode)
    exe.run({"ids": np.arange(1)})
    before, _ = tracemalloc.get_traced_memory()
    for length in range(2, 22):
        exe.run({"ids": np.arange(length)})
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < TABLE_BYTES
