"""An order that workers search together: that of one worker, never worse than without, the best of small programs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

from allocator.ordering.result import Limits, OrderResult, peak_of
from allocator.ordering.search import lowest
from allocator.ordering.step_graph import StepGraph, renumbered, shuffled, step_graph
from allocator.steps import Program
from engine import make_plan, searches, shared_search, zoo
from engine.lower.lowering import lower
from engine.lower.order import network_of
from engine.searches import orders
from engine.searches.orders import lowest_shared
from engine.workers.place import Borrowed, Here, Place
from tests.helpers.allocator.reorderable_programs import dependences, programs


@settings(max_examples=20)
@given(programs(most=8))
def test_orders_of_small_programs_are_the_best_and_proved(program: Program) -> None:
    graph = step_graph(program, dependences(program))
    shared, best = lowest_shared(graph, Limits(), Here()), lowest(graph)
    assert (shared.peak, shared.bound, shared.initial_peak) == (best.peak, best.bound, best.initial_peak)


@settings(max_examples=20)
@given(programs(most=12))
def test_a_network_in_another_order_has_the_same_bytes(program: Program) -> None:
    graph = step_graph(program, dependences(program))
    for seed in (1, 2):
        order = shuffled(graph, seed)
        assert sorted(order.tolist()) == list(range(len(graph)))
        assert peak_of(renumbered(graph, order), np.arange(len(graph))) == peak_of(graph, order)


@pytest.mark.slow
def test_the_order_of_a_wide_network_does_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "_FIRST", 400)
    net, limits = network_of(lower(zoo.random_wired(nodes=48))), Limits(nodes=6_400)
    with ThreadPoolExecutor(3) as pool:
        one, other = (lowest_shared(net, limits, place) for place in (Here(), Borrowed(pool, workers=3)))
    assert np.array_equal(one.order, other.order) and one.bound == other.bound
    assert sorted(one.order.tolist()) == list(range(len(net)))
    assert one.bound <= one.peak == peak_of(net, one.order) < lowest(net, Limits(nodes=400)).peak


def test_plans_of_a_block_are_searched_by_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, really = list[int](), lowest_shared

    def counted(net: StepGraph, limits: Limits, place: Place) -> OrderResult:
        calls.append(len(net))
        return really(net, limits, place)

    monkeypatch.setattr(searches, "lowest_shared", counted)
    graph = zoo.random_wired(nodes=6, image=32)
    alone = make_plan(graph, order="memory")
    with shared_search("here"):
        together = make_plan(graph, order="memory")
    assert calls and together.arena_bytes <= alone.arena_bytes
