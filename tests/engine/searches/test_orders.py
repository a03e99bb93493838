"""An order that workers search together: that of one worker, never worse than without, the best of small programs."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings

from allocator.ordering.result import Limits, OrderResult, as_given, peak_of
from allocator.ordering.search import lowest
from allocator.ordering.step_graph import StepGraph, renumbered, shuffled, step_graph
from allocator.steps import Program
from engine import make_plan, searches, shared_search, zoo
from engine.lower.lowering import lower
from engine.lower.order import network_of
from engine.searches import orders
from engine.searches.orders import OrderSearch, carry_out, lowest_shared
from engine.workers.board import Board, BoardClosedError, FolderBoard
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
    net, limits = _wide(), Limits(nodes=6_400)
    with ThreadPoolExecutor(3) as pool:
        one, other = (lowest_shared(net, limits, place) for place in (Here(), Borrowed(pool, workers=3)))
    assert np.array_equal(one.order, other.order) and one.bound == other.bound
    assert sorted(one.order.tolist()) == list(range(len(net)))
    assert one.bound <= one.peak == peak_of(net, one.order) < lowest(net, Limits(nodes=400)).peak


@define(eq=False)
class ShownBoard:
    """A board that keeps all that is written, and is closed after so many looks."""

    value: OrderResult | None = None
    looks: int = 10**9
    written: list[OrderResult] = field(factory=list)

    def read(self) -> OrderResult | None:
        self.looks -= 1
        if self.looks < 0:
            raise BoardClosedError("closed")
        return self.value

    def write(self, value: OrderResult) -> None:
        self.value = value
        self.written.append(value)

    def close(self) -> None:
        self.looks = 0


@cache
def _wide() -> StepGraph:
    return network_of(lower(zoo.random_wired(nodes=48)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_a_search_takes_over_a_better_order_from_the_board(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "PAUSE", 0.0)
    net = _wide()
    start, good = as_given(net), lowest(net, Limits(nodes=6_400))
    board = ShownBoard(good)
    result = carry_out(OrderSearch(net, start, seed, Limits(nodes=300), 60.0, board))
    assert result.peak <= good.peak < start.peak and result.peak == peak_of(net, result.order)
    assert sorted(result.order.tolist()) == list(range(len(net)))
    alone = carry_out(OrderSearch(net, start, seed, Limits(nodes=300), 60.0))
    assert alone.peak > result.peak if seed == 0 else alone.peak >= result.peak


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5])
def test_a_search_shows_its_orders_and_ends_when_the_board_is_closed(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "PAUSE", 0.0)
    net, board = _wide(), ShownBoard(looks=3)
    result = carry_out(OrderSearch(net, as_given(net), seed, Limits(nodes=10**9), 600.0, board))
    peaks = [order.peak for order in board.written]
    assert peaks and peaks == sorted(peaks, reverse=True) and result.peak <= peaks[-1]
    assert all(order.peak == peak_of(net, order.order) for order in board.written)


def test_a_search_ends_when_another_one_has_proved_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "PAUSE", 0.0)
    net = _wide()
    good = lowest(net, Limits(nodes=6_400))
    board = ShownBoard(evolve(good, bound=good.peak))
    result = carry_out(OrderSearch(net, as_given(net), 5, Limits(nodes=10**9), 600.0, board))
    assert result.is_proved and result.peak == good.peak


def test_searches_with_a_time_have_a_board(tmp_path: Path) -> None:
    net, boards = _wide(), list[Board]()

    class Watched(Here):
        def board(self) -> AbstractContextManager[Board]:
            boards.append(FolderBoard(tmp_path))
            return nullcontext(boards[-1])

    lowest_shared(net, Limits(nodes=100), Watched())
    assert not boards
    result = lowest_shared(net, Limits(until=time.monotonic() + 0.5), Watched())
    assert boards and result.peak == peak_of(net, result.order)


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
