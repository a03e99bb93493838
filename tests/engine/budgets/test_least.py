"""The bytes that every way to a budget needs: no plan of random graphs has fewer, whatever is done for it."""

from typing import Any

import pytest
from hypothesis import given

import arenaplan as ap
from engine.budgets.least import least_of_all
from engine.graph.graph import Graph
from engine.passes.automatic import passed
from engine.planning.options import HIGHEST_LEVEL
from tests.engine.passes.cascade.random_chains import random_encoder
from tests.helpers.graphs.random_graphs import graphs

WAYS: tuple[dict[str, Any], ...] = ({}, {"optimise": 0, "order": "memory"}, {"optimise": 3, "cascade": 50})


def _check(graph: Graph, *ways: dict[str, Any]) -> None:
    """Asks for the smallest plan of each way: that of a budget that none meets."""
    least = least_of_all(graph, passed(graph, HIGHEST_LEVEL).graph, ()).nbytes
    for way in (*WAYS, *ways) if least else ():
        with pytest.raises(ap.BudgetError) as caught:
            ap.make_plan(graph, budget=least - 1, alignment=1, **way)
        assert min(caught.value.least, caught.value.required) >= least


@given(graphs())
def test_no_plan_of_a_random_graph_has_fewer_bytes(graph: Graph) -> None:
    _check(graph)


def test_no_plan_of_a_network_in_stripes_or_in_16_bits_has_fewer_bytes() -> None:
    _check(random_encoder(1), {"store": "float16", "cascade": 50})


def test_inputs_count_together_the_largest_output_alone_and_arrays_of_the_caller_and_views_not_at_all() -> None:
    graph = ap.Graph()
    x, z = (graph.input(name, (8, 8)) for name in "xz")
    graph.output(ap.ops.transpose(x), "view")
    graph.output(ap.ops.concat([x + z, x - z, x * z], axis=0), "y")
    graph.output(ap.ops.tanh(z), "t")
    expected = {(): 768, ("y",): 512, ("y", "x"): 256, ("x", "y", "z"): 256, ("t", "x", "y", "z"): 0}
    assert {lent: least_of_all(graph, graph, lent).nbytes for lent in expected} == expected
    _check(graph)
