from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.order import find_cycle, stable_order
from engine.text.errors import CycleError

Waits = list[list[int]]


def _names(count: int) -> list[str]:
    return [f"op{i}" for i in range(count)]


@st.composite
def waits(draw: st.DrawFn) -> Waits:
    """Any graph, with and without cycles."""
    count = draw(st.integers(0, 8))
    return [draw(st.lists(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


@st.composite
def acyclic(draw: st.DrawFn) -> Waits:
    """Item i waits only for items that stand in front of it in a hidden order."""
    count = draw(st.integers(1, 8))
    hidden = draw(st.permutations(range(count)))
    found: Waits = [[] for _ in range(count)]
    for place, item in enumerate(hidden):
        found[item] = draw(st.lists(st.sampled_from(hidden[:place]), max_size=3)) if place else []
    return found


@given(acyclic())
def test_stable_order_puts_nodes_after_their_predecessors(graph: Waits) -> None:
    order = stable_order(graph, _names(len(graph)))
    place = {item: i for i, item in enumerate(order)}
    assert sorted(order) == list(range(len(graph)))
    assert all(place[before] < place[item] for item, group in enumerate(graph) for before in group)


@given(st.integers(0, 8), st.data())
def test_stable_order_keeps_nodes_that_are_in_order(count: int, data: st.DataObject) -> None:
    graph = [data.draw(st.lists(st.integers(0, i - 1), max_size=3)) if i else [] for i in range(count)]
    assert stable_order(graph, _names(count)) == tuple(range(count))


@given(waits())
def test_a_cycle_is_found_exactly_where_there_is_no_order(graph: Waits) -> None:
    cycle = find_cycle(graph)
    if not cycle:
        assert len(stable_order(graph, _names(len(graph)))) == len(graph)
        return
    assert len(set(cycle)) == len(cycle)
    assert all(before in graph[item] for before, item in pairwise((*cycle, cycle[0])))
    with pytest.raises(CycleError):
        stable_order(graph, _names(len(graph)))


def test_the_error_names_only_those_on_the_cycle() -> None:
    with pytest.raises(CycleError, match=r"op1 -> op2 -> op1$|op2 -> op1 -> op2$"):
        stable_order([[], [2], [1, 0], [2]], _names(4))


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    assert find_cycle([[], [1]]) == (1,)
