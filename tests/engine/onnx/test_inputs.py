from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from engine.api import compile_graph
from engine.onnx.load import load_onnx
from engine.text.errors import ConstantNeededError, FeedError, ModelError, UnsupportedError
from tests.helpers.onnx.small_models import model, node, run_ours, value


def _shape(dims: Sequence[int | str | None], **options: Any) -> str:
    """Returns the shape of the one input, as text."""
    return str(load_onnx(model([node("Relu", ["x"])], [value("x", dims)]), **options).inputs["x"].spec)


def test_open_dimensions_are_called_as_the_model_calls_them() -> None:
    assert _shape(("batch", 3, None)) == "float32[batch,3,x_2]"
    assert _shape(("batch-size", "2h", "seq len", "?")) == "float32[batch_size,_2h,seq_len,x_3]"
    assert _shape(("a-b", "a_b", "a-b")) == "float32[a_b,a_b_1,a_b]"
    assert _shape(("None", "None")) == "float32[x_0,x_1]"
    assert _shape((-1, 3, -1)) == "float32[x_0,3,x_2]"


def test_a_sum_of_names_is_one_where_they_stand_alone_elsewhere() -> None:
    inputs = [value("x", ("past", "now", "past + now", "past + 1", "other + 1"))]
    graph = load_onnx(model([node("Relu", ["x"])], inputs))
    assert str(graph.inputs["x"].spec) == "float32[past,now,past+now,past+1,other_1]"
    x = np.zeros((2, 3, 5, 3, 7), np.float32)
    assert compile_graph(graph).run({"x": x})["y"].shape == x.shape
    with pytest.raises(FeedError, match="is expected with past=2, now=3"):
        compile_graph(graph).run({"x": x[:, :, :4]})


def test_a_name_may_be_given_in_place_of_a_number() -> None:
    assert _shape(("batch", 3, None), shapes={"x": ("n", 3, 8)}) == "float32[n,3,8]"
    proto = model([node("Add", ["a", "b"])], [value("a", ("n", 2)), value("b", ("n", 2))])
    assert str(load_onnx(proto, shapes={"a": ("rows", 2)}).inputs["b"].spec) == "float32[rows,2]"
    with pytest.raises(ModelError, match="axis 1 is 2, not m"):
        load_onnx(proto, shapes={"a": ("rows", "m")})


def test_a_given_shape_closes_open_dimensions() -> None:
    proto = model([node("Relu", ["x"])], [value("x", ("batch", 3))])
    assert load_onnx(proto, shapes={"x": (5, 3)}).outputs["y"].shape == (5, 3)


def test_a_name_of_a_dimension_holds_for_all_inputs() -> None:
    proto = model([node("Add", ["a", "b"])], [value("a", ("n", 2)), value("b", ("n", 2))])
    assert load_onnx(proto, shapes={"b": (4, 2)}).inputs["a"].shape == (4, 2)
    with pytest.raises(ModelError, match=r"input 'b' .* axis 0 .'n'. is 4, not 3"):
        load_onnx(proto, shapes={"a": (4, 2), "b": (3, 2)})


@pytest.mark.parametrize(
    ("shape", "message"),
    [((2,), "has 2 dimensions"), ((2, 4), "axis 1 is 3, not 4"), ((-1, 3), "negative"), ((2**61, 3), "64 bits")],
)
def test_load_onnx_refuses_an_input_shape_that_does_not_fit(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_onnx(model([node("Relu", ["x"])], [value("x", ("n", 3))]), shapes={"x": shape})


def test_a_constant_tells_the_dimensions_that_it_has_a_name_for() -> None:
    proto = model([node("Add", ["a", "b"])], [value("a", ("n", 2)), value("b", ("n", 2))])
    fixed = {"b": np.ones((4, 2), np.float32)}
    assert load_onnx(proto, constants=fixed).inputs["a"].shape == (4, 2)
    with pytest.raises(ModelError, match="axis 0"):
        load_onnx(proto, shapes={"a": (3, 2)}, constants=fixed)


def test_a_constant_that_its_type_does_not_hold_is_refused() -> None:
    proto = model([node("Neg", ["x"])], [value("x", (1,), np.int32)])
    with pytest.raises(ModelError, match="numbers that int32 does not hold"):
        load_onnx(proto, constants={"x": np.array([2**40 + 7])})


def test_an_input_without_any_shape_asks_for_one() -> None:
    proto = model([node("Relu", ["x"])], [value("x", None)])
    with pytest.raises(ModelError, match="--shape x="):
        load_onnx(proto)
    assert load_onnx(proto, shapes={"x": (7,)}).outputs["y"].shape == (7,)


def test_a_shape_or_a_constant_for_no_input_names_the_inputs() -> None:
    proto = model([node("Relu", ["x"])], [value("x", (2,))])
    with pytest.raises(ModelError, match="shapes names 'z', which is no input; the inputs are: x"):
        load_onnx(proto, shapes={"z": (2,)})
    with pytest.raises(ModelError, match="constants names 'z'"):
        load_onnx(proto, constants={"z": 1})


def test_negative_dimensions_are_refused() -> None:
    with pytest.raises(ModelError, match="declared with the dimension -2"):
        load_onnx(model([node("Relu", ["x"])], [value("x", (-2, 3))]))


def test_inputs_of_other_kinds_than_tensors_are_refused_by_name() -> None:
    kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, (2,)))
    proto = model([node("Identity", ["x"])], [helper.make_value_info("x", kind)])
    with pytest.raises(UnsupportedError, match=r"input 'x' is no tensor \(map\)"):
        load_onnx(proto)


def test_a_shape_that_is_an_input_is_read_in_the_run_or_fixed() -> None:
    proto = model([node("Reshape", ["x", "s"], name="r")], [value("x", (6,)), value("s", (2,), np.int64)])
    (y,) = run_ours(proto, {"x": np.zeros(6, np.float32), "s": np.asarray([2, -1])})
    assert y.shape == (2, 3)
    with pytest.raises(ConstantNeededError) as caught:
        load_onnx(proto, stages=False)
    assert caught.value.inputs == ("s",)
    assert caught.value.tensor == "s"
    assert "node 'r' (Reshape): input 'shape' decides a shape" in str(caught.value)
    assert "constants=" in str(caught.value)
    graph = load_onnx(proto, constants={"s": [2, 3]}, stages=False)
    assert graph.outputs["y"].shape == (2, 3)
    assert list(graph.inputs) == ["x"]


def test_a_shape_computed_from_inputs_names_all_of_them_without_stages() -> None:
    nodes = [node("Add", ["a", "b"], ["s"]), node("Reshape", ["x", "s"])]
    inputs = [value("x", (6,)), value("a", (2,), np.int64), value("b", (2,), np.int64)]
    with pytest.raises(ConstantNeededError, match="tensor 's' is computed from graph input 'a', 'b'") as caught:
        load_onnx(model(nodes, inputs), stages=False)
    assert caught.value.inputs == ("a", "b")


def test_a_constant_must_fit_the_input_that_it_fixes() -> None:
    proto = model([node("Add", ["x", "b"])], [value("x", (2,)), value("b", (2,))])
    with pytest.raises(ModelError, match="cannot have shape"):
        load_onnx(proto, constants={"b": np.zeros(3, np.float32)})
    with pytest.raises(ModelError, match="cannot be fixed to an array of complex128"):
        load_onnx(proto, constants={"b": np.zeros(2, np.complex128)})
    with pytest.raises(ModelError, match="cannot be fixed to rows of different lengths"):
        load_onnx(proto, constants={"b": [[1, 2], [3]]})
    with pytest.raises(ModelError, match="at once"):
        load_onnx(proto, constants={"b": np.zeros(2)}, shapes={"b": (2,)})


def test_an_input_with_an_initializer_is_a_constant_unless_it_is_given_a_shape() -> None:
    proto = model([node("Add", ["x", "w"])], [value("x", (2,)), value("w", (2,))], initializers={"w": np.ones(2, "f4")})
    assert list(load_onnx(proto).inputs) == ["x"]
    assert list(load_onnx(proto, shapes={"w": (2,)}).inputs) == ["x", "w"]
    (y,) = run_ours(proto, {"x": np.asarray([1, 2], np.float32)})
    assert y.tolist() == [2, 3]
