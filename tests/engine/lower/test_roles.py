"""Roles in training steps: what somebody who knows the network would say of each tensor."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph, zoo
from engine.lower.calls import Lowered, Storage
from engine.lower.roles import AGAIN, roles_of
from engine.training.training import Optimiser


def _step(optimiser: Optimiser) -> Graph:
    """Returns a step of training of two layers; their products are read by the gradients of both functions."""
    graph = Graph("two layers")
    x = graph.input("x", (4, 8))
    first, second = (graph.parameter(np.ones(s, np.float32), n) for s, n in (((8, 6), "first"), ((6, 1), "second")))
    hidden = ops.tanh(ops.matmul(x, first))
    loss = ops.reduce_mean(ops.matmul(ops.exp(hidden), second))
    graph.output(loss, "loss")
    engine.train_step(graph, loss, optimiser)
    return graph


def _roles(lowered: Lowered) -> Mapping[str, str]:
    pairs = zip(lowered.values, roles_of(lowered), strict=True)
    return {value.name: role for value, role in pairs if value.storage is Storage.ARENA}


def _lowered(graph: Graph, **options: Any) -> Lowered:
    return engine.make_plan(graph, optimise=0, **options).lowered


STATES: dict[str, tuple[Optimiser, tuple[str, ...]]] = {
    "sgd": (engine.SGD(0.1), ("learning_rate",)),
    "momentum": (engine.SGD(0.1, momentum=0.9), ("learning_rate", "first/velocity", "second/velocity")),
    "adam": (
        engine.Adam(),
        ("learning_rate", "step", "first/mean", "first/variance", "second/mean", "second/variance"),
    ),
}


@pytest.mark.parametrize("name", STATES)
def test_parameters_state_and_updates_are_told_apart(name: str) -> None:
    optimiser, state = STATES[name]
    lowered = _lowered(_step(optimiser))
    roles = _roles(lowered)
    assert {n for n, role in roles.items() if role == "parameter"} == {"first", "second"}
    first = {lowered.values[p].name: lowered.values[v].name for p, v in lowered.parameters.items() if p != v}
    assert {n for n, role in roles.items() if role == "weight update"} == {first["first"], first["second"]}
    kept = {first[n] for n in state if n in first}
    assert {n for n, role in roles.items() if role == "optimiser state"} == {*state, *kept}


def test_what_gradients_read_is_saved_for_backward() -> None:
    graph = _step(engine.SGD(0.1))
    forward = [op for op in graph.operators if "/gradient" not in op.name and "/update" not in op.name]
    backward = [op for op in graph.operators if "/gradient" in op.name or "/update" in op.name]
    roles = _roles(_lowered(graph, views=False, overwrite=False, nest=False))
    outputs = {v.name for v in graph.outputs.values()}
    read = {v.name for op in backward for v in op.inputs}
    for op in forward:
        for v in op.outputs:
            wanted = "output" if v.name in outputs else "saved for backward" if v.name in read else "activation"
            assert roles[v.name] == wanted, v.name
    assert {roles[v.name] for op in backward for v in op.outputs if v.name in roles} <= {"gradient", "weight update"}
    assert sum(role == "gradient" for role in roles.values()) >= 4


def test_statistics_of_normalization_stay_parameters() -> None:
    graph = zoo.resnet18(batch=2, image=32, training=True)
    engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.1, momentum=0.9))
    roles = _roles(_lowered(graph))
    for kind in ("mean", "variance"):
        assert roles[f"batch_norm_0/running_{kind}"] == "parameter"
    assert roles["conv_0/weight/velocity"] == "optimiser state"


def test_what_is_computed_again_is_no_gradient() -> None:
    graph = zoo.resnet18(batch=16, image=64, training=True)
    engine.train_step(graph, graph.outputs["loss"], engine.SGD(0.1))
    plain = engine.make_plan(graph, optimise=0).arena_bytes
    roles = _roles(_lowered(graph, budget=int(plain * 0.95), nodes=1000))
    again = {name: role for name, role in roles.items() if name.endswith(f"/{AGAIN}")}
    assert again and set(again.values()) == {"activation"}


@pytest.mark.parametrize("training", [False, True])
def test_roles_of_graphs_that_train_nothing_are_those_of_values(training: bool) -> None:
    lowered = _lowered(zoo.resnet18(batch=2, image=32, training=training))
    assert roles_of(lowered) == tuple(value.role.value for value in lowered.values)
