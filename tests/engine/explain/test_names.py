"""Every name of an ONNX file is found: in the plan, or with a sentence that says what became of it."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import engine
import ops
from engine import ExecutionPlan, Graph
from engine.explain.names import UnknownNameError
from ops.quantised.nhwc_tiled import has_vnni
from tests.helpers.cli.cli_checks import Capture, data, error
from tests.helpers.onnx.quantised_models import quantised_model, seeded
from tests.helpers.onnx.small_models import model, node, value


def small_model() -> Any:
    """Returns a model whose reader leaves out an identity, a folded sum and a shape; three nodes have one name."""
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="product"),
        node("Relu", ["a"], ["b"], name="product"),
        node("MatMul", ["b", "w"], ["c"], name="product"),
        node("Identity", ["c"], ["d"], name="same"),
        node("Add", ["w", "w"], ["twice"], name="sum"),
        node("Shape", ["x"], ["s"], name="shape"),
        node("MatMul", ["d", "twice"], ["e"], name="last"),
        node("Reshape", ["e", "s"], ["y"], name="reshape"),
        node("Identity", ["x"], ["fed"], name="input"),
        node("Identity", ["w"], ["weights"], name="weights"),
    ]
    outputs = ("y", "fed", "weights", "twice")
    return model(nodes, [value("x", ("n", 4))], outputs, {"w": np.ones((4, 4), np.float32)})


def small_plan(optimise: int | str) -> ExecutionPlan:
    return engine.make_plan(engine.bind(engine.load_onnx(small_model()), {"n": 2}), optimise=optimise)


@pytest.mark.parametrize("optimise", [0, "auto"])
def test_names_that_the_reader_leaves_out_are_found(optimise: int | str) -> None:
    plan = small_plan(optimise)
    tensors = {
        "d": ("c", "'d' is not computed: tensor c has the same elements."),
        "fed": ("x", "Output 'fed' is tensor x."),
        "weights": ("w", "Output 'weights' is tensor w."),
        "twice": ("twice", ""),
    }
    for name, wanted in tensors.items():
        tensor = plan.explain(tensor=name)
        assert (tensor.tensor, tensor.fate) == wanted
    with pytest.raises(UnknownNameError, match=r"^g: 's' was needed only to read the model: no operator reads it\.$"):
        plan.explain(tensor="s")
    operators = {
        "same": "'same' is not computed: tensor c has the same elements.",
        "sum": "'sum' was computed before the run: constant twice has its result.",
        "shape": "'shape' was needed only to read the model: no operator reads it.",
        "input": "'input' is not computed: tensor x has the same elements.",
    }
    for name, sentence in operators.items():
        with pytest.raises(UnknownNameError) as refused:
            plan.explain(operator=name)
        assert str(refused.value) == f"g: {sentence}"


@pytest.mark.parametrize("optimise", [0, "auto"])
def test_names_in_bodies_are_found_with_the_operator_that_runs_them(optimise: int | str) -> None:
    then = onnx.helper.make_graph(
        [node("Sigmoid", ["a"], ["s"], name="squash"), node("Mul", ["a", "s"], ["t"], name="swish")],
        "then",
        [],
        [value("t", (4,))],
    )
    otherwise = onnx.helper.make_graph([node("Neg", ["a"], ["u"], name="minus")], "otherwise", [], [value("u", (4,))])
    outer = node("If", ["late"], ["y"], name="choice", then_branch=then, else_branch=otherwise)
    inputs = [value("x", (4,)), value("late", (), np.bool_)]
    plan = engine.make_plan(engine.load_onnx(model([node("Relu", ["x"], ["a"]), outer], inputs)), optimise=optimise)
    for name in ("squash", "swish", "minus"):
        operator = plan.explain(operator=name)
        assert operator.fate == f"'{name}' is computed within operator choice."
    for name in ("s", "t", "u"):
        tensor = plan.explain(tensor=name)
        assert (tensor.tensor, tensor.fate) == ("y", f"'{name}' is computed within operator choice.")
    with pytest.raises(UnknownNameError, match="g has no operator 'squish'"):
        plan.explain(operator="squish")


@pytest.mark.parametrize("optimise", [0, "auto"])
def test_a_name_that_several_nodes_have_is_said_to_be_one(optimise: int | str) -> None:
    plan = small_plan(optimise)
    product = plan.explain(operator="product")
    sentence = "3 operators of the model are named 'product', here product, product_0 and product_1; this is the first."
    assert product.fate.startswith(sentence) and str(product).startswith(sentence)
    for name in ("product_0", "product_1", "last"):
        assert not plan.explain(operator=name).fate


def test_a_function_of_the_model_is_found_by_the_name_of_its_call() -> None:
    nodes = [node("HardSwish", ["x"], ["h"], name="swish"), node("Softmax", ["h"], ["y"], name="soft")]
    graph = engine.load_onnx(model(nodes, [value("x", (2, 4))], opset=14))
    plan = engine.make_plan(graph)
    for name in ("swish", "soft"):
        assert plan.explain(operator=name).kernel
    for name in ("x", "h", "y"):
        assert plan.explain(tensor=name).tensor


def quantised_network() -> Graph:
    graph = Graph("net")
    x = graph.input("x", (1, 3, 16, 16))

    def conv(x: Any, outputs: int, size: int, seed: int) -> Any:
        return ops.conv2d(
            x, seeded((outputs, x.shape[1], size, size), seed, 0.3), seeded((outputs,), seed), pads=size // 2
        )

    h = ops.max_pool(ops.relu(conv(x, 8, 3, 0)), (2, 2), strides=(2, 2))
    h = ops.relu(ops.add(conv(ops.relu(conv(h, 8, 3, 1)), 8, 3, 2), h))
    graph.output(ops.softmax(conv(h, 4, 1, 3)), "y")
    return graph


def names_of(file: Path) -> tuple[list[str], list[str]]:
    """Returns the names of all tensors and of all named nodes of a file."""
    proto = onnx.load(file).graph
    outputs = [name for each in proto.node for name in each.output]
    tensors = [i.name for i in proto.input] + [t.name for t in proto.initializer] + outputs
    return tensors, [each.name for each in proto.node if each.name]


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_every_name_of_a_quantised_network_is_found(kind: str, tmp_path: Path, capsys: Capture) -> None:
    file = quantised_model(quantised_network(), tmp_path, kind)
    plan = engine.make_plan(engine.load_onnx(file))
    schemas = [op.schema.name for op in plan.graph.operators]
    kind = "nhwc_quantised_conv" if has_vnni() else "conv"  # without VNNI, nothing is computed on codes
    assert schemas.count(kind) == 4 and "quantised_add" not in schemas, "else the test is worthless"
    tensors, nodes = names_of(file)
    for name in tensors:
        assert plan.explain(tensor=name).tensor
    for name in nodes:
        if name.startswith("constant_") and not has_vnni():
            with pytest.raises(UnknownNameError, match=f"'{name}' was computed before the run: constant "):
                plan.explain(operator=name)
            continue
        operator = plan.explain(operator=name)
        assert operator.kernel or operator.operator == name
    assert {op.name for op in plan.graph.operators if op.schema.name != "transpose"} <= {*tensors, *nodes}
    (output,) = plan.lowered.outputs
    assert data(["explain", str(file), "--tensor", output], capsys)["role"] == "output"
    for i in range(4):
        printed = data(["explain", str(file), "--operator", f"conv_{i}"], capsys)
        assert printed["kind"] == kind and (f"conv_{i}" in printed["parts"] or not has_vnni())
        assert set(printed["parts"]) <= set(nodes)


def test_an_unknown_name_has_similar_ones(tmp_path: Path, capsys: Capture) -> None:
    onnx.save(small_model(), tmp_path / "small.onnx")
    asked = ["explain", str(tmp_path / "small.onnx"), "--dim", "n=2", "--operator"]
    assert error([*asked, "producd"], 2, capsys).endswith("did you mean 'product_1', 'product_0'?")
