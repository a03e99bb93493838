"""Operators that nobody implements, from Python: what plans them, and what refuses them."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import engine
from engine.text.errors import ModelError, OptionError, UnsupportedError
from ops.schema.opaque import is_opaque
from ops.tensor.errors import GradientError
from tests.helpers.onnx.own_operators import foreign_model
from tests.helpers.onnx.small_models import node, value

K, L = np.ones((8, 1), np.float32), np.ones((1, 24), np.float32)
LIKE = {"acme.Mix": "like:0"}


def mixed(dims: Any = (64, 8)) -> Any:
    """Returns relu(Mix(relu(x)))."""
    nodes = [node("Relu", ["x"], ["a"]), node("Mix", ["a"], ["m"], domain="acme", name="mixer"), node("Relu", ["m"])]
    return foreign_model(nodes, [value("x", dims)])


@pytest.mark.parametrize("infer", [{5: "like:0"}, {"acme.Mix": 0}, ["acme.Mix"], "acme.Mix=like:0"])
def test_rules_that_are_no_dict_of_texts_are_refused(infer: Any) -> None:
    with pytest.raises(OptionError, match="infer is a dict of texts"):
        engine.load_onnx(mixed(), infer=infer)


@pytest.mark.parametrize("how", [{}, {"mode": "dynamic"}, {"debug": "poison"}, {"parallel": "exact"}])
def test_compile_refuses_before_anything_is_planned(how: dict[str, Any]) -> None:
    graph = engine.load_onnx(mixed(), infer=LIKE)
    with pytest.raises(UnsupportedError, match=r"graph 'g' can be planned, and not run: nobody implements acme\.Mix"):
        engine.compile(graph, budget=1, **how)


def test_a_graph_of_open_lengths_is_refused_when_it_is_run() -> None:
    exe = engine.compile(engine.load_onnx(mixed(("n", 8)), infer=LIKE))
    with pytest.raises(UnsupportedError, match=r"nobody implements acme\.Mix"):
        exe.run({})


def test_open_lengths_are_bound_before_a_plan() -> None:
    graph = engine.bind(engine.load_onnx(mixed(("n", 8)), infer=LIKE), {"n": 3})
    plan = engine.make_plan(graph)
    assert [(each.operator, each.kind) for each in plan.report().opaque] == [("mixer", "acme.Mix")]
    assert graph.vars["m"].shape == (3, 8)


def test_storage_in_16_bits_leaves_the_operator_its_types() -> None:
    graph = engine.cast_storage(engine.load_onnx(mixed(), infer=LIKE), "float16")
    (mixer,) = [op for op in graph.operators if is_opaque(op.schema)]
    assert [v.dtype for v in (*mixer.inputs, *mixer.outputs)] == [np.float32, np.float32]


def test_it_reads_dense_inputs() -> None:
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Mix", ["t"], ["y"], domain="acme")]
    plan = engine.make_plan(engine.load_onnx(foreign_model(nodes, [value("x", (64, 8))]), infer=LIKE), optimise=0)
    (call,) = [c for c in plan.lowered.calls if c.kernel.name == "none"]
    assert all(plan.lowered.values[v].layout.is_dense for v in call.inputs)
    assert call.overwrites == ()


def test_it_has_no_gradient() -> None:
    graph = engine.load_onnx(mixed(()), infer=LIKE)
    with pytest.raises(GradientError, match=r"acme\.Mix"):
        engine.gradients(graph.outputs["y"], [graph.inputs["x"]])


@pytest.mark.parametrize("domain", ["", "acme"])
def test_it_is_not_run_twice_within_a_budget(domain: str) -> None:
    nodes = [
        node("Mix" if domain else "Neg", ["x"], ["a"], domain=domain),
        node("MatMul", ["a", "k"], ["h"]),
        node("MatMul", ["h", "l"], ["w"]),
        node("ReduceMax", ["w"], ["r"], keepdims=0),
        node("Add", ["a", "r"], ["s"]),
        node("Add", ["s", "x"], ["y"]),
    ]
    proto = foreign_model(nodes, [value("x", (64, 8))], initializers={"k": K, "l": L})
    graph = engine.load_onnx(proto, infer=LIKE if domain else None)
    less = engine.make_plan(graph, optimise=0).arena_bytes - 1024
    if domain:
        with pytest.raises(engine.BudgetError):
            engine.make_plan(graph, optimise=0, budget=less)
    else:
        assert engine.make_plan(graph, optimise=0, budget=less).report().recomputed


def test_an_operator_inside_a_function_of_the_model_is_named_in_its_error() -> None:
    calls = [node("Mix", [one], [other], domain="acme") for one, other in ("ab", "bc")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    body = helper.make_function("acme", "Twice", ["a"], ["c"], calls, opsets)
    proto = foreign_model([node("Twice", ["x"], domain="acme")], [value("x", (4, 8))], functions=[body])
    with pytest.raises(UnsupportedError, match=r"nobody implements acme\.Mix .*output 'b'; .*--infer acme\.Mix=like:0"):
        engine.load_onnx(proto)
    assert len(engine.make_plan(engine.load_onnx(proto, infer=LIKE)).report().opaque) == 2


def test_an_element_type_that_is_not_there_is_refused() -> None:
    nodes = [node("Mix", ["x"], ["m"], domain="acme"), node("Cast", ["m"], ["y"], to=1)]
    info = helper.make_tensor_value_info("m", 8, (4, 8))
    with pytest.raises(UnsupportedError, match="tensor 'm' has element type string"):
        engine.load_onnx(foreign_model(nodes, [value("x", (4, 8))], [info]))


def test_a_rule_for_fewer_outputs_than_there_are_is_refused() -> None:
    proto = foreign_model([node("Mix", ["x"], ["a", "b", "y"], domain="acme")], [value("x", (4, 8))])
    with pytest.raises(ModelError, match=r"acme\.Mix has an output 2, and the rule for it says only 2"):
        engine.load_onnx(proto, infer={"acme.Mix": "like:0,like:0"})


def test_a_wrong_rule_is_an_option_error() -> None:
    with pytest.raises(OptionError, match=r"rule '' for acme\.Mix"):
        engine.load_onnx(mixed(), infer={"acme.Mix": ""})
