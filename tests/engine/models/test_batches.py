"""Models at a batch: the first dimension of their inputs, whatever its name is."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from engine.graph.graph import Graph
from engine.models.batches import at_batch
from engine.models.named import NamedModel
from engine.text.errors import ModelError
from tests.helpers.onnx import small_models
from tests.helpers.onnx.saved_models import save_perceptron


def model_at(model: str | Path, batch: int, **said: Any) -> Graph:
    return at_batch(NamedModel(Path(model), **said), batch)


def test_an_onnx_file_takes_the_batch_where_it_leaves_one_open(tmp_path: Path) -> None:
    model = save_perceptron(tmp_path / "p.onnx", batch="n")
    assert [model_at(model, n).inputs["x"].shape for n in (1, 7)] == [(1, 8), (7, 8)]


def test_a_batch_that_a_file_fixes_is_the_only_one_it_takes(tmp_path: Path) -> None:
    model = save_perceptron(tmp_path / "p.onnx", batch=4)
    assert model_at(model, 4).inputs["x"].shape == (4, 8)
    with pytest.raises(ModelError, match=r"leaves no batch open, and 5 .*\[4, 8\]"):
        model_at(model, 5)


def test_all_open_inputs_take_the_batch_and_other_open_dimensions_come_from_shapes_or_lengths(tmp_path: Path) -> None:
    inputs = [small_models.value("a", ["n", "s"]), small_models.value("b", ["n", "s"]), small_models.value("c", [1, 3])]
    nodes = [small_models.node("Add", ["a", "b"], ["t"]), small_models.node("Add", ["t", "w"], ["u"])]
    nodes.append(small_models.node("Add", ["u", "c"]))
    proto = small_models.model(
        nodes, [*inputs, small_models.value("w", [1, 3])], initializers={"w": np.ones((1, 3), "f")}
    )
    path = tmp_path / "two.onnx"
    onnx.save(proto, path)
    for graph in (model_at(path, 5, shapes=(("a", (1, 3)),)), model_at(path, 5, lengths=(("s", 3),))):
        assert {name: var.shape for name, var in graph.inputs.items()} == {"a": (5, 3), "b": (5, 3), "c": (1, 3)}
        assert graph.outputs["y"].shape == (5, 3)
    with pytest.raises(ModelError, match=r"more than the batch open: n \(axis 0 of 'a', axis 0 of 'b'\), s"):
        model_at(path, 5)
    with pytest.raises(ModelError, match="no dimension 'q' open"):
        model_at(path, 5, lengths=(("s", 3), ("q", 3)))


def test_a_file_without_inputs_has_no_batch(tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    onnx.save(small_models.model([small_models.node("Neg", ["w"])], [], initializers={"w": np.ones(2, "f")}), path)
    with pytest.raises(ModelError, match="no input"):
        model_at(path, 1)


def test_a_network_of_the_zoo_takes_the_batch_in_place_of_that_of_a_shape() -> None:
    graph = model_at("zoo:squeezenet", 2, shapes=(("x", (1, 3, 32, 32)),))
    assert graph.inputs["x"].shape == (2, 3, 32, 32)
    with pytest.raises(ModelError, match="no input 'z'"):
        model_at("zoo:squeezenet", 1, shapes=(("z", (1, 2)),))
    with pytest.raises(ModelError, match="no dimension 'q' open"):
        model_at("zoo:squeezenet", 1, lengths=(("q", 3),))
