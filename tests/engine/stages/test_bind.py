"""A graph with names, given numbers: the graph that was built with these numbers, and the outputs that it has."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.stages.cache import CacheStatistics
from engine.text.errors import EngineError, FeedError, GraphError, OptionError
from ops.tensor.errors import OpError, ShapeError
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import Choose, seeded
from tests.helpers.graphs.staged_executors import staged
from tests.helpers.graphs.symbolic_graphs import LENGTHS, NAMES, build, feeds_of, symbolic
from tests.helpers.graphs.unplanned_run import assert_same, run_unplanned

SEEDS = st.integers(0, 10**6)


def lines(graph: Graph) -> list[str]:
    """Returns the graph's text but for its name, and for constants, which are listed when they are used first."""
    return sorted(line for line in graph.text().splitlines()[1:] if not line.startswith(("  constant", "  derived")))


def concrete(choose: Choose, lengths: Mapping[str, int]) -> Graph | str:
    """Returns the graph that is built with numbers, or why there is none."""
    try:
        return build(choose, lengths)
    except OpError as error:
        return str(error)


def check(seed: int, lengths: Mapping[str, int], graph: Graph, exe: engine.Executable) -> None:
    wanted = concrete(seeded(seed), lengths)
    if isinstance(wanted, str):
        with pytest.raises(OpError):
            engine.bind(graph, lengths)
        return
    assert lines(engine.bind(graph, lengths)) == lines(wanted)
    feeds = feeds_of(graph, lengths, seed)
    assert_same(exe.run(feeds), engine.compile(wanted, optimise=0).run(feeds))


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.lists(LENGTHS, min_size=1, max_size=2))
def test_a_bound_graph_is_the_one_that_is_built_with_numbers(seed: int, bindings: list[dict[str, int]]) -> None:
    graph = symbolic(seeded(seed))
    exe = engine.compile(graph, optimise=0)
    for lengths in bindings:
        check(seed, lengths, graph, exe)


@pytest.mark.slow
def test_many_bindings_equal_graphs_built_with_numbers() -> None:
    for seed in range(300):
        graph, rng = symbolic(seeded(seed)), np.random.default_rng(seed)
        exe = engine.compile(graph, optimise=0)
        for _ in range(4):
            check(seed, {n: int(rng.integers(1, 8)) for n in NAMES}, graph, exe)


def test_hundreds_of_bindings_of_one_graph_and_repeats_need_no_plan() -> None:
    graph = symbolic(seeded(13), 16)
    exe, rng = engine.compile(graph, plan_cache_size=1000), np.random.default_rng(0)
    chosen = [{n: int(rng.integers(2, 9)) for n in NAMES} for _ in range(30)]
    feeds = [feeds_of(graph, lengths, i) for i, lengths in enumerate(chosen)]
    first = [exe.run(f) for f in feeds]
    before = exe.stage_report().cache
    for one, outputs in zip(feeds, first, strict=True):
        assert_same(exe.run(one), outputs)
    after = exe.stage_report().cache
    assert (after.misses, after.plans) == (before.misses, before.plans)
    assert after.hits == before.hits + len(feeds)


@settings(max_examples=15, deadline=None)
@given(SEEDS, LENGTHS)
def test_every_mode_gives_the_same_bits_as_no_plan(seed: int, lengths: dict[str, int]) -> None:
    graph = symbolic(seeded(seed), 5)
    feeds = feeds_of(graph, lengths, seed)
    try:
        bound = engine.bind(graph, lengths)
    except OpError:
        return
    wanted = engine.compile(graph, mode="dynamic").run(feeds)
    assert_same(engine.compile(graph).run(feeds), wanted)
    assert_same(engine.compile(graph, debug="poison").run(feeds), wanted)
    for name, array in run_unplanned(bound, feeds).items():
        np.testing.assert_allclose(wanted[name], array, rtol=1e-4, atol=1e-4)


def net(shape: tuple[Any, ...] = ("n", 4)) -> Graph:
    """Returns x, and tanh(x) times the sum of its rows."""
    graph = Graph("net")
    x = graph.input("x", shape)
    graph.output(ops.tanh(x) * ops.reduce_sum(x, (0,)), "y")
    return graph


def rows(count: int) -> dict[str, Array]:
    return {"x": np.arange(count * 4, dtype=np.float32).reshape(count, 4) / 10}


def test_the_plan_that_was_not_used_for_longest_goes_first() -> None:
    exe = engine.compile(net(), plan_cache_size=2)
    seen = []
    for length in (1, 2, 1, 3, 1, 2):
        exe.run(rows(length))
        seen.append(exe.stage_report().cache)
    misses = [s.misses for s in seen]
    assert misses == [1, 2, 2, 3, 3, 4]  # 3 took the place of 2
    assert seen[-1] == CacheStatistics(size=2, plans=2, hits=2, misses=4)


def test_cached_stage_runners_go_with_their_plans() -> None:
    exe = engine.compile(net(), plan_cache_size=3)
    for length in range(1, 12):
        exe.run(rows(length))
    assert len(staged(exe)._runners) <= 4


def test_lengths_that_do_not_fit_leave_the_cache_as_it_was() -> None:
    graph = Graph("pairs")
    x = graph.input("x", ("n", 3))
    graph.output(ops.exp(ops.reshape(x, (-1, 6))), "y")
    exe = engine.compile(graph)
    exe.run({"x": np.ones((4, 3), np.float32)})
    with pytest.raises(FeedError, match="n=3 do not fit: reshape"):
        exe.run({"x": np.ones((3, 3), np.float32)})
    assert exe.run({"x": np.ones((2, 3), np.float32)})["y"].shape == (1, 6)
    assert (exe.stage_report().cache.misses, exe.stage_report().cache.plans) == (2, 2)


def test_outputs_are_copies_unless_told() -> None:
    exe = engine.compile(net())
    memory = staged(exe).memory
    one = exe.run(rows(3))["y"]
    kept = one.copy()
    assert not memory.contains(one)
    lent = exe.run(rows(3), copy=False)["y"]
    assert memory.contains(lent)
    exe.run(rows(5))
    assert one.tobytes() == kept.tobytes()


def test_an_output_in_the_arena_may_be_fed_again() -> None:
    exe, fresh, x = engine.compile(net()), engine.compile(net()), rows(6)
    for count in (6, 4, 4, 3, 1):
        lent = exe.run(x, copy=False)["y"][:count]
        x = {"x": lent.copy()}
        wanted = fresh.run(x)
        assert_same(exe.run({"x": lent}), wanted)


def test_outputs_are_written_to_arrays_of_the_caller() -> None:
    exe = engine.compile(net())
    mine = np.empty((3, 4), np.float32)
    assert exe.run(rows(3), out={"y": mine})["y"] is mine
    assert mine.tobytes() == exe.run(rows(3))["y"].tobytes()
    with pytest.raises(FeedError, match=r"out='y' has shape \(3, 4\), but \(2, 4\) is expected"):
        exe.run(rows(2), out={"y": mine})
    lent = exe.run(rows(3), copy=False)["y"]
    with pytest.raises(FeedError, match="lies in the arena"):
        exe.run(rows(3), out={"y": lent})


def test_an_array_of_another_kind_is_refused_by_name() -> None:
    exe = engine.compile(net(("n", "n", 2)))
    with pytest.raises(FeedError, match=r"input 'x' is float32\[3, 2\], but float32\[n,n,2\] is expected"):
        exe.run({"x": np.ones((3, 2), np.float32)})
    with pytest.raises(FeedError, match="float64"):
        exe.run({"x": np.ones((3, 3, 2))})
    with pytest.raises(FeedError, match=r"shape \(3, 4, 2\), but \(3, 3, 2\) is expected with n=3"):
        exe.run({"x": np.ones((3, 4, 2), np.float32)})
    with pytest.raises(FeedError, match="'x' is missing"):
        exe.run({})


def test_two_inputs_with_one_name_have_one_length() -> None:
    graph = Graph("two")
    x, y = graph.input("x", ("n", 2)), graph.input("y", ("n", 2))
    graph.output(x + y, "z")
    exe = engine.compile(graph)
    with pytest.raises(FeedError, match=r"input 'y' has shape \(4, 2\), but \(3, 2\) is expected with n=3"):
        exe.run({"x": np.ones((3, 2), np.float32), "y": np.ones((4, 2), np.float32)})


def test_an_input_may_have_arithmetic_on_a_name() -> None:
    graph = Graph("twice")
    n = graph.dim("n")
    x, y = graph.input("x", ("n", 2)), graph.input("y", (n * 2 + 1, 2))
    graph.output(ops.concat([x, y]), "z")
    exe = engine.compile(graph)
    z = exe.run({"x": np.ones((3, 2), np.float32), "y": np.zeros((7, 2), np.float32)})["z"]
    assert z.shape == (10, 2) and z.sum() == 6
    with pytest.raises(FeedError, match=r"\(8, 2\), but \(7, 2\) is expected"):
        exe.run({"x": np.ones((3, 2), np.float32), "y": np.zeros((8, 2), np.float32)})


def test_a_name_that_no_input_has_alone_cannot_be_told() -> None:
    graph = Graph("alone")
    graph.output(ops.exp(graph.input("y", (graph.dim("n") * 2, 2))), "z")
    with pytest.raises(FeedError, match="no input has a dimension that is just 'n'"):
        engine.compile(graph).run({"y": np.zeros((8, 2), np.float32)})


def test_a_decision_that_was_made_for_names_is_kept_or_refused() -> None:
    graph = Graph("decides")
    x = graph.input("x", ("n", 4))
    y = ops.relu(x) if x.shape[0] > 1 else ops.exp(x)
    graph.output(y + (1.0 if x.shape[0] == 5 else 2.0), "y")
    exe = engine.compile(graph)
    assert exe.run(rows(3))["y"].tobytes() == (rows(3)["x"] + 2).tobytes()
    for length, message in ((1, "n must be greater than 1, but n is 1"), (5, "n must differ from 5, but n is 5")):
        with pytest.raises(FeedError, match=message):
            exe.run(rows(length))
        with pytest.raises(ShapeError, match=message):
            engine.bind(graph, {"n": length})


def test_bind_wants_all_names_and_no_others() -> None:
    graph = net()
    with pytest.raises(GraphError, match="needs a length for 'n'"):
        engine.bind(graph, {})
    with pytest.raises(GraphError, match="has no dimension 'm'; it has: n"):
        engine.bind(graph, {"n": 1, "m": 2})
    for length in (-1, 1.5, True, "3"):
        wrong: Any = {"n": length}
        with pytest.raises(GraphError, match="is no length"):
            engine.bind(graph, wrong)


def test_bind_shares_weights() -> None:
    graph = Graph("weights")
    weight = np.ones((4, 4), np.float32)
    graph.output(graph.input("x", ("n", 4)) @ weight, "y")
    (held,) = graph.constants.values()
    assert [a is held for a in engine.bind(graph, {"n": 3}).constants.values()] == [True]


def test_names_of_dimensions_are_identifiers() -> None:
    for name in ("a b", "", "2n", "a+b"):
        with pytest.raises(GraphError, match="is not a name for a dimension"):
            Graph().input("x", (name, 2))


def test_options_that_need_numbers_are_refused() -> None:
    for options in ({"parallel": "exact"}, {"caller_buffers": ("x",)}):
        some: Any = options
        with pytest.raises(OptionError, match="needs sizes that are known"):
            engine.compile(net(), **some)
    for cache in (0, -1, True, 2.0):
        wrong: Any = cache
        with pytest.raises(OptionError, match="is no number of plans"):
            engine.compile(net(), plan_cache_size=wrong)
    with pytest.raises(GraphError, match="has no plan before lengths are given for: n"):
        engine.make_plan(net())


def test_reports_of_open_lengths_are_refused_before_the_first_run() -> None:
    exe = engine.compile(net())
    assert exe.stages == () and exe.arena_bytes == 0
    with pytest.raises(EngineError, match="nothing has run yet"):
        _ = exe.plan
    with pytest.raises(EngineError, match="nothing has run yet"):
        exe.stage_report()
    exe.run(rows(3))
    assert exe.plan.arena_bytes == engine.make_plan(net((3, 4))).arena_bytes


def test_outputs_in_the_arena_may_be_fed_crosswise() -> None:
    """Copying one of them into its place would overwrite the other before that is read."""
    graph = Graph("crosswise")
    x, y = graph.input("x", ("n", 4)), graph.input("y", ("n", 4))
    graph.output(y + 1.0, "x")
    graph.output(x * 2.0, "y")
    exe = engine.compile(graph)
    fed = {"x": rows(3)["x"], "y": rows(3)["x"] + 50}
    wanted = {n: a.copy() for n, a in fed.items()}
    for _ in range(4):
        lent = exe.run(fed, copy=False)
        wanted = {"x": wanted["y"] + 1, "y": wanted["x"] * 2}
        for name, array in wanted.items():
            np.testing.assert_array_equal(lent[name], array)
        fed = dict(lent)  # "x" lies where "y" was fed


def test_a_number_that_all_lengths_seemed_to_give_is_true_or_refused() -> None:
    graph = Graph("claim")
    x = graph.input("x", ("n", 4))
    first = ops.slice(x, [0], [1], [0])
    assert first.shape == (1, 4)  # which others may rely on
    graph.output(ops.exp(first), "y")
    assert engine.bind(graph, {"n": 1}).outputs["y"].shape == (1, 4)
    with pytest.raises(
        ShapeError, match=r"axis 0 of its output .* is 0 with these lengths, and was 1 with all lengths that were"
    ):
        engine.bind(graph, {"n": 0})


def test_a_decision_behind_the_last_operator_is_watched_too() -> None:
    graph = Graph("last")
    x = graph.input("x", ("n", 4))
    one, other = ops.exp(x), ops.relu(x)
    graph.output(one if x.shape[0] > 3 else other, "y")
    assert engine.bind(graph, {"n": 4})
    with pytest.raises(ShapeError, match="n must be greater than 3, but n is 2"):
        engine.bind(graph, {"n": 2})
