"""Weights that are parts of files, and files that do not stay as they were."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import engine
from engine.text.errors import ModelError
from ops.tensor.spec import Array

_FEEDS = {"x": np.ones((2, 256), np.float32)}


def _weights(scale: float) -> Array:
    return np.random.default_rng(0).standard_normal((256, 256)).astype(np.float32) * np.float32(scale)


def _saved(path: Path, scale: float, beside: str) -> None:
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["z"]), onnx.helper.make_node("Mul", ["z", "f"], ["y"])]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (2, 256)) for n in "xy"]
    weights = {"w": _weights(scale), "f": np.linspace(1, 2, 256, dtype=np.float32)}
    initializers = [onnx.numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = onnx.helper.make_graph(nodes, "product", ends[:1], ends[1:], initializers)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(proto, path, save_as_external_data=bool(beside), location=beside or None, size_threshold=0)


@pytest.fixture(params=["", "w.bin"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    _saved(tmp_path / "m.onnx", 1, request.param)
    return tmp_path / "m.onnx"


def _data(model: Path) -> Path:
    """Returns the file that has the weights."""
    return next((p for p in model.parent.iterdir() if p.name == "w.bin"), model)


def _overwrite(path: Path) -> None:
    """Writes in place, and later than before whatever the clock's steps are."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("change", [_overwrite, lambda path: os.truncate(path, 5000)])
def test_a_file_that_was_written_since_is_refused(model: Path, level: int, change: Callable[[Path], None]) -> None:
    graph = engine.optimise(engine.load_onnx(model), level)
    change(_data(model))
    with pytest.raises(ModelError, match=rf"{_data(model).name} was written after the graph was loaded from it"):
        engine.compile(graph)


@pytest.mark.parametrize("level", [0, 2])
def test_a_file_may_be_replaced_or_removed(model: Path, level: int) -> None:
    wanted = engine.compile(engine.load_onnx(model, mapped=False)).run(_FEEDS)["y"]
    graph, data = engine.optimise(engine.load_onnx(model), level), _data(model)
    other = data.with_name("other")
    other.write_bytes(bytes(9))
    other.replace(data)
    y = engine.compile(graph).run(_FEEDS)["y"]
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    data.unlink()
    assert np.array_equal(engine.compile(graph).run(_FEEDS)["y"], y)


@pytest.mark.parametrize("level", [0, 2])
def test_weights_that_are_not_mapped_stay_whatever_becomes_of_the_file(model: Path, level: int) -> None:
    wanted = engine.compile(engine.optimise(engine.load_onnx(model), level)).run(_FEEDS)["y"].copy()
    graph = engine.optimise(engine.load_onnx(model, mapped=False), level)
    _data(model).write_bytes(b"")
    assert np.array_equal(engine.compile(graph).run(_FEEDS)["y"], wanted)
