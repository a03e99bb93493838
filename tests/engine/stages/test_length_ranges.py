"""One plan for all lengths up to a bound: right for every smaller one, with no search, no move, no array allocated."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Executable, Graph
from engine.stages.length_ranges import LengthRangePlanner
from engine.text.errors import BudgetError, EngineError, FeedError, OptionError
from engine.zoo.encoder import EncoderSize, encoder
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.allocations import check_allocates_nothing
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.staged_executors import staged
from tests.helpers.graphs.symbolic_graphs import NAMES, feeds_of, symbolic
from tests.helpers.graphs.unplanned_run import assert_same

LengthRanges = dict[str, tuple[int, int]]
SMALL = EncoderSize(layers=2, width=24, heads=3, sequence="seq", batch="batch")


def images() -> Graph:
    """Returns a small net of images."""
    rng, graph = np.random.default_rng(0), Graph("images")
    x = graph.input("x", ("batch", 3, "side", "side"))
    for channels in (8, 12):
        filters = rng.standard_normal((channels, x.shape[1], 3, 3)).astype(np.float32) / 5
        y = ops.relu(ops.conv2d(x, filters, np.zeros(channels, np.float32), pads=1))
        x = ops.max_pool(y, 2, strides=2)
    flat = ops.flatten(ops.global_average_pool(x))
    graph.output(ops.softmax(flat @ rng.standard_normal((12, 10)).astype(np.float32)), "y")
    graph.output(x, "features")
    return graph


def planner(exe: Executable) -> LengthRangePlanner:
    planned_first = staged(exe).plan_first
    assert isinstance(planned_first, LengthRangePlanner)
    return planned_first


def feeds(graph: Graph, lengths: dict[str, int], seed: int = 0) -> dict[str, Array]:
    return feeds_of(graph, lengths, seed)


@pytest.mark.parametrize(
    ("graph", "length_ranges"),
    [(images(), {"batch": (1, 3), "side": (4, 12)}), (encoder(SMALL), {"batch": (1, 3), "seq": (1, 9)})],
)
def test_every_smaller_shape_runs_in_the_arena_of_the_greatest(graph: Graph, length_ranges: LengthRanges) -> None:
    exe, exact = engine.compile(graph, length_ranges=length_ranges), engine.compile(graph)
    arena = planner(exe).plan.arena_bytes
    chosen = list(itertools.product(*(range(low, high + 1) for low, high in length_ranges.values())))
    for lengths in (dict(zip(length_ranges, numbers, strict=True)) for numbers in chosen):
        fed = feeds(graph, lengths)
        outputs, wanted = exe.run(fed), exact.run(fed)
        for name, array in wanted.items():
            np.testing.assert_allclose(outputs[name], array, rtol=2e-6, atol=2e-6)
        assert exe.plan.arena_bytes == arena == exe.arena_bytes
        assert exe.plan.plan is planner(exe).plan.plan  # no length was planned by itself
    assert staged(exe).memory.relocations == 0
    greatest = feeds(graph, {n: high for n, (_, high) in length_ranges.items()})
    assert_same(exe.run(greatest), exact.run(greatest))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.lists(st.tuples(*[st.integers(1, 6)] * 4), min_size=1, max_size=3))
def test_bounded_plans_of_random_graphs_are_right_whether_lengths_fit_or_not(
    seed: int, chosen: list[tuple[int, ...]]
) -> None:
    graph = symbolic(seeded(seed), 6)
    try:
        exe = engine.compile(graph, length_ranges={n: (1, 6) for n in NAMES})
    except OpError:
        return
    exact = engine.compile(graph)
    for numbers in chosen:
        fed = feeds(graph, dict(zip(NAMES, numbers, strict=True)), seed)
        try:
            wanted = exact.run(fed)
        except FeedError:
            with pytest.raises(FeedError):
                exe.run(fed)
            continue
        for name, array in exe.run(fed).items():
            np.testing.assert_allclose(array, wanted[name], rtol=1e-5, atol=1e-5)


def test_a_smaller_shape_allocates_nothing_while_it_runs() -> None:
    graph = images()
    exe = engine.compile(graph, length_ranges={"batch": (1, 4), "side": (4, 32)})
    chosen = [feeds(graph, {"batch": b, "side": s}) for b, s in ((4, 32), (1, 9), (3, 20))]
    outs = [exe.run(x) for x in chosen]

    def run() -> None:
        for x, out in zip(chosen, outs, strict=True):
            exe.run(x, out=out)

    check_allocates_nothing(run)


def test_lengths_out_of_length_ranges_are_refused_and_the_next_run_is_right() -> None:
    graph = images()
    exe = engine.compile(graph, length_ranges={"batch": (2, 3), "side": (4, 8)})
    for lengths, named in (({"batch": 1, "side": 5}, "batch=1"), ({"batch": 2, "side": 9}, "side=9")):
        with pytest.raises(FeedError, match=f"{named} is out of its range"):
            exe.run(feeds(graph, lengths))
    assert exe.run(feeds(graph, {"batch": 2, "side": 8}))["y"].shape == (2, 10)


def test_the_costs_of_a_bounded_plan() -> None:
    exe = engine.compile(images(), length_ranges={"batch": (1, 4), "side": (8, 8)})
    costs = exe.length_range_costs()
    assert [dict(c.lengths) for c in costs] == [{"batch": b, "side": 8} for b in (1, 2, 4)]
    assert [c.bounded_bytes for c in costs] == [planner(exe).plan.arena_bytes] * 3
    assert costs[-1].factor == 1.0 and costs[0].factor > 1.5
    exact = engine.make_plan(engine.bind(images(), {"batch": 2, "side": 8}))
    assert costs[1].exact_bytes == exact.arena_bytes
    with pytest.raises(EngineError, match="was compiled without length_ranges"):
        engine.compile(images()).length_range_costs()


def pairs() -> Graph:
    """Returns a graph whose rows are taken two by two."""
    graph = Graph("pairs")
    x = graph.input("x", ("n", 4))
    graph.output(ops.exp(ops.reshape(x, (x.shape[0] // 2, 8))), "y")
    return graph


@pytest.mark.parametrize(
    ("length_ranges", "counted", "left_out"),
    [((8, 16), [8, 10, 16], 0), ((1, 64), [8, 64], 1), ((3, 4), [4], 1), ((0, 2), [0, 2], 0), ((6, 6), [6], 0)],
)
def test_costs_leave_out_lengths_that_the_graph_does_not_allow(
    length_ranges: tuple[int, int], counted: list[int], left_out: int
) -> None:
    exe = engine.compile(pairs(), length_ranges={"n": length_ranges})
    costs = exe.length_range_costs()
    assert [c.lengths["n"] for c in costs] == counted and costs.left_out == left_out
    for cost in costs:
        assert cost.exact_bytes == engine.make_plan(engine.bind(pairs(), cost.lengths)).arena_bytes


def test_costs_leave_out_what_a_guard_forbids() -> None:
    graph = Graph("guarded")
    x = graph.input("x", ("m", "n"))
    m, n = x.shape
    graph.output(ops.relu(x) if n * m > 30 else ops.exp(x), "y")
    costs = engine.compile(graph, length_ranges={"m": (2, 8), "n": (2, 18)}).length_range_costs()
    allowed = [(m, n) for m, n in itertools.product((2, 4, 8), (2, 6, 18)) if m * n > 30]
    assert [tuple(c.lengths.values()) for c in costs] == allowed and costs.left_out == 9 - len(allowed)


def test_lengths_and_length_ranges_may_be_integers_of_any_kind() -> None:
    for length in (np.int64(4), np.uint8(4), np.asarray(4)):
        assert engine.bind(pairs(), {"n": length}).inputs["x"].shape == (4, 4)
    length_ranges: Any = {"n": (np.int64(2), np.uint8(6))}
    exe = engine.compile(pairs(), length_ranges=length_ranges)
    assert planner(exe).length_ranges == {"n": (2, 6)} and type(planner(exe).length_ranges["n"][0]) is int
    assert exe(x=np.zeros((4, 4), np.float32))["y"].shape == (2, 8)


@pytest.mark.parametrize(
    ("length_ranges", "message"),
    [
        ({"batch": (1, 2)}, "'side' has none"),
        ({"batch": (1, 2), "side": (4, 8), "w": (1, 2)}, "length_ranges has 'w', which is no dimension"),
        ({"batch": (2, 1), "side": (4, 8)}, "the range of 'batch' must be a least and a greatest length"),
        ({"batch": (-1, 1), "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": 4, "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": (1, 2.0), "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": (True, 2), "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": (1, 2, 3), "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": (1, np.float32(2)), "side": (4, 8)}, "the range of 'batch'"),
        ({"batch": (np.True_, 2), "side": (4, 8)}, "the range of 'batch'"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(length_ranges: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        engine.compile(images(), length_ranges=length_ranges)


def test_length_ranges_want_names_and_nothing_that_data_decide() -> None:
    graph = Graph("fixed")
    graph.output(ops.exp(graph.input("x", (2,))), "y")
    with pytest.raises(OptionError, match="has no dimension that is a name"):
        engine.compile(graph, length_ranges={"n": (1, 2)})
    graph = Graph("found")
    graph.output(ops.nonzero(graph.input("x", ("n",))), "y")
    with pytest.raises(OptionError, match=r"the data of 'count_nonzero_0' decide some"):
        engine.compile(graph, length_ranges={"n": (1, 2)})


def test_a_budget_below_the_greatest_is_refused_at_once() -> None:
    with pytest.raises(BudgetError) as error:
        engine.compile(images(), length_ranges={"batch": (1, 4), "side": (4, 32)}, budget=10_000)
    assert error.value.available == 10_000 < error.value.lower_bound
