"""Plans that fit only if tensors change their memory, or are computed again: same bits, and honest refusals."""

import pickle
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Executable, Graph
from engine.text.errors import BudgetError, UndecidedError
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.graphs.waiting import drawn_cheap, drawn_waiting

PLAIN: dict[str, Any] = {"optimise": 0, "nodes": 50}
TWO: dict[str, Any] = {**PLAIN, "memories": ["fast=3328,10GB/s", "slow=2304,1GB/s"]}


def phases() -> Graph:
    """Returns a graph in which "a" waits where a large input leaves room first, and must then make room for another."""
    graph = Graph("phases")
    a, b, c = (graph.input(name, shape) for name, shape in (("a", (16, 16)), ("b", (16, 16)), ("c", (48, 16))))
    d = ops.tanh(ops.expand(ops.reduce_sum(c) + ops.reduce_sum(b), (32, 16)))
    graph.output(ops.reduce_sum(d * ops.sigmoid(d)) + ops.reduce_sum(d), "y")
    graph.output(ops.tanh(a), "z")
    return graph


def assert_runs_right(graph: Graph, **options: Any) -> None:
    """Checks that runs of a plan, and of the same plan when it was saved, have the bits of an unplanned run."""
    exe, feeds = engine.compile(graph, debug="poison", **options), random_feeds(graph)
    followed: Executable = pickle.loads(pickle.dumps(exe))
    assert followed.plan.is_followed and followed.plan.moved == exe.plan.moved
    for each in (exe, followed):
        assert_same(each.run(feeds), run_unplanned(graph, feeds))


def test_a_tensor_leaves_in_between_where_nothing_fits_otherwise() -> None:
    plan = engine.make_plan(phases(), **TWO)
    (transfers,) = plan.report().transfers
    assert [(move.tensor, move.leaves, move.enters) for move in transfers.moves] == [("a", "slow", "fast")]
    assert transfers.unmoved_seconds == 0
    assert "1 move between memories, 1.00 KiB; without: finds no place for everything" in str(plan.report())
    assert_runs_right(phases(), **TWO)


@pytest.mark.parametrize("place", [{"c": "fast"}, {"tanh_0": "slow"}, {"b": "!fast", "tanh_0": "!slow"}], ids=str)
def test_others_leave_where_rules_say_what_lies_in_a_memory(place: dict[str, str]) -> None:
    (transfers,) = engine.make_plan(phases(), **TWO, place=place).report().transfers
    assert [move.tensor for move in transfers.moves] == ["a"]
    assert_runs_right(phases(), **TWO, place=place)


@pytest.mark.parametrize(
    ("seed", "fast", "slow"), [(23, 2624, 3008), (58, 2560, 4672), (69, 3648, 4032), (90, 2176, 4032)]
)
def test_drawn_networks_run_right_in_memories_that_are_too_small_without(seed: int, fast: int, slow: int) -> None:
    graph = drawn_cheap(seed) if seed % 2 else drawn_waiting(seed)
    options = {**PLAIN, "memories": [f"fast={fast},10GB/s", f"slow={slow},0.5GB/s"]}
    (transfers,) = engine.make_plan(graph, **options).report().transfers
    assert (transfers.moves or transfers.recomputed) and transfers.unmoved_seconds == 0
    assert_runs_right(graph, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reuse": False}, "without copies between them, which is proved, and no plan with copies was found: "),
        ({"place": {"a": "fast"}}, "without copies between them, which is proved, and no plan with copies was found: "),
        ({"memories": ["fast=3008,10GB/s", "slow=2304,1GB/s"]}, "'phases', which is proved: no memory can hold c "),
    ],
    ids=str,
)
def test_what_was_found_in_no_way_says_what_is_proved(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        engine.make_plan(phases(), **{**TWO, **options})


def test_nothing_is_tried_where_weights_alone_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph("weights")
    y = graph.input("x", (16, 16))
    for number in range(4):
        y = ops.tanh(y @ graph.constant(np.full((16, 16), number, np.float32), f"w{number}"))
    graph.output(y, "y")
    monkeypatch.setattr("engine.planning.memories.moving.find_routes", None)
    with pytest.raises((BudgetError, UndecidedError)):
        engine.make_plan(graph, **{**PLAIN, "memories": ["fast=2KiB,1GB/s", "slow=2560,1GB/s"]})
