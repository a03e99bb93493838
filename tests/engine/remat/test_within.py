"""Plans within a budget that needs cascades."""

import numpy as np
import pytest

import engine
from tests.engine.passes.cascade.random_chains import large_images

FEW_STEPS = 100
"""Steps of the search for addresses, which is not what is tested."""


def test_a_budget_that_recomputing_does_not_meet_is_met_by_cascades() -> None:
    graph = large_images()
    whole = engine.compile(graph, nodes=FEW_STEPS)
    budget = whole.plan.arena_bytes * 6 // 10
    cut = engine.compile(graph, budget=budget, nodes=FEW_STEPS)
    (done,) = cut.plan.optimisation
    assert done.cascades and cut.plan.arena_bytes <= budget
    again = engine.make_plan(graph, cascade=cut.plan.options.cascade, nodes=FEW_STEPS)
    assert again.arena_bytes == cut.plan.arena_bytes
    x = np.random.default_rng(0).standard_normal((1, 3, 64, 48), np.float32)
    np.testing.assert_array_equal(cut(x=x)["y"], whole(x=x)["y"])


def test_stripes_that_would_be_in_memory_at_once_are_not_cut() -> None:
    graph = large_images()
    plain, cut = (engine.make_plan(graph, parallel="exact", cascade=c, nodes=FEW_STEPS) for c in (0, 25))
    assert cut.arena_bytes == plain.arena_bytes and not any(done.cascades for done in cut.optimisation)


def test_stripes_wait_for_the_bytes_of_those_in_front_where_bytes_decide_what_runs_at_once() -> None:
    graph = large_images()
    whole, cut = (engine.compile(graph, parallel="edges", cascade=c, threads=2, nodes=FEW_STEPS) for c in (0, 25))
    in_turn = engine.make_plan(graph, cascade=25, nodes=FEW_STEPS)
    assert any(done.cascades for done in cut.plan.optimisation)
    assert cut.plan.arena_bytes < whole.plan.arena_bytes * 6 // 10
    assert cut.plan.arena_bytes < in_turn.arena_bytes * 12 // 10
    x = np.random.default_rng(0).standard_normal((1, 3, 64, 48), np.float32)
    np.testing.assert_array_equal(cut(x=x)["y"], whole(x=x)["y"])
    within = engine.make_plan(graph, parallel="edges", budget=cut.plan.arena_bytes, nodes=FEW_STEPS)
    assert within.arena_bytes <= cut.plan.arena_bytes and any(done.cascades for done in within.optimisation)


def test_a_budget_below_every_cascade_is_refused_with_the_smallest_plan() -> None:
    with pytest.raises(engine.BudgetError, match=r"smallest arena found has \d+ bytes .*: .*more operations"):
        engine.make_plan(large_images(), budget=1000, nodes=FEW_STEPS)
    with pytest.raises(engine.BudgetError) as refused:
        engine.make_plan(large_images(), budget=1000, nodes=FEW_STEPS, recompute=False)
    assert "more operations" not in str(refused.value)
