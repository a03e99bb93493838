from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from engine.onnx.load import load_onnx
from engine.text.errors import CycleError, ModelError, UnsupportedError
from tests.helpers.onnx.small_models import model, node, run_ours, value

X = np.asarray([[1, -2, 3], [-4, 5, -6]], np.float32)


def test_tensors_and_nodes_keep_their_names() -> None:
    graph = load_onnx(model([node("Relu", ["x"], ["h"], name="first"), node("Neg", ["h"])], [value("x", (2, 3))]))
    assert set(graph.vars) == {"x", "h", "y"}
    assert [o.name for o in graph.operators] == ["first", "Neg_1"]


def test_a_chain_that_computes_a_shape_leaves_one_operator() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axis"], ["n1"]),
        node("Concat", ["n1", "rest"], ["target"], axis=0),
        node("Reshape", ["x", "target"]),
    ]
    initializers = {"zero": np.asarray(0), "axis": np.asarray([0]), "rest": np.asarray([3, 1])}
    graph = load_onnx(model(nodes, [value("x", (2, 3))], initializers=initializers))
    assert [o.schema.name for o in graph.operators] == ["reshape"]
    assert graph.outputs["y"].shape == (2, 3, 1)
    assert not graph.constants


def test_an_array_that_is_used_twice_is_one_constant_with_its_name() -> None:
    nodes = [node("Add", ["x", "w"], ["h"]), node("Identity", ["w"], ["v"]), node("Mul", ["h", "v"])]
    graph = load_onnx(model(nodes, [value("x", (2, 3))], initializers={"w": np.ones(3, np.float32)}))
    assert [v.name for v in graph.constants] == ["w"]


def test_nodes_in_any_order_are_sorted() -> None:
    nodes = [node("Neg", ["h"]), node("Relu", ["x"], ["h"])]
    (y,) = run_ours(model(nodes, [value("x", (2, 3))]), {"x": X})
    np.testing.assert_array_equal(y, -np.maximum(X, 0))


def test_load_onnx_names_the_nodes_of_a_cycle() -> None:
    nodes = [
        node("Add", ["x", "b"], ["a"], name="one"),
        node("Neg", ["a"], ["b"], name="two"),
        node("Relu", ["b"], name="behind"),
    ]
    with pytest.raises(CycleError) as caught:
        load_onnx(model(nodes, [value("x", (2,))]))
    assert "one" in str(caught.value)
    assert "two" in str(caught.value)
    assert "behind" not in str(caught.value)


def test_a_tensor_that_nothing_makes_is_named() -> None:
    with pytest.raises(ModelError, match=r"node 'n' \(Add\) reads tensor 'ghost', which nothing makes"):
        load_onnx(model([node("Add", ["x", "ghost"], name="n")], [value("x", (2,))]))


def test_an_output_that_nothing_makes_is_named() -> None:
    with pytest.raises(ModelError, match="output 'z' is made by no node"):
        load_onnx(model([node("Relu", ["x"])], [value("x", (2,))], ["z"]))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", ["x"]), node("Neg", ["x"])], "tensor 'y' is made twice"),
        ([node("Relu", ["w"], ["x"])], "tensor 'x' is made twice"),
        ([node("Relu", ["x"], ["w"])], "tensor 'w' is made twice"),
    ],
)
def test_load_onnx_refuses_two_tensors_of_one_name(nodes: list[Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_onnx(model(nodes, [value("x", (2,))], initializers={"w": np.ones(2, np.float32)}))


def test_two_outputs_or_two_inputs_of_one_name_are_refused() -> None:
    with pytest.raises(ModelError, match="output 'y' is made twice"):
        load_onnx(model([node("Relu", ["x"])], [value("x", (2,))], ["y", "y"]))
    with pytest.raises(ModelError, match="input 'x' is made twice"):
        load_onnx(model([node("Relu", ["x"])], [value("x", (2,)), value("x", (2,))]))


def test_a_graph_without_outputs_is_refused() -> None:
    with pytest.raises(ModelError, match="has no outputs"):
        load_onnx(model([node("Relu", ["x"])], [value("x", (2,))], []))


def test_all_unknown_operators_stand_in_one_message() -> None:
    nodes = [
        node("TfIdfVectorizer", ["x"], ["a"]),
        node("Frob", ["a"], ["b"], domain="com.example"),
        node("TfIdfVectorizer", ["b"], ["y"]),
    ]
    proto = model(nodes, [value("x", (2,))])
    proto.opset_import.append(helper.make_opsetid("com.example", 3))
    with pytest.raises(UnsupportedError) as caught:
        load_onnx(proto)
    assert "ai.onnx.TfIdfVectorizer (opset 17) x2, com.example.Frob (opset 3)" in str(caught.value)


def test_an_operator_is_unknown_before_the_opset_that_brings_it() -> None:
    with pytest.raises(UnsupportedError, match=r"ai\.onnx\.Gelu \(opset 19\)"):
        load_onnx(model([node("Gelu", ["x"])], [value("x", (2,))], opset=19))
    with pytest.raises(UnsupportedError, match=r"ai\.onnx\.Upsample \(opset 10\)"):
        load_onnx(model([node("Upsample", ["x", "x"])], [value("x", (2,))], opset=10))


@pytest.mark.parametrize(
    "bad",
    [
        node("Conv", ["x"]),
        node("Add", ["x", ""]),
        node("Relu", ["x", "x"]),
        node("Concat", ["x", "x"]),
        node("Transpose", ["x"], perm=[0, 0]),
        node("Transpose", ["x"], perm=[0, 7]),
        node("Flatten", ["x"], axis=9),
        node("Softmax", ["x"], axis=4),
        node("LeakyRelu", ["x"], alpha="much"),
        node("Relu", ["x"], colour=3),
        node("Constant", []),
    ],
)
def test_a_node_that_makes_no_sense_is_named_in_one_line(bad: Any) -> None:
    bad.name = "culprit"
    with pytest.raises(ModelError, match="node 'culprit'") as caught:
        load_onnx(model([bad], [value("x", (2, 3))]))
    assert "\n" not in str(caught.value)


def test_shapes_and_types_that_do_not_fit_are_told_with_the_node() -> None:
    with pytest.raises(ModelError, match=r"node 'Add_0' \(Add\): .*\(2,\).*\(3,\)"):
        load_onnx(model([node("Add", ["a", "b"])], [value("a", (2,)), value("b", (3,))]))
    with pytest.raises(UnsupportedError, match=r"node 'Exp_0' \(Exp\): "):
        load_onnx(model([node("Exp", ["a"])], [value("a", (2,), np.bool_)]))


def _gigantic(size: int) -> list[Any]:
    """Returns models whose output is a constant of so many elements."""
    fill, bounds = {"s": np.asarray([size]), "one": np.ones(1, np.float32)}, (0, size, 1)
    return [
        model([node("ConstantOfShape", ["s"])], [], initializers={"s": fill["s"]}),
        model([node("Expand", ["one", "s"])], [], initializers=fill),
        model([node("Range", list("abc"))], [], initializers=dict(zip("abc", map(np.asarray, bounds), strict=True))),
    ]


@pytest.mark.parametrize("proto", _gigantic(2**62))
def test_a_constant_of_more_bytes_than_64_bits_can_say_is_refused(proto: Any) -> None:
    with pytest.raises(ModelError, match="bytes"):
        load_onnx(proto)


@pytest.mark.parametrize("proto", _gigantic(2**40))
def test_a_gigantic_constant_is_an_operator(proto: Any) -> None:
    graph = load_onnx(proto)
    assert [o.outputs[0].shape for o in graph.operators] == [(2**40,)]
    assert sum(c.nbytes for c in graph.constants.entries.values()) < 100


def test_outputs_may_be_inputs_constants_or_folded() -> None:
    nodes = [node("Identity", ["x"], ["same"]), node("Neg", ["w"], ["folded"])]
    proto = model(nodes, [value("x", (2,))], ["same", "folded"], {"w": np.ones(2, np.float32)})
    same, folded = run_ours(proto, {"x": np.asarray([1, 2], np.float32)})
    assert same.tolist() == [1, 2]
    assert folded.tolist() == [-1, -1]


def _branch(name: str, op_type: str) -> Any:
    return helper.make_graph([node(op_type, ["x"], ["out"])], name, [], [onnx.ValueInfoProto(name="out")])


@pytest.mark.parametrize("condition", [True, False])
def test_a_constant_condition_chooses_its_branch_which_sees_the_outer_tensors(condition: bool) -> None:
    choice = node("If", ["c"], then_branch=_branch("t", "Relu"), else_branch=_branch("e", "Neg"))
    proto = model([choice], [value("x", (2, 3))], initializers={"c": np.asarray(condition)})
    (y,) = run_ours(proto, {"x": X})
    np.testing.assert_array_equal(y, np.maximum(X, 0) if condition else -X)


def _with_function(body: list[Any], **attributes: Any) -> Any:
    function = helper.make_function("own", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)], list(attributes))
    call = node("F", ["x"], domain="own", **attributes)
    proto = model([call], [value("x", (2, 3))], functions=[function])
    proto.opset_import.append(helper.make_opsetid("own", 1))
    return proto


def test_functions_of_a_model_are_read_in_place_with_their_attributes() -> None:
    leaky = node("LeakyRelu", ["h"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"))
    (y,) = run_ours(_with_function([node("Neg", ["a"], ["h"]), leaky], slope=0.5), {"x": X})
    np.testing.assert_array_equal(y, np.where(-X > 0, -X, -X * 0.5))


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(ModelError, match="deep"):
        load_onnx(_with_function([helper.make_node("F", ["a"], ["b"], domain="own")]))


def test_operators_that_onnx_defines_by_others_are_read_that_way() -> None:
    proto = model([node("MeanVarianceNormalization", ["x"], axes=[0, 1])], [value("x", (2, 3))])
    (y,) = run_ours(proto, {"x": X})
    np.testing.assert_allclose(y, (X - X.mean()) / X.std(), rtol=1e-5)


@pytest.mark.parametrize("version", [2**40, -1])
def test_versions_that_no_operator_set_can_have_are_refused(version: int) -> None:
    proto = model([node("Relu", ["x"]), node("Scaler", ["y"], ["z"], domain="ai.onnx.ml")], [value("x", (2,))])
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", version))
    with pytest.raises(UnsupportedError, match=f"operator set ai.onnx.ml version {version} does not exist"):
        load_onnx(proto)


def test_axes_that_are_no_integers_are_refused_with_the_node() -> None:
    with pytest.raises(ModelError, match="node"):
        load_onnx(model([node("Transpose", ["x"], perm=[0.5, 1.5])], [value("x", (2, 3))]))
    half = {"a": np.array([0.5], np.float32)}
    floats = model([node("Unsqueeze", ["x", "a"], name="n")], [value("x", (2,))], initializers=half)
    with pytest.raises(ModelError, match=r"node 'n' \(Unsqueeze\): input 'axes' has 0.5, which is no integer"):
        load_onnx(floats)


@pytest.mark.parametrize("shape", [(1,) * 65, (0, 2**62)])
def test_shapes_that_no_array_can_have_are_refused_with_the_input(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="input 'x'"):
        load_onnx(model([node("Relu", ["x"])], [value("x", shape)]))


@pytest.mark.parametrize("step", [2**62, 2**63 - 1, -(2**62)])
def test_steps_longer_than_the_axis_take_one_element(step: int) -> None:
    names = ["starts", "ends", "axes", "steps"]
    numbers = (1, 2**62, 1, step) if step > 0 else (1, -(2**62), 1, step)
    initializers = {n: np.asarray([v]) for n, v in zip(names, numbers, strict=True)}
    (y,) = run_ours(model([node("Slice", ["x", *names])], [value("x", (2, 3))], initializers=initializers), {"x": X})
    np.testing.assert_array_equal(y, X[:, 1:2])


def test_masked_arrays_fix_no_input() -> None:
    with pytest.raises(ModelError, match="masked array"):
        load_onnx(
            model([node("Relu", ["x"])], [value("x", (2,))]),
            constants={"x": np.ma.array(np.ones(2, np.float32), mask=[True, False])},
        )
