"""Parameters, their updates, optimisers."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import SGD, Adam, Executable, Graph
from engine.check import check_data_flow
from engine.text.errors import DataFlowError, FeedError, GraphError, OptionError
from ops.schema.schema import evaluate
from ops.training.optimisers import SGD_STEP
from tests.helpers.graphs.perceptrons import OPTIMISERS, perceptron, perceptron_feeds
from tests.helpers.ops.kernel_checks import scratch_bytes
from tests.helpers.ops.plain_optimisers import perceptron_gradients, stepped

POLICIES = ("exact", "levels", "colour:2", "edges")


def _counter() -> Graph:
    graph = Graph("counter")
    count = graph.parameter(np.zeros((), np.int64), "count", trainable=False)
    graph.output(graph.assign(count, count + graph.input("by", (), "int64")), "now")
    return graph


def _ways(graph: Graph) -> dict[str, Executable]:
    """Returns the graph, ready in every mode."""
    executables = {
        "static": engine.compile(graph, optimise=0),
        "dynamic": engine.compile(graph, mode="dynamic", optimise=0),
    }
    executables["poison"] = engine.compile(graph, debug="poison", optimise=0)
    executables |= {policy: engine.compile(graph, parallel=policy, threads=2, optimise=0) for policy in POLICIES}
    without: dict[str, Any] = {"overwrite": False, "reuse": False, "views": False}
    return executables | {
        f"no {name}": engine.compile(graph, optimise=0, **{name: off}) for name, off in without.items()
    }


def test_a_parameter_holds_what_it_was_assigned_from_run_to_run_in_every_mode() -> None:
    for name, exe in _ways(_counter()).items():
        assert [int(exe(by=np.int64(n))["now"]) for n in (1, 10, 100)] == [1, 11, 111], name
        assert exe.parameters["count"] == 111


def test_two_executables_of_one_graph_have_parameters_of_their_own() -> None:
    graph = _counter()
    one, other = engine.compile(graph, optimise=0), engine.compile(graph, optimise=0)
    one(by=np.int64(5))
    assert (int(one.parameters["count"]), int(other.parameters["count"])) == (5, 0)


def test_parameters_can_be_loaded_between_runs() -> None:
    for exe in _ways(_counter()).values():
        exe.load({"count": np.int64(40)})
        assert exe(by=np.int64(2))["now"] == 42
        with pytest.raises(FeedError, match="there is no parameter 'size'"):
            exe.load({"size": np.int64(1)})
        with pytest.raises(FeedError, match="parameter 'count' has element type float64"):
            exe.load({"count": np.float64(1)})


def test_reading_a_parameter_gives_a_copy() -> None:
    exe = engine.compile(_counter(), optimise=0)
    exe.parameters["count"][...] = 7
    assert exe.parameters["count"] == 0


def test_a_parameter_that_nothing_updates_stays() -> None:
    graph = Graph()
    weight = graph.parameter(np.arange(3.0), "weight")
    graph.output(ops.relu(weight * 2.0), "y")
    for exe in _ways(graph).values():
        for _ in range(2):
            assert exe()["y"].tolist() == [0.0, 2.0, 4.0]


def test_an_update_lies_where_its_parameter_lay() -> None:
    plan = engine.make_plan(perceptron(0, 4, Adam()), optimise=0)
    for first, last in plan.lowered.parameters.items():
        assert plan.places[first].layout.offset == plan.places[last].layout.offset


def test_the_judge_refuses_an_update_elsewhere() -> None:
    plan = engine.make_plan(_counter(), optimise=0)
    ((_, last),) = ((a, b) for a, b in plan.lowered.parameters.items())
    moved = list(plan.places)
    layout = moved[last].layout
    moved[last] = evolve(moved[last], layout=evolve(layout, offset=layout.offset + 64))
    with pytest.raises(DataFlowError):
        check_data_flow(evolve(plan, places=tuple(moved)))


def test_a_parameter_is_not_read_after_it_was_assigned() -> None:
    graph = Graph()
    weight = graph.parameter(np.zeros(3), "weight")
    after = graph.assign(weight, weight + 1.0)
    with pytest.raises(GraphError, match="parameter 'weight' was assigned; what it holds now is 'add_0'"):
        ops.relu(weight)
    with pytest.raises(GraphError, match="was assigned"):
        graph.assign(weight, after)


def test_a_view_of_the_old_value_that_is_read_later_is_named() -> None:
    graph = Graph()
    weight = graph.parameter(np.zeros((2, 3)), "weight")
    turned = ops.transpose(weight)
    graph.assign(weight, weight + 1.0)
    graph.output(ops.relu(turned), "y")
    with pytest.raises(GraphError, match="updates parameter 'weight' in place, but relu_0 reads its old value"):
        engine.compile(graph, optimise=0)


def test_an_update_that_reads_a_view_of_its_parameter_goes_through_a_copy() -> None:
    graph = Graph()
    weight = graph.parameter(np.arange(4.0).reshape(2, 2), "weight")
    graph.assign(weight, weight - ops.transpose(weight))
    graph.output(ops.reduce_sum(graph.updates[weight], None), "y")
    for exe in _ways(graph).values():
        exe()
        assert exe.parameters["weight"].tolist() == [[0.0, -1.0], [1.0, 0.0]]


def test_a_parameter_may_be_assigned_a_view_of_itself() -> None:
    for view, wanted in ((ops.identity, [[0.0, 1.0], [2.0, 3.0]]), (ops.transpose, [[0.0, 2.0], [1.0, 3.0]])):
        graph = Graph()
        weight = graph.parameter(np.arange(4.0).reshape(2, 2), "weight")
        graph.output(ops.relu(graph.assign(weight, view(weight))), "y")
        for exe in _ways(graph).values():
            assert exe()["y"].tolist() == exe.parameters["weight"].tolist() == wanted


def test_one_value_may_be_assigned_to_two_parameters_and_a_parameter_to_itself() -> None:
    graph = Graph()
    one, two = graph.parameter(np.ones(3), "one"), graph.parameter(np.ones(3), "two")
    three = graph.parameter(np.full(3, 3.0), "three")
    total = one + two
    graph.assign(one, total)
    graph.assign(two, total)
    graph.assign(three, three)
    graph.output(graph.input("x", ()), "x")
    for exe in _ways(graph).values():
        exe(x=np.float32(0))
        assert [a.tolist() for a in exe.parameters.values()] == [[2.0] * 3, [2.0] * 3, [3.0] * 3]


def test_an_update_that_reads_its_parameter_where_it_may_not_be_overwritten_is_assigned() -> None:
    graph = Graph()
    weight = graph.parameter(np.array([-2.0, 3.0]), "weight")
    graph.output(graph.assign(weight, ops.prelu(weight, weight)), "y")
    for exe in _ways(graph).values():
        assert exe()["y"].tolist() == exe.parameters["weight"].tolist() == [4.0, 3.0]


def test_two_parameters_change_places() -> None:
    graph = Graph()
    one, two = graph.parameter(np.zeros(3), "one"), graph.parameter(np.ones(3), "two")
    first, second = one * 1.0, two * 1.0
    graph.assign(one, second)
    graph.assign(two, first)
    graph.output(graph.input("x", ()), "x")
    for exe in _ways(graph).values():
        exe(x=np.float32(0))
        assert (exe.parameters["one"].tolist(), exe.parameters["two"].tolist()) == ([1.0] * 3, [0.0] * 3)


def test_assign_refuses_values_that_do_not_fit_a_parameter() -> None:
    graph = Graph("g")
    weight, x = graph.parameter(np.zeros(3), "weight"), graph.input("x", (2,), "float64")
    with pytest.raises(GraphError, match=r"'weight' is float64\[3\]"):
        graph.assign(weight, x)
    with pytest.raises(GraphError, match="not a parameter of graph 'g'"):
        graph.assign(x, x)
    with pytest.raises(GraphError, match="two tensors named 'weight'"):
        graph.parameter(np.zeros(1), "weight")


def test_a_graph_of_open_lengths_keeps_its_parameters_when_it_is_bound() -> None:
    graph = Graph()
    x = graph.input("x", ("n",), "float64")
    total = graph.parameter(np.zeros(()), "total")
    graph.output(graph.assign(total, total + ops.reduce_sum(x, None, keepdims=False)), "now")
    with pytest.raises(GraphError, match="bind"):
        engine.compile(graph, optimise=0)
    exe = engine.compile(engine.bind(graph, {"n": 2}), optimise=0)
    assert [float(exe(x=np.ones(2))["now"]) for _ in range(2)] == [2.0, 4.0]


@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_an_optimiser_takes_the_steps_of_its_paper(optimiser: SGD | Adam) -> None:
    graph, feeds = perceptron(0, 4, optimiser), perceptron_feeds(4)
    exe = engine.compile(graph, optimise=0)
    held = {v.name: p.initial.copy() for v, p in graph.parameters.items() if p.trainable}
    states = {name: [np.zeros_like(a), np.zeros_like(a)] for name, a in held.items()}
    for step in range(1, 21):
        loss, gradients = perceptron_gradients(held, feeds)
        for name, gradient in gradients.items():
            held[name] -= stepped(optimiser, step, held[name], gradient, states[name])
        np.testing.assert_allclose(exe.run(feeds)["loss"], loss, rtol=1e-9)
    for name, array in held.items():
        np.testing.assert_allclose(exe.parameters[name], array, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
@given(st.integers(1, 70), st.sampled_from(OPTIMISERS), st.sampled_from(["float32", "float64"]))
@settings(max_examples=12)
def test_steps_are_equal_to_the_bit_in_every_mode(width: int, optimiser: SGD | Adam, dtype: str) -> None:
    ways = _ways(perceptron(width, width, optimiser, dtype))
    feeds = perceptron_feeds(width, dtype)
    for _ in range(3):
        losses = {name: exe.run(feeds)["loss"].tobytes() for name, exe in ways.items()}
        assert len(set(losses.values())) == 1, losses
    held = {name: [a.tobytes() for a in exe.parameters.values()] for name, exe in ways.items()}
    assert all(h == held["static"] for h in held.values())


def test_a_training_step_allocates_no_array() -> None:
    exe, feeds = engine.compile(perceptron(0, 64, Adam()), optimise=0), perceptron_feeds(64)
    out = {"loss": np.empty(())}
    assert scratch_bytes(lambda: exe.run(feeds, out=out)) < 64 * 64 * 8


def test_the_rate_can_be_changed_between_two_steps() -> None:
    exe, feeds = engine.compile(perceptron(0, 4, SGD(0.1)), optimise=0), perceptron_feeds(4)
    exe.load({"learning_rate": np.float64(0)})
    before = exe.parameters["first"]
    exe.run(feeds)
    assert np.array_equal(exe.parameters["first"], before)


def test_gradients_die_as_soon_as_they_have_been_used() -> None:
    """Forty layers of one width: not all forty gradients are alive at once."""
    graph = Graph()
    x = graph.input("x", (1, 64))
    for i in range(40):
        x = ops.relu(x @ graph.parameter(np.full((64, 64), 1 / 64, np.float32), f"w{i}"))
    step = engine.train_step(graph, ops.reduce_sum(x, None, keepdims=False), SGD(0.1))
    plan = engine.make_plan(graph, optimise=0)
    weights = sum(p.initial.nbytes for p in graph.parameters.values())
    assert len(step.gradients) == 40
    assert plan.arena_bytes < weights + 3 * 64 * 64 * 4 + 41 * 512


def test_an_optimiser_is_checked() -> None:
    assert SGD(np.float32(0.5)).learning_rate == 0.5  # type: ignore[arg-type]
    for wrong in (
        {"learning_rate": -1.0},
        {"learning_rate": np.inf},
        {"momentum": 2.0},
        {"nesterov": True},
        {"weight_decay": -1.0},
    ):
        with pytest.raises(OptionError):
            SGD(**wrong)
    with pytest.raises(OptionError, match="beta1"):
        Adam(beta1=1.5)
    with pytest.raises(GraphError, match="no trainable parameter"):
        graph = Graph()
        engine.train_step(graph, graph.input("x", ()), SGD())


def test_a_failed_training_step_leaves_the_graph_as_it_was() -> None:
    graph = Graph()
    x = graph.input("x", ())
    weight, idle = graph.parameter(np.float32(1), "weight"), graph.parameter(np.float32(1), "idle")
    loss = x * weight
    before = graph.text()
    with pytest.raises(GraphError, match="idle"):
        engine.train_step(graph, loss, Adam())
    with pytest.raises(OptionError, match="'adam' is no optimiser"):
        engine.train_step(graph, loss, "adam")  # type: ignore[arg-type]
    assert graph.text() == before
    engine.train_step(graph, loss, Adam(), [weight])
    assert idle not in graph.updates


def test_training_leaves_names_that_are_taken_alone() -> None:
    graph = Graph()
    step, x = graph.parameter(np.zeros((), np.int64), "step"), graph.input("learning_rate", ())
    weight = graph.parameter(np.float32(1), "weight")
    engine.train_step(graph, x * weight, Adam())
    graph.assign(step, step + 1)
    assert {"learning_rate_0", "step_0"} <= engine.compile(graph, optimise=0).parameters.keys()


def test_parameters_of_two_element_types_share_one_rate() -> None:
    graph = Graph()
    x = graph.input("x", (), "float64")
    single, double = graph.parameter(np.float32(1), "single"), graph.parameter(np.float64(1), "double")
    engine.train_step(graph, x * double * ops.cast(single, "float64"), Adam(0.1))
    exe = engine.compile(graph, optimise=0)
    exe(x=np.float64(1))
    assert (round(float(exe.parameters["single"]), 4), round(float(exe.parameters["double"]), 4)) == (0.9, 0.9)
    exe.load({"learning_rate": 0.0})
    held = exe.parameters
    exe(x=np.float64(1))
    assert (held["single"], held["double"]) == (exe.parameters["single"], exe.parameters["double"])


def test_a_parameter_without_influence_is_named() -> None:
    graph = Graph()
    x = graph.input("x", ())
    graph.parameter(np.zeros(()), "idle")
    used = graph.parameter(np.zeros((), np.float32), "used")
    with pytest.raises(GraphError, match="'idle'"):
        engine.train_step(graph, x * used, SGD())


def test_the_steps_are_operators_that_run_alone() -> None:
    (moved,) = evaluate(SGD_STEP, np.ones(3), np.full(3, 0.5), np.array(0.1))
    assert moved.tolist() == [0.95] * 3
