"""Inputs that the caller gives away: what is computed in their bytes, and what is refused."""

import pickle
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.check import check_data_flow
from engine.lower.calls import Storage
from engine.text.errors import DataFlowError, FeedError, OptionError
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import graphs
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

ROWS = np.linspace(-1, 1, 64 * 16, dtype=np.float32).reshape(64, 16)


def _chain() -> Graph:
    """Returns x -> relu -> tanh -> y, each of which may overwrite what it reads."""
    graph = Graph("chain")
    graph.output(ops.tanh(ops.relu(graph.input("x", ROWS.shape))), "y")
    return graph


def _expected() -> Array:
    """Returns y of the chain, computed from an input of the arena."""
    return engine.compile(_chain(), optimise=0).run({"x": ROWS})["y"]


def _donating(graph: Graph, **options: Any) -> engine.Executable:
    return engine.compile(graph, caller_buffers=("x",), donated=("x",), optimise=0, **options)


@settings(max_examples=40)
@given(graphs(), st.integers(0, 7), st.sampled_from(["", "poison"]), st.booleans())
def test_random_graphs_give_the_same_bits_in_the_bytes_of_their_inputs(
    graph: Graph, which: int, debug: str, nest: bool
) -> None:
    donated = tuple(n for i, n in enumerate(graph.inputs) if which >> i & 1)
    feeds = random_feeds(graph)
    wanted = run_unplanned(graph, feeds)
    exe = engine.compile(graph, caller_buffers=donated, donated=donated, optimise=0, debug=debug, nest=nest)
    arrays = {name: array.copy() for name, array in feeds.items()}
    assert_same(exe.run(arrays), wanted)
    assert_same(arrays, feeds)
    assert_same(exe.run(arrays, donate=bool(donated)), wanted)
    assert_same({n: a for n, a in arrays.items() if n not in donated}, {n: feeds[n] for n in feeds if n not in donated})


def test_a_chain_needs_no_arena_at_all() -> None:
    exe, x = _donating(_chain()), ROWS.copy()
    assert (exe.arena_bytes, engine.make_plan(_chain(), caller_buffers=("x",)).arena_bytes) == (0, ROWS.nbytes)
    (y,) = exe.run({"x": x}, copy=False, donate=True).values()
    assert np.shares_memory(x, y) and np.array_equal(y, _expected())
    assert "2 outputs are computed in place" in exe.report().text()


def test_only_a_run_that_says_so_overwrites() -> None:
    exe, x = _donating(_chain()), ROWS.copy()
    wanted = exe.run({"x": x})["y"]
    assert np.array_equal(x, ROWS)
    assert np.array_equal(exe.timed({"x": x}, donate=True)[0]["y"], wanted)
    assert np.array_equal(x, wanted)


@pytest.mark.parametrize("options", [{"overwrite": False}, {"reuse": False}])
def test_plans_that_overwrite_nothing_leave_the_input_alone(options: dict[str, Any]) -> None:
    exe, x = _donating(_chain(), **options), ROWS.copy()
    exe.run({"x": x}, donate=True)
    assert np.array_equal(x, ROWS)


def test_a_dynamic_run_leaves_the_input_alone() -> None:
    exe, x = _donating(_chain(), mode="dynamic"), ROWS.copy()
    assert np.array_equal(exe.run({"x": x}, donate=True)["y"], _expected())
    assert np.array_equal(x, ROWS)


def _kept(case: str) -> Graph:
    graph = Graph(case)
    x = graph.input("x", ROWS.shape)
    y = ops.relu(x)
    if case == "is read later":
        y = ops.tanh(y) + x
        return _with_output(graph, y)
    if case == "is an output":
        graph.output(x, "x")
    if case == "is too small":
        y = ops.add(x, np.ones((3, 1, 1), np.float32))
    if case == "has smaller elements":
        y = ops.cast(x, np.float64)
    return _with_output(graph, y)


def _with_output(graph: Graph, y: Any) -> Graph:
    graph.output(y, "y")
    return graph


@pytest.mark.parametrize("case", ["is an output", "is too small", "has smaller elements"])
def test_an_input_stays_where_nothing_may_be_written_over_it(case: str) -> None:
    exe, x = _donating(_kept(case)), ROWS.copy()
    exe.run({"x": x}, donate=True)
    assert np.array_equal(x, ROWS)


def test_the_last_reader_overwrites_and_no_earlier_one() -> None:
    plan = engine.make_plan(_kept("is read later"), caller_buffers=("x",), donated=("x",), optimise=0)
    storages = {v.name: v.storage for v in plan.lowered.values if v.role.value in ("activation", "output")}
    assert list(storages.values()) == [Storage.ARENA, Storage.ARENA, Storage.CALLER]


def test_the_judge_finds_a_value_written_over_an_input_that_is_read_later() -> None:
    plan = engine.make_plan(_kept("is read later"), caller_buffers=("x",), donated=("x",), optimise=0)
    x, first = plan.lowered.inputs["x"], plan.lowered.calls[0].outputs[0]
    place = evolve(plan.places[first], storage=Storage.CALLER, owner=x, layout=plan.places[x].layout)
    places = tuple(place if i == first else p for i, p in enumerate(plan.places))
    with pytest.raises(DataFlowError, match="reads 'x', but byte 0 of its place holds"):
        check_data_flow(evolve(plan, places=places))


def test_a_plan_with_donated_inputs_is_pickled_and_followed() -> None:
    exe = _donating(_chain())
    copied = pickle.loads(pickle.dumps(exe))
    x = ROWS.copy()
    assert copied.plan.is_followed and copied.arena_bytes == 0
    assert np.array_equal(copied.run({"x": x}, donate=True)["y"], x)


def _sum() -> Graph:
    graph = Graph("sum")
    x, w = graph.input("x", ROWS.shape), graph.input("w", ROWS.shape)
    graph.output(ops.relu(x) + w, "y")
    return graph


def _read_only() -> Array:
    array = ROWS.copy()
    array.flags.writeable = False
    return array


def test_arrays_that_must_not_be_overwritten_are_refused() -> None:
    with pytest.raises(FeedError, match="input 'x' is donated and read-only"):
        _donating(_chain()).run({"x": _read_only()}, donate=True)
    exe = engine.compile(_sum(), caller_buffers=("x", "w"), donated=("x",))
    x = ROWS.copy()
    with pytest.raises(FeedError, match="input 'x' is donated and shares bytes with input 'w'"):
        exe.run({"x": x, "w": x}, donate=True)
    assert np.array_equal(exe.run({"x": x, "w": x})["y"], np.maximum(ROWS, 0) + ROWS)
    assert np.array_equal(x, ROWS)
    with pytest.raises(FeedError, match="out='y' shares bytes with 'x'"):
        exe.run({"x": x, "w": ROWS}, out={"y": x}, donate=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"donated": ("x",)}, "'x', which is not in caller_buffers"),
        ({"donated": "x", "caller_buffers": ("x",)}, "donated must be a tuple of names"),
        ({"donated": ("y",), "caller_buffers": ("y",)}, "has no input 'y' to donate"),
        ({"donated": ("x",), "caller_buffers": ("x",), "parallel": "exact"}, "runs operators at once"),
    ],
)
def test_wrong_names_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        engine.compile(_chain(), **options)


def test_donating_to_a_run_that_takes_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="no input of 'chain' is donated"):
        engine.compile(_chain()).run({"x": ROWS}, donate=True)
    with pytest.raises(OptionError, match="donate 1 is neither True nor False"):
        _donating(_chain()).run({"x": ROWS}, donate=1)  # type: ignore[arg-type]
