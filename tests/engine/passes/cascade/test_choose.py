"""Cascades as an option of planning."""

import gc
import json
import weakref
from collections.abc import Set
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import zoo
from engine.cli.main import main
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.costs import graph_cost
from engine.passes.automatic import limited
from engine.passes.cascade import choose
from engine.passes.cascade.choices import Choice
from engine.passes.cascade.rewrite import with_cascades
from engine.passes.cascade.search import cascade_bound, search_cascades
from engine.planning.options import CASCADE_PERCENT, DEFAULTS, Options
from engine.planning.placed import Cascade
from engine.text.errors import GraphError
from tests.engine.passes.cascade.random_chains import large_codes, large_decoder, large_images, random_encoder


def _planned(**options: Any) -> ExecutionPlan:
    return engine.make_plan(large_images(), nodes=100, **options)


def test_cascades_make_the_arena_smaller_within_the_operations_allowed() -> None:
    plain = _planned()
    arenas = []
    for percent in (CASCADE_PERCENT, 5):
        plan = _planned(cascade=percent)
        (done,) = plan.optimisation[0].cascades
        assert done.plain_bytes == plain.plan.lower_bound
        assert done.share <= done.work and 100 * done.work <= percent
        assert done.least_bytes <= plan.arena_bytes
        assert f"{done.share:.1%} more operations" in str(plan.report())
        added = graph_cost(plan.graph).flops / graph_cost(plain.graph).flops
        assert added - 1 == pytest.approx(done.share)
        arenas.append(plan.arena_bytes)
    assert arenas[0] <= arenas[1] < plain.arena_bytes
    assert arenas[0] < 0.6 * plain.arena_bytes
    assert _planned(cascade=True).arena_bytes == arenas[0]
    assert _planned(cascade=False).arena_bytes == plain.arena_bytes


@pytest.mark.parametrize("percent", [10, 60])
def test_operations_of_transposed_convolutions_are_counted_as_stripes_compute_them(percent: int) -> None:
    graph = large_decoder()
    plain, plan = (engine.make_plan(graph, nodes=100, cascade=each) for each in (0, percent))
    (done,) = plan.optimisation[0].cascades
    assert sum(each.schema.name == "nhwc_conv_transpose" for each in plan.graph.operators) > 2
    before, after = (graph_cost(each.graph).flops for each in (plain, plan))
    assert after / before - 1 == pytest.approx(done.share)
    assert 0 < done.share <= done.work <= percent / 100
    assert plan.arena_bytes < plain.arena_bytes


def test_an_estimate_that_is_too_low_does_not_exceed_the_percentage(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = large_decoder()
    free = [Choice(c.nbytes, 0.0, 0.0, c.cascades) for c in search_cascades(engine.optimise(graph))]
    monkeypatch.setattr(choose, "search_cascades", lambda *_: free)
    plan = engine.make_plan(graph, nodes=100, cascade=3)
    (done,) = plan.optimisation[0].cascades
    assert 0 < done.work <= 0.03


def test_a_graph_is_gone_when_its_plan_is() -> None:
    graph = engine.optimise(large_images())
    (done,) = choose.CascadeSearch(graph).within(Options(cascade=25))
    assert any(each.rolling for each in done.cascades)
    kept = weakref.ref(graph)
    del graph
    gc.collect()
    assert kept() is None


def test_a_decoder_of_transposed_convolutions_is_cut() -> None:
    plan = engine.make_plan(engine.zoo.unet(image=32, depth=2), nodes=100, cascade=True)
    (done,) = plan.optimisation[0].cascades
    assert plan.arena_bytes < done.plain_bytes
    cut = [each for each in plan.graph.operators if each.schema.name == "nhwc_conv_transpose"]
    assert len(cut) > 2


def test_codes_are_cut() -> None:
    graph = large_codes()
    plain, cut = (engine.compile(graph, nodes=100, cascade=each) for each in (False, True))
    assert cut.plan.arena_bytes < 0.8 * plain.plan.arena_bytes
    codes = np.random.default_rng(1).integers(0, 256, graph.inputs["x"].shape, np.uint8)
    np.testing.assert_array_equal(cut.run({"x": codes})["y"], plain.run({"x": codes})["y"])


def test_of_an_image_in_an_array_of_the_caller_no_row_lies_in_the_arena() -> None:
    graph = large_images()
    image = graph.inputs["x"].spec
    plain, inside = (engine.compile(graph, nodes=100, cascade=each) for each in (0, 25))
    outside = engine.compile(graph, nodes=100, cascade=25, caller_buffers=("x",))
    (done,) = outside.plan.optimisation[0].cascades
    assert 0 < done.least_bytes <= outside.arena_bytes < inside.arena_bytes - 0.8 * image.nbytes
    x = np.random.default_rng(1).standard_normal(image.shape, np.float32)
    x.flags.writeable = False
    np.testing.assert_array_equal(outside.run({"x": x})["y"], plain.run({"x": x})["y"])


def test_no_bound_is_told_where_the_array_of_the_caller_may_be_overwritten() -> None:
    plan = engine.make_plan(large_images(), nodes=100, cascade=25, caller_buffers=("x",), donated=("x",))
    assert plan.optimisation[0].cascades[0].least_bytes == 0


@pytest.mark.parametrize("store", ["float16", "bfloat16"])
def test_tensors_stored_in_16_bits_are_cut_and_stripes_share_packed_weights(store: str) -> None:
    plain, cut = (engine.compile(large_images(), nodes=100, store=store, cascade=each) for each in (False, True))
    assert cut.plan.arena_bytes < 0.7 * plain.plan.arena_bytes
    assert cut.prepacked_bytes == plain.prepacked_bytes
    x = np.random.default_rng(1).standard_normal(cut.graph.inputs["x"].shape, np.float32)
    np.testing.assert_array_equal(cut.run({"x": x})["y"], plain.run({"x": x})["y"])


def test_no_choice_is_worse_than_another_in_both() -> None:
    front = search_cascades(engine.optimise(large_images()))
    assert [c.nbytes for c in front] == sorted({c.nbytes for c in front})
    assert [c.cost for c in front] == sorted({c.cost for c in front}, reverse=True)
    assert not front[-1].cascades
    assert not front[-1].cost


def test_rows_that_a_halved_image_is_read_of_are_kept_as_estimated() -> None:
    graph = engine.optimise(zoo.unet(image=64, width=4, depth=3))
    work = graph_cost(graph).flops
    for choice in search_cascades(graph)[:5]:
        assert graph_cost(with_cascades(graph, choice.cascades)).flops - work <= choice.extra + 0.1 * work


def test_a_plan_has_the_front_of_bytes_and_work_and_each_of_its_choices_is_allowed_at_its_work() -> None:
    (done,) = _planned(cascade=5).optimisation[0].cascades
    works = [choice.work for choice in done.choices]
    assert works == sorted(works, reverse=True)
    sizes = [choice.estimated_bytes for choice in done.choices]
    assert sizes == sorted(set(sizes))
    assert 100 * works[0] > 5 >= 100 * works[-1]
    for choice in done.choices[:: len(done.choices) - 1]:
        assert choice.share <= choice.work and choice.stripes >= 2 * choice.cascades > 0
        plan = _planned(cascade=int(100 * choice.work) + 1)
        assert plan.arena_bytes <= 1.2 * choice.estimated_bytes


def test_cascades_are_searched_once_for_a_watched_run(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[Graph] = []

    def counted(graph: Graph, outside: Set[Var], *_: object) -> list[Choice]:
        searched.append(graph)
        return search_cascades(graph, outside)

    monkeypatch.setattr(choose, "search_cascades", counted)
    engine.compile(large_images(), cascade=True, debug="poison", nodes=100)
    assert len(searched) == 1


@pytest.mark.parametrize("shape", [(), (5,), (1, 3), (2, 3, 4), (1, 0, 4, 4)], ids=str)
def test_a_graph_without_images_stays_as_it_is(shape: tuple[int, ...]) -> None:
    graph = engine.Graph("plain")
    graph.output(ops.relu(graph.input("x", shape)), "y")
    assert engine.make_plan(graph, cascade=25).optimisation[0].cascades == ()


def test_a_graph_with_open_dimensions_or_parameters_is_refused() -> None:
    graph = engine.Graph("open")
    graph.output(graph.input("x", ("n", 3)) * 2.0, "y")
    with pytest.raises(GraphError, match=r"'open' has dimensions that are names; see arenaplan.bind"):
        engine.compile(graph, cascade=True)
    trained = engine.Graph("trained")
    weights = trained.parameter(np.ones(3, np.float32), "w")
    trained.output(trained.input("x", (3,)) * weights, "y")
    with pytest.raises(GraphError, match="'trained' has parameters"):
        engine.compile(trained, cascade=True)


def test_the_command_shows_cascades(capsys: pytest.CaptureFixture[str]) -> None:
    assert not main(["plan", "zoo:squeezenet?image=96", "--cascade", "10", "--nodes", "100", "--json"])
    (shown,) = json.loads(capsys.readouterr().out)["optimisation"]
    assert shown["cascades"][0]["runs"]
    assert shown["cascades"][0]["choices"][0]["estimated_bytes"] > shown["cascades"][0]["least_bytes"]
    assert main(["plan", "zoo:squeezenet", "--cascade", "-1"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans(), st.sampled_from([(), ("x",), ("y",), ("x", "y")]))
def test_cascades_keep_within_their_bound_and_percentage(
    seed: int, images: int, wide: bool, callers: tuple[str, ...]
) -> None:
    graph = engine.optimise(random_encoder(seed, images=images, wide=wide))
    options: dict[str, Any] = {"optimise": 0, "nodes": 100, "caller_buffers": callers}
    plans = {percent: engine.make_plan(graph, cascade=percent, **options) for percent in (30, 300)}
    assume(plans[300].optimisation)
    outside = {v for name, v in {**graph.inputs, **graph.outputs}.items() if name in callers}
    for percent, plan in plans.items():
        assert cascade_bound(graph, outside) <= plan.arena_bytes
        for done in plan.optimisation:
            (cut,) = done.cascades
            added = graph_cost(plan.graph).flops / graph_cost(graph).flops - 1
            assert cut.share == pytest.approx(max(added, 0.0))
            assert cut.share <= cut.work <= percent / 100


def test_in_another_order_no_bound_of_the_given_order_is_told() -> None:
    rng = np.random.default_rng(0)
    graph = engine.Graph("branches")
    x: Var = graph.input("x", (1, 3, 32, 32))
    for channels, inputs in ((32, 3), (32, 32)):
        x = ops.relu(ops.conv2d(x, rng.standard_normal((channels, inputs, 3, 3), np.float32), pads=(1, 1, 1, 1)))
    x = ops.max_pool(x, (2, 2), strides=(2, 2))
    x = ops.conv2d(x, rng.standard_normal((4, 32, 1, 1), np.float32))
    branches = [ops.relu(ops.conv2d(x, rng.standard_normal((48, 4, 1, 1), np.float32))) for _ in range(2)]
    first, second = (ops.reduce_mean(ops.tanh(branch), axes=(2, 3)) for branch in branches)
    graph.output(first + second, "y")
    plans = [engine.make_plan(graph, cascade=True, nodes=100, order=order) for order in ("given", "memory")]
    bound, other = (plan.optimisation[0].cascades[0].least_bytes for plan in plans)
    assert plans[1].arena_bytes < bound <= plans[0].arena_bytes
    assert other == 0


def test_the_search_for_addresses_ends_after_some_steps_where_neither_steps_nor_time_are_given() -> None:
    done = _planned(cascade=True).optimisation
    assert limited(DEFAULTS, done).nodes > 0
    assert limited(DEFAULTS, ()) == DEFAULTS
    for asked in (Options(nodes=7), Options(timeout=5.0)):
        assert limited(asked, done) == asked


def test_the_bound_counts_the_rows_alone_that_are_read_of_an_image_in_pieces() -> None:
    rng = np.random.default_rng(0)
    graph = Graph("cropped")
    x = graph.input("x", (1, 8, 256, 24))
    for shape, lower in (((32, 8, 3, 3), -128), ((32, 32, 3, 3), 0), ((20, 32, 1, 1), 0)):
        convolved = ops.conv2d(x, graph.constant(rng.standard_normal(shape, np.float32)), pads=(shape[2] // 2,) * 4)
        x = ops.pad(ops.relu(convolved), (0, 0, lower, 0), axes=(2, 3)) if lower else convolved
    graph.output(ops.reduce_mean(x, axes=(2, 3)), "y")
    graph = engine.optimise(graph)
    cut = with_cascades(graph, [Cascade(1, 5, 4, (3,), in_pieces=True)])
    arena = engine.make_plan(cut, optimise=0, nodes=100).arena_bytes
    assert cascade_bound(graph) <= arena < 2 * graph.inputs["x"].spec.nbytes


def test_the_bound_knows_that_the_first_of_two_stripes_has_no_result_yet() -> None:
    rng = np.random.default_rng(7)
    graph = engine.Graph("two stripes")
    x = ops.pad(graph.input("x", (1, 8, 1, 413)), (1, 0, 0, 2), axes=(2, 3)) + rng.standard_normal(
        (8, 2, 415), np.float32
    )
    pooled = ops.max_pool(ops.resize(x, x.shape, mode="linear"), (1, 2), strides=(1, 2))
    graph.output(ops.reduce_mean(pooled, axes=(2, 3)), "y")
    plan = engine.make_plan(graph, cascade=400, nodes=100, optimise=3)
    (done,) = plan.optimisation[0].cascades
    assert done.least_bytes <= plan.arena_bytes
