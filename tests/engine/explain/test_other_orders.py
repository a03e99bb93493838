"""Checks claims about all orders against all orders, by brute force."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.reorderable_graphs import Recipe, recipe

OPTIONS: tuple[dict[str, Any], ...] = ({}, {"nest": False}, {"padding": 16}, {"reuse": False}, {"overwrite": False})


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.sampled_from(OPTIONS))
def test_no_order_goes_below_an_unconditional_claim(seed: int, options: dict[str, Any]) -> None:
    graphs = recipe(seeded(seed))
    plan = engine.make_plan(given_order(graphs), order="memory", optimise=0, **options)
    (ordering,) = plan.orderings
    if ordering.is_proved and not ordering.before:
        peaks = (engine.make_plan(graphs.graph(o), optimise=0, **options).report().peak_bytes for o in graphs.orders())
        assert plan.report().peak_bytes <= min(peaks)


def given_order(graphs: Recipe) -> Graph:
    return graphs.graph(range(len(graphs.operators)))


BOTH = Recipe((("tanh", -1, -1), ("tanh", -1, -1), ("concat", 1, 1)), (0, 2))
"""Where the tanh that is joined runs first, it is computed inside the concatenation, and the other over x."""


def test_an_order_in_which_more_is_nested_is_not_denied() -> None:
    plan = engine.make_plan(given_order(BOTH), optimise=0)
    assert engine.make_plan(BOTH.graph((1, 0, 2)), optimise=0).arena_bytes < plan.arena_bytes
    assert "(proved: no order has fewer bytes alive before anything is nested)" in str(plan.explain())
    text = str(engine.make_plan(given_order(BOTH), order="memory", optimise=0).report())
    assert "no order has fewer bytes alive before anything is nested: met" in text


@pytest.mark.parametrize(
    ("options", "before"),
    [
        ({}, "anything is nested"),
        ({"nest": False}, ""),
        ({"views": False}, ""),
        ({"nest": False, "padding": 8}, "anything is padded"),
        ({"padding": 8}, "anything is nested or anything is padded"),
        ({"nest": False, "reuse": False}, "bytes are kept to the end"),
        ({"parallel": "exact"}, "operators run at once"),
    ],
)
def test_a_claim_of_all_orders_names_its_condition(options: dict[str, Any], before: str) -> None:
    (ordering,) = engine.make_plan(given_order(BOTH), order="memory", optimise=0, **options).orderings
    assert ordering.before == before


def test_a_claim_of_all_orders_is_unconditional_where_nothing_can_be_nested() -> None:
    graph = Graph("plain")
    x = graph.input("x", (8, 4))
    graph.output(ops.tanh(x) + ops.neg(x), "y")
    (ordering,) = engine.make_plan(graph, order="memory", optimise=0).orderings
    assert (ordering.before, ordering.claim) == ("", "no order has fewer bytes alive")
