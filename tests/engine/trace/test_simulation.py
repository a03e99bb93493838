"""The free-list simulation of a trace's chunks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import EngineError
from engine.trace.simulation import simulation_of
from tests.helpers.graphs.random_graphs import build, seeded


@pytest.mark.parametrize("strategy", ["pushdown", "pushdown_sorted"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10, deadline=None)
def test_the_simulation_of_a_trace_leads_to_the_offsets_of_its_plan(strategy: str, seed: int) -> None:
    plan = engine.make_plan(build(seeded(seed), 8), strategy=strategy, optimise=0)
    simulation = simulation_of(plan.trace())
    assert simulation.strategy.name == strategy
    assert simulation.arena_bytes() == plan.arena_bytes
    assert simulation.offsets().tolist() == plan.plan.offset.tolist()


def test_a_trace_of_another_strategy_is_simulated_in_the_order_of_megengine() -> None:
    trace = engine.make_plan(build(seeded(3), 6), strategy="naive", optimise=0).trace()
    assert simulation_of(trace).strategy.name == "pushdown"


def test_the_simulation_names_tensors() -> None:
    trace = engine.make_plan(build(seeded(3), 6), optimise=0).trace()
    assert set(simulation_of(trace).tensors.values()) == {e.tensor for e in trace if e.kind in ("alloc", "overwrite")}


def test_a_dynamic_run_is_not_simulated() -> None:
    trace = engine.make_plan(build(seeded(3), 6), optimise=0).trace("dynamic")
    with pytest.raises(EngineError, match="a plan has one stage and one arena; this trace is dynamic"):
        simulation_of(trace)
