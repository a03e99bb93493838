"""Graphs, plans and executables travel between processes and are copied."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.execution_plan import execution_plan
from engine.graph.graph import Graph
from engine.text.errors import EngineError
from ops.common.apply import apply1
from ops.schema.attributes import Attribute, number
from ops.schema.opaque import opaque_schema
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.tensor.errors import OpError
from tests.helpers.paths import ROOT

COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy}
"""Ways to copy an object."""
Feeds = Mapping[str, Any]


def _training() -> tuple[Graph, Feeds]:
    graph = Graph("training")
    x, w = graph.input("x", (4, 8)), graph.parameter(np.full((8, 3), 0.1, np.float32), "w")
    loss = ops.mse_loss(ops.matmul(x, w), np.zeros((4, 3), np.float32))
    engine.train_step(graph, loss, engine.Adam(0.1))
    return graph, {"x": np.ones((4, 8), np.float32)}


def _open() -> tuple[Graph, Feeds]:
    graph = Graph("open")
    x = graph.input("x", ("n", 4))
    graph.output(ops.relu(x - 1.0), "y")
    return graph, {"x": np.arange(20, dtype=np.float32).reshape(5, 4)}


def _staged() -> tuple[Graph, Feeds]:
    graph = Graph("staged")
    graph.output(ops.nonzero(graph.input("x", (8,))), "y")
    return graph, {"x": np.arange(8, dtype=np.float32) % 3}


def _branches() -> tuple[Graph, Feeds]:
    graph = Graph("branches")
    x = graph.input("x", (3, 4))
    goes_up = ops.reduce_sum(x, keepdims=False) > 0.0
    graph.output(engine.cond(goes_up, lambda a: a + 1.0, lambda a: a * 2.0, x), "y")
    return graph, {"x": np.ones((3, 4), np.float32)}


def _large() -> tuple[Graph, Feeds]:
    graph = Graph("large")
    x = graph.input("x", (1, 512))
    w = np.linspace(-1, 1, 512 * 300, dtype=np.float32).reshape(512, 300)
    graph.output(ops.relu(ops.matmul(x, w) + 0.5), "y")
    return graph, {"x": np.linspace(0, 1, 512, dtype=np.float32).reshape(1, 512)}


GRAPHS = {make.__name__[1:]: make for make in (_training, _open, _staged, _branches, _large)}
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"mode": "dynamic"},
    {"debug": "poison"},
    {"backend": "numpy", "optimise": 0, "padding": 64},
    {"budget": "1 MiB", "threads": 1},
)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
def test_a_copy_of_a_graph_is_the_same_graph(make: Callable[[], tuple[Graph, Feeds]], copied: Any) -> None:
    graph, feeds = make()
    other = copied(graph)
    assert other.text() == graph.text() and other.operators[0] is not graph.operators[0]
    assert all(ours.schema is theirs.schema for ours, theirs in zip(graph.operators, other.operators, strict=True))
    assert not any(array.flags.writeable for array in other.constants.values())
    outputs, expected = (engine.compile(g, backend="numpy").run(feeds) for g in (other, graph))
    assert all(np.array_equal(outputs[name], array) for name, array in expected.items())


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_a_graph_after_passes_has_the_same_fused_operators(copied: Any) -> None:
    graph = Graph("fused")
    x = graph.input("x", (4, 5))
    graph.output(ops.sigmoid(x * 2.0 + 1.0) * x, "y")
    fused = engine.optimise(graph)
    other = copied(fused)
    assert [o.schema.name for o in other.operators] == ["fused_elementwise"] and other.text() == fused.text()
    array = np.linspace(-2, 2, 20, dtype=np.float32).reshape(4, 5)
    one, two = (engine.compile(g, backend="numpy")(array)["y"] for g in (other, fused))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS.keys())
def test_a_copy_of_an_executable_goes_on_from_the_present_values(
    make: Callable[[], tuple[Graph, Feeds]], options: dict[str, Any], copied: Any
) -> None:
    graph, feeds = make()
    exe = engine.compile(graph, **options)
    exe.run(feeds)
    other = copied(exe)
    assert repr(other.graph) == repr(graph) and type(other.executor) is type(exe.executor)
    for _ in range(2):
        outputs, expected = other.run(feeds), exe.run(feeds)
        assert all(np.array_equal(outputs[name], array) for name, array in expected.items())
    assert all(np.array_equal(other.parameters[name], array) for name, array in exe.parameters.items())


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.parametrize("options", ({}, {"parallel": "edges"}, {"order": "memory"}), ids=str)
def test_a_copy_of_a_plan_has_the_same_addresses(options: dict[str, Any], copied: Any) -> None:
    plan = engine.make_plan(_training()[0], **options)
    other = copied(copied(plan))
    assert np.array_equal(other.plan.offset, plan.plan.offset) and other.arena_bytes == plan.arena_bytes
    assert [o.name for o in other.graph.operators] == [o.name for o in plan.graph.operators]
    assert str(other.explain()) == str(plan.explain())


def test_a_plan_of_one_stage_is_not_copied() -> None:
    graph, feeds = _staged()
    exe = engine.compile(graph)
    exe.run(feeds)
    with pytest.raises(EngineError, match="pickle the executable"):
        pickle.dumps(execution_plan(exe.stages[0].plan))


def test_operators_that_nobody_implements_are_copied() -> None:
    graph = Graph("opaque")
    x = graph.input("x", (2, 3))
    (y,) = graph.add(opaque_schema("acme.Own"), [x], {"shapes": ((2, 3),), "dtypes": ("float32",)})
    graph.output(y, "y")
    other = pickle.loads(pickle.dumps(graph))
    assert other.text() == graph.text()
    assert engine.make_plan(other).arena_bytes == engine.make_plan(graph).arena_bytes


def _scaled(call: Binding) -> Thunk:
    return partial(np.multiply, call.x, call.attrs["by"], call.y)


def _same(inputs: Specs, _: Attrs) -> Specs:
    return inputs


SCALED = OpSchema("scaled", _same, (Kernel("numpy", _scaled),), attributes=(Attribute("by", number),))


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copied_operator_of_a_user_requires_what_it_did(copied: Any) -> None:
    graph = Graph("own")
    graph.output(apply1(SCALED, graph.input("x", (3,)), by=2.0), "y")
    other = copied(graph)
    assert engine.compile(other)(np.ones(3, np.float32))["y"].tolist() == [2, 2, 2]
    with pytest.raises(OpError, match="attribute 'by' is missing"):
        apply1(other.operators[0].schema, other.inputs["x"])


def test_an_executable_travels_to_another_process(tmp_path: Path) -> None:
    graph, feeds = _training()
    exe = engine.compile(graph, backend="numpy")
    exe.run(feeds)
    with (tmp_path / "exe").open("wb") as file:
        pickle.dump((exe, feeds), file)
    code = (
        "import pickle, sys; exe, feeds = pickle.load(open(sys.argv[1], 'rb'));"
        "print(exe.run(feeds)['loss'].tobytes().hex(), exe.parameters['w'].tobytes().hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "exe")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [exe.run(feeds)["loss"].tobytes().hex(), exe.parameters["w"].tobytes().hex()]
