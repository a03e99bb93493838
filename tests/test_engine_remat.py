"""Computing values again to keep within a budget: equal bits, true numbers, and no more than is needed."""

from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine import Graph
from engine.errors import BudgetError
from engine.executable import make_plan
from ops.spec import Array
from tests.training_graphs import random_training
from tests.unplanned import assert_same, random_feeds

STEPS = 2
NODES = 100
"""Of searches for addresses, which are not what is tested here."""


@st.composite
def trained(draw: st.DrawFn) -> Graph:
    return random_training(lambda n: draw(st.integers(0, n - 1)))


def _trained(graph: Graph, **options: object) -> dict[str, Array]:
    """Outputs and parameters after some steps."""
    exe = engine.compile(graph, nodes=NODES, **options)  # type: ignore[arg-type]
    for seed in range(STEPS):
        found = exe.run(random_feeds(graph, seed))
    return found | {f"parameter {n}": a for n, a in exe.parameters.items()}


def _smallest_budget(graph: Graph, budget: int) -> int:
    """The budget, or what recomputing gets down to where that is more."""
    try:
        plan = make_plan(graph, budget=budget, nodes=NODES)
    except BudgetError as error:
        plain = make_plan(graph, nodes=NODES)
        assert error.required == plain.arena_bytes and error.available == budget
        assert error.excess == error.required - budget
        assert budget < error.least <= error.required
        assert (error.share > 0) == (error.least < error.required)
        return error.least
    assert plan.arena_bytes <= budget
    return budget


@settings(max_examples=25, deadline=None)
@given(trained(), st.integers(20, 99))
def test_what_runs_again_gives_the_same_bits_in_every_mode(graph: Graph, percent: int) -> None:
    plain = make_plan(graph, nodes=NODES)
    budget = _smallest_budget(graph, plain.arena_bytes * percent // 100)
    plan = make_plan(graph, budget=budget, nodes=NODES)
    wanted = _trained(graph)
    assert plan.arena_bytes <= budget
    for options in ({}, {"mode": "dynamic"}, {"debug": "poison", "budget": budget + 4096}):
        assert_same(_trained(graph, **({"budget": budget} | options)), wanted)
