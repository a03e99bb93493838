"""Networks in a row in one arena: the output of one is the input of the next, at the same bytes."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import engine
import ops
from allocator.problem import Status
from engine import ExecutionPlan, Graph, SharedPlan
from engine.check.shared import Link, Member, check_shared
from engine.text.errors import OptionError, SharingError
from tests.helpers.graphs.training_graphs import chain

Row = tuple[ExecutionPlan, str, ExecutionPlan, str]


def _net(name: str, inputs: Sequence[int], outputs: Sequence[int], draw: random.Random, depth: int = 4) -> Graph:
    """Returns a network with inputs x0, x1, ... and outputs y0, y1, ... of so many numbers."""
    graph = Graph(name)
    read = [graph.input(f"x{i}", (size,)) for i, size in enumerate(inputs)]
    whole = ops.concat(read, axis=0) if len(read) > 1 else read[0]
    for _ in range(depth):
        size = draw.choice((16, 64, 300))
        weights = np.sin(np.arange(whole.shape[0] * size, dtype=np.float32)).reshape(-1, size)
        whole = ops.tanh(ops.reshape(ops.reshape(whole, (1, -1)) @ weights, (-1,)))
    for i, size in enumerate(outputs):
        weights = np.cos(np.arange(whole.shape[0] * size, dtype=np.float32)).reshape(-1, size)
        graph.output(ops.reshape(ops.reshape(whole, (1, -1)) @ weights, (-1,)), f"y{i}")
    return graph


def _plans(seed: int, **options: Any) -> tuple[list[ExecutionPlan], list[Row]]:
    """Returns four networks, and a pipeline of three: the first, the left and the last one."""
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 200) for _ in range(4)]
    nets = [
        _net("first", [draw.randrange(1, 100)], sizes[:2], draw),
        _net("left", [sizes[0]], [sizes[2]], draw),
        _net("right", [sizes[1], 7], [sizes[3]], draw),
        _net("last", [sizes[2], 5], [9], draw),
    ]
    plans = [engine.make_plan(net, **options) for net in nets]
    first, left, _, last = plans
    return plans, [(first, "y0", left, "x0"), (left, "y0", last, "x0")]


def test_networks_may_meet_at_several_tensors() -> None:
    draw = random.Random(0)
    for seed in range(6):
        sizes = [draw.randrange(1, 200) for _ in range(3)]
        nets = _net("giver", [9], sizes, draw), _net("taker", [*sizes, 50], [5], draw)
        giver, taker = (engine.make_plan(net) for net in nets)
        links = [(giver, f"y{i}", taker, f"x{i}") for i in range(3)]
        first, second = engine.share(giver, taker, pipeline=links).executables()
        fed = {"x0": np.full(9, seed, np.float32)}
        views = first.run(fed, copy=False)
        held = {f"x{i}": views[f"y{i}"] for i in range(3)} | {"x3": np.ones(50, np.float32)}
        wanted = {name: array.copy() for name, array in held.items()}
        assert _bits(second.run(held)) == _bits(taker.executable().run(wanted))


def _at(shared: SharedPlan, number: int, name: str) -> int:
    model = shared.models[number]
    lowered = model.plan.lowered
    value = {**lowered.inputs, **lowered.outputs}[name]
    return model.first + model.plan.places[value].layout.extent[0]


@pytest.mark.parametrize("options", [{}, {"alignment": 16}, {"optimise": 0, "reuse": False}], ids=str)
@pytest.mark.parametrize("debug", ["", "poison"])
def test_a_pipeline_copies_nothing_and_gives_the_bits_of_separate_runs(debug: str, options: dict[str, Any]) -> None:
    for seed in range(1 if debug else 4):
        plans, pipeline = _plans(seed, **options)
        shared = engine.share(*plans, pipeline=pipeline)
        assert shared.lower_bound <= shared.arena_bytes
        for link in shared.pipeline:
            assert _at(shared, link.giver, link.output) == _at(shared, link.taker, link.input)
        together, alone = shared.executables(debug=debug), [plan.executable() for plan in plans]
        x = np.arange(plans[0].graph.inputs["x0"].spec.shape[0], dtype=np.float32)
        held = {"x0": x}
        wanted = {"x0": x}
        for number in (0, 1, 3):
            others = {n: np.ones(v.spec.shape, np.float32) for n, v in plans[number].graph.inputs.items() if n != "x0"}
            wanted = {"x0": alone[number].run({**wanted, **others})["y0"]}
            held = {"x0": together[number].run({**held, **others}, copy=False)["y0"]}
            assert held["x0"].tobytes() == wanted["x0"].tobytes(), (seed, number)


def test_a_feed_in_place_is_not_copied() -> None:
    """A run of the second network reads what stands in the arena, also where that was written by hand."""
    plans, pipeline = _plans(0)
    first, second, *_ = engine.share(*plans, pipeline=pipeline).executables()
    view = first.run({"x0": np.zeros(plans[0].graph.inputs["x0"].spec.shape, np.float32)}, copy=False)["y0"]
    view[...] = 3
    assert _bits(second.run({"x0": view})) == _bits(plans[1].executable().run({"x0": np.full_like(view, 3)}))


def _bits(arrays: dict[str, Any]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


def test_the_arena_of_a_pipeline_is_that_of_the_largest_network() -> None:
    """The addresses of one network give way to those of the other, whichever costs less."""
    for seed in range(6):
        plans, pipeline = _plans(seed)
        shared = engine.share(*plans, pipeline=pipeline)
        assert shared.arena_bytes == max(plan.arena_bytes for plan in plans), seed
        assert shared.status is Status.OPTIMAL


def test_state_of_a_network_in_a_pipeline_survives() -> None:
    draw = random.Random(3)
    features = engine.make_plan(_net("features", [20], [32], draw))
    net = Graph("trained")
    x, w = net.input("x", (1, 32)), net.parameter(np.eye(32, dtype=np.float32), "w")
    loss = ops.reduce_mean(x @ w * (x @ w), axes=None, keepdims=False)
    engine.train_step(net, loss, engine.SGD(0.1))
    flat = Graph("flat")
    flat.output(ops.reshape(flat.input("x", (32,)), (1, 32)) * 2, "y")
    trained, reshaped = engine.make_plan(net), engine.make_plan(flat)
    rows = [(features, "y0", reshaped, "x"), (reshaped, "y", trained, "x")]
    beside = engine.make_plan(chain(2, 8, 4))
    shared = engine.share(features, reshaped, trained, beside, pipeline=rows, concurrent=[(beside, trained)])
    exes, alone = shared.executables(), [plan.executable() for plan in (features, reshaped, trained)]
    for turn in range(5):
        mine = theirs = np.full(20, turn, np.float32)
        for number, (read, taken) in enumerate((("x0", "y0"), ("x", "y"))):
            mine = exes[number].run({read: mine}, copy=False)[taken]
            theirs = alone[number].run({read: theirs})[taken]
        assert _bits(exes[2].run({"x": mine})) == _bits(alone[2].run({"x": theirs}))
        assert _bits(exes[2].parameters) == _bits(alone[2].parameters)


def test_ends_that_do_not_meet_are_found() -> None:
    plans, pipeline = _plans(1)
    shared = engine.share(*plans, pipeline=pipeline)
    members = [Member(m.name, m.plan, m.first) for m in shared.models]
    check_shared(members, (), shared.arena_bytes, shared.pipeline)
    members[1] = evolve(members[1], first=members[1].first + 64)
    with pytest.raises(SharingError, match=r"output 'y0' of 'first' begins at byte \d+, and input 'x0' of 'left'"):
        check_shared(members, (), shared.arena_bytes + 64, shared.pipeline)
    with pytest.raises(SharingError, match="output 'y1' of 'first' begins at"):
        check_shared(members, (), shared.arena_bytes + 64, [Link(0, "y1", 1, "x0")])


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(0, "y9", 1, "x0")], "'first' has no output 'y9'; there are y0, y1"),
        ([(0, "y0", 1, "z")], "'left' has no input 'z'"),
        ([(0, "y1", 1, "x0")], "output 'y1' of 'first' is "),
        ([(0, "y0", 1, "x0")] * 2, "input 'x0' of 'left' stands twice"),
        ([(0, "y0", 0, "x0")], "whose output is its own input"),
        ([(0, "y0", 1, "x0"), (0, "y1", 2, "x0")], "'first' and 'right' stand in it with a third network"),
    ],
)
def test_mistakes_are_one_line(rows: list[tuple[int, str, int, str]], says: str) -> None:
    plans, _ = _plans(2)
    with pytest.raises(OptionError) as caught:
        engine.share(*plans, pipeline=[(plans[i], output, plans[j], taken) for i, output, j, taken in rows])
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_rows_that_are_none_are_refused() -> None:
    plans, _ = _plans(2)
    wrong: list[Any] = [5, None, [5], [(plans[0], "y0", plans[1])], [(plans[0], "y0", "left", "x0")]]
    wrong += [[(plans[0], "y0", plans[1], 3)], [(plans[0], ["y0"], plans[1], "x0")]]
    for pipeline in wrong:
        with pytest.raises(OptionError, match="pipeline takes rows of the networks"):
            engine.share(*plans, pipeline=pipeline)


def test_a_network_in_a_pipeline_runs_behind_the_other() -> None:
    plans, pipeline = _plans(2)
    with pytest.raises(OptionError, match="'first' and 'last' stand in one pipeline"):
        engine.share(*plans, pipeline=pipeline, concurrent=[(plans[0], plans[3])])
    tied = Graph("tied")
    tied.output(tied.constant(np.ones(4, np.float32)), "y")
    taker = Graph("taker")
    taker.output(ops.relu(taker.input("x", (4,))), "y")
    pair = [engine.make_plan(graph) for graph in (tied, taker)]
    with pytest.raises(OptionError, match="output 'y' of 'tied' is no scratch"):
        engine.share(*pair, pipeline=[(pair[0], "y", pair[1], "x")])
