"""A search for an order in rounds, as that for addresses (`rounds`): several go on from the best order of all.

One of them proves; the others are beams over the same network with its nodes in other orders, drawn at random, so that
they choose others of equally good states.
"""

import math
import time
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
from attrs import define, evolve, frozen

from allocator.ordering.result import LOOKS, WORK, Limits, OrderResult
from allocator.ordering.search import Exchange, keep_own, lower_than, lowest
from allocator.ordering.step_graph import StepGraph, renumbered, shuffled
from allocator.problem import Column
from allocator.progress import Activity
from engine.searches.rounds import EXACT_SHARE, PAUSE, SEARCHES, share
from engine.workers.board import Board, BoardClosedError, NoBoard
from engine.workers.flow import in_order
from engine.workers.place import Place

_FIRST, _MOST = 20_000, 640_000
"""Nodes of a search in the first round; twice as many in each, up to the most."""
_USUAL = 12 * WORK
"""Nodes of all searches times those of the network, where there is no limit."""
_NONE = NoBoard()
_PROVING = 0
"""The seed of the search that proves: it has the network as it is."""


@frozen(eq=False)
class OrderSearch:
    """One search of a round, as a worker gets it: it goes on from the order `best`; see `Search` in `rounds`.

    With a limit of time, it takes over what others write on the `board`; the result may then differ between runs.
    """

    graph: StepGraph
    best: OrderResult
    seed: int
    limits: Limits
    seconds: float
    board: Board = _NONE


def lowest_shared(graph: StepGraph, limits: Limits, place: Place) -> OrderResult:
    """Returns the order with the lowest peak that the workers of a place find, in nodes that all of them share.

    The search of one process is the first. Same limits of nodes, same order, however many workers there are. With a
    limit of time, the searches of a round share what they find at once.
    """
    nodes = limits.nodes or _USUAL // max(len(graph), 1)
    first = evolve(limits, nodes=limits.nodes and min(limits.nodes, _FIRST))
    best, left = lowest(graph, first), nodes - first.nodes
    each, number = _FIRST, 0
    shared = place.board() if limits.until < math.inf else nullcontext(_NONE)
    with (
        shared as board,
        Activity("ordering", "by workers", total=nodes, unit="steps", limit=limits.seconds_left) as seen,
    ):
        while left > 0 and not best.is_proved and not limits.is_over:
            of_each = min(each, share(left))
            for outcome in in_order(place, carry_out, _searches(graph, best, limits, of_each, number, board=board)):
                if outcome.error is not None:
                    raise outcome.error
                best = _better(best, outcome.value or best)
            left, number, each = left - (SEARCHES + EXACT_SHARE - 1) * of_each, number + 1, min(2 * each, _MOST)
            seen.done, seen.best, seen.bound = nodes - left, best.peak, best.bound
    return best


def carry_out(search: OrderSearch) -> OrderResult:
    """Carries out a search, in a worker. Its order has no higher peak than the one that it begins with."""
    graph, best = search.graph, search.best
    limits = evolve(search.limits, until=time.monotonic() + search.seconds)
    if search.seed == _PROVING:
        return lower_than(graph, best.order, limits, best.bound, exchange=_exchange(search, np.arange(len(graph))))
    order = shuffled(graph, search.seed)
    start, exchange = np.argsort(order)[best.order], _exchange(search, order)
    result = lower_than(renumbered(graph, order), start, limits, best.bound, is_proving=False, exchange=exchange)
    return evolve(result, order=order[result.order])


def _exchange(search: OrderSearch, order: Column) -> Exchange:
    return keep_own if isinstance(search.board, NoBoard) else _Exchange(search, order)


@define(eq=False)
class _Exchange:
    """What a search shows the others on the board, and takes from there; its nodes stand in an order of their own."""

    search: OrderSearch
    order: Column
    looked: float = -PAUSE

    def __call__(self, own: OrderResult) -> OrderResult | None:
        """Returns the best of all orders; None where the board is closed."""
        if time.monotonic() < self.looked + PAUSE:
            return own
        self.looked = time.monotonic()
        try:
            shown: OrderResult | None = self.search.board.read()
        except BoardClosedError:
            return None
        ours = evolve(own, order=self.order[own.order], tried=0)
        best = ours if shown is None else _better(shown, ours)
        if shown is None or best.peak < shown.peak or best.bound > shown.bound:
            self.search.board.write(best)
        return evolve(best, order=np.argsort(self.order)[best.order])


def _better(best: OrderResult, other: OrderResult) -> OrderResult:
    """Returns the first of the better orders, with the higher bound and all nodes that were tried."""
    lower = other if other.peak < best.peak else best
    bound, tried = max(best.bound, other.bound), best.tried + other.tried
    return evolve(best, order=lower.order, peak=lower.peak, bound=bound, tried=tried)


def _searches(
    graph: StepGraph, best: OrderResult, limits: Limits, nodes: int, number: int, *, board: Board
) -> Iterator[OrderSearch]:
    """Yields the searches of a round: the one that proves first, as it takes longest."""
    seconds = max(limits.seconds_left, 0.0) if limits.until < math.inf else math.inf
    looks = 0 if limits.nodes else LOOKS // EXACT_SHARE
    plain = OrderSearch(graph, best, _PROVING, Limits(nodes, most_looks=looks), seconds, board)
    yield evolve(plain, limits=evolve(plain.limits, nodes=EXACT_SHARE * nodes))
    for place in range(1, SEARCHES):
        yield evolve(plain, seed=number * SEARCHES + place)
