"""Operators of the user's own in models."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from onnx import helper

import engine
from engine.text.errors import ModelError, OptionError, UnsupportedError
from ops.schema.schema import OpSchema
from tests.helpers.onnx.own_operators import foreign_model, scale_model, scale_schema
from tests.helpers.onnx.small_models import model, node, value

X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)


@pytest.mark.parametrize("mode", [{}, {"mode": "dynamic"}, {"debug": "poison"}])
def test_a_registered_operator_runs_in_all_modes(mode: dict[str, Any]) -> None:
    proto = scale_model("acme.modes")
    engine.register_operator("acme.modes", "Scale", scale_schema())
    y = engine.compile(engine.load_onnx(proto), **mode).run({"x": X})["y"]
    assert np.array_equal(y, np.maximum(X * np.float32(3), 0))


def test_an_operator_is_unknown_until_it_is_registered() -> None:
    proto = scale_model("acme.late")
    with pytest.raises(UnsupportedError, match=r"acme\.late\.Scale"):
        engine.load_onnx(proto)
    engine.register_operator("acme.late", "Scale", scale_schema())
    assert len(engine.load_onnx(proto).operators) == 2


def test_a_registered_operator_takes_open_lengths_and_folds_constants() -> None:
    engine.register_operator("acme.open", "Scale", scale_schema())
    scaled = [node("Scale", [name], [f"{name}s"], domain="acme.open", factor=2.0) for name in ("x", "w")]
    proto = foreign_model([*scaled, node("Add", ["xs", "ws"])], [value("x", ("n", 8))], initializers={"w": X[:1]})
    graph = engine.load_onnx(proto)
    assert [op.schema.name for op in graph.operators] == ["scale", "add"]
    exe = engine.compile(graph)
    for rows in (1, 4):
        assert np.array_equal(exe.run({"x": X[:rows]})["y"], X[:rows] * 2 + X[:1] * 2)


def test_a_registered_operator_comes_before_ours_and_before_a_function_of_the_model() -> None:
    engine.register_operator("acme.first", "Scale", scale_schema())
    body = helper.make_function(
        "acme.first", "Scale", ["a"], ["b"], [node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    proto = model([node("Scale", ["x"], domain="acme.first", factor=2.0)], [value("x", (4, 8))], functions=[body])
    proto.opset_import.append(helper.make_opsetid("acme.first", 1))
    assert np.array_equal(engine.compile(engine.load_onnx(proto)).run({"x": X})["y"], X * 2)


def test_the_last_registration_counts() -> None:
    for name in ("first", "second"):
        schema = scale_schema()
        engine.register_operator(
            "acme.twice", "Scale", OpSchema(name, schema.infer, schema.kernels, attributes=schema.attributes)
        )
    (scale, _) = engine.load_onnx(scale_model("acme.twice")).operators
    assert scale.schema.name == "second"


def test_a_wrong_attribute_is_told_with_the_node() -> None:
    engine.register_operator("acme.wrong", "Scale", scale_schema())
    proto = model([node("Scale", ["x"], domain="acme.wrong", colour=3, name="culprit")], [value("x", (4, 8))])
    with pytest.raises(ModelError, match=r"node 'culprit' \(Scale\): .*has no attribute 'colour'; it has: factor"):
        engine.load_onnx(proto)


@pytest.mark.parametrize("raised", [AttributeError("lost"), RecursionError("deep")])
def test_an_error_of_the_schema_is_told_with_the_node(raised: Exception) -> None:
    def infer(*_: object) -> Any:
        raise raised

    engine.register_operator("acme.broken", "Scale", evolve(scale_schema(), infer=infer))
    proto = model([node("Scale", ["x"], domain="acme.broken", factor=2.0, name="culprit")], [value("x", (4, 8))])
    with pytest.raises(ModelError, match=rf"node 'culprit' \(Scale\): .*{type(raised).__name__}: {raised}"):
        engine.load_onnx(proto)


def test_a_node_with_more_outputs_than_the_schema_is_refused() -> None:
    engine.register_operator("acme.few", "Scale", scale_schema())
    proto = model(
        [node("Scale", ["x"], ["y", "z"], domain="acme.few", factor=2.0, name="culprit")], [value("x", (4, 8))], ["z"]
    )
    with pytest.raises(ModelError, match=r"node 'culprit' \(Scale\): its registered schema has 1 outputs"):
        engine.load_onnx(proto)


@pytest.mark.parametrize(
    ("domain", "name", "schema"), [("acme", "", scale_schema()), (3, "A", scale_schema()), ("acme", "A", len)]
)
def test_what_cannot_be_registered_is_an_option_error(domain: Any, name: Any, schema: Any) -> None:
    with pytest.raises(OptionError, match="operator"):
        engine.register_operator(domain, name, schema)
