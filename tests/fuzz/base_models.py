"""Small ONNX models to begin with: every operator in the cases of the onnx package, and whole networks of each kind."""

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.external_data_helper import convert_model_to_external_data

from tests.helpers.onnx.node_cases import node_cases, out_of_scope
from tests.helpers.onnx.open_models import branches, decoder, detector, encoder, loops
from tests.helpers.onnx.saved_models import save_perceptron, save_positive, save_reshape
from tests.helpers.onnx.small_models import model, node, value

_MOST_BYTES = 20_000
"""The largest case of the onnx package that is taken: mutations of the rest of a large one change only weights."""


def _saved(save: Callable[[Path], Path]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return onnx.load(save(Path(folder) / "model.onnx"))


def with_function() -> Any:
    """Returns a model whose function calls another one, with an attribute."""
    domain, opsets = "own", [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    leaky = node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    inner = helper.make_function(domain, "Inner", ["a"], ["b"], [leaky], opsets, ["slope"])
    calls = [node("Inner", ["a"], ["c"], domain=domain, slope=0.25), node("Add", ["c", "a"], ["b"])]
    outer = helper.make_function(domain, "Outer", ["a"], ["b"], calls, opsets)
    nodes = [node("Outer", ["x"], ["h"], domain=domain), node("Outer", ["h"], domain=domain)]
    proto = model(nodes, [value("x", (2, 3))], functions=[outer, inner])
    proto.opset_import.append(helper.make_opsetid(domain, 1))
    return proto


def with_external_data() -> Any:
    """Returns a model whose weights lie in a file `weights` of 400 bytes."""
    weights = {"w": np.ones((5, 10), np.float32), "v": np.ones((10, 5), np.float32)}
    proto = model(
        [node("MatMul", ["x", "w"], ["h"]), node("MatMul", ["h", "v"])], [value("x", (2, 5))], ("y",), weights
    )
    convert_model_to_external_data(proto, location="weights", size_threshold=0)
    for i, tensor in enumerate(proto.graph.initializer):
        tensor.ClearField("raw_data")
        tensor.external_data.add(key="offset", value=str(200 * i))
        tensor.external_data.add(key="length", value="200")
        tensor.data_location = onnx.TensorProto.EXTERNAL
    return proto


NETWORKS: tuple[Callable[[], Any], ...] = (
    partial(_saved, save_perceptron),
    partial(_saved, partial(save_perceptron, batch="n")),
    partial(_saved, save_positive),
    partial(_saved, save_reshape),
    with_function,
    with_external_data,
    branches,
    partial(loops, "Loop"),
    partial(loops, "Scan"),
    partial(encoder, 1),
    partial(decoder, 1),
    partial(detector, 1),
)


@cache
def networks() -> tuple[bytes, ...]:
    """Returns the networks as bytes."""
    return tuple(make().SerializeToString() for make in NETWORKS)


@cache
def cases() -> tuple[bytes, ...]:
    """Returns the cases of the onnx package that are in scope and small."""
    models = (case.model.SerializeToString() for case in node_cases() if not out_of_scope(case))
    return tuple(content for content in models if len(content) <= _MOST_BYTES)
