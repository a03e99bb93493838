from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.order import stable_order
from engine.text.errors import CycleError

Waits = list[list[int]]


def _names(count: int) -> list[str]:
    return [f"op{i}" for i in range(count)]


@st.composite
def waits(draw: st.DrawFn) -> Waits:
    """Draws any graph, with and without cycles."""
    count = draw(st.integers(0, 8))
    return [draw(st.lists(st.integers(0, count - 1), max_size=3)) for _ in range(count)]


@st.composite
def acyclic(draw: st.DrawFn) -> Waits:
    """Draws items of which each waits only for items in front of it in a hidden order."""
    count = draw(st.integers(1, 8))
    hidden = draw(st.permutations(range(count)))
    predecessors: Waits = [[] for _ in range(count)]
    for place, item in enumerate(hidden):
        predecessors[item] = draw(st.lists(st.sampled_from(hidden[:place]), max_size=3)) if place else []
    return predecessors


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


def _has_cycle(graph: Waits) -> bool:
    """Returns whether some item waits for itself, directly or through others."""
    reached = [set(group) for group in graph]
    for _ in graph:
        for group in reached:
            group.update(*(reached[item] for item in list(group)))
    return any(item in group for item, group in enumerate(reached))


@given(waits())
def test_stable_order_raises_exactly_for_cycles_and_names_one(graph: Waits) -> None:
    if not _has_cycle(graph):
        assert len(stable_order(graph, _names(len(graph)))) == len(graph)
        return
    with pytest.raises(CycleError) as raised:
        stable_order(graph, _names(len(graph)))
    first, *rest = (int(name.removeprefix("op")) for name in str(raised.value).partition(": ")[2].split(" -> "))
    assert rest[-1] == first and len(set(rest)) == len(rest)
    assert all(before in graph[item] for before, item in pairwise((first, *rest)))


def test_the_error_names_only_those_on_the_cycle() -> None:
    with pytest.raises(CycleError, match=r"op1 -> op2 -> op1$|op2 -> op1 -> op2$"):
        stable_order([[], [2], [1, 0], [2]], _names(4))


def test_a_node_that_waits_for_itself_is_a_cycle() -> None:
    with pytest.raises(CycleError, match=r"op1 -> op1$"):
        stable_order([[], [1]], _names(2))
