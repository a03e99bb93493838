"""A search for an order in rounds, as that for addresses (`rounds`): several go on from the best order of all.

One of them proves; the others are beams over the same network with its nodes in other orders, drawn at random, so that
they choose others of equally good states.
"""

import math
import time
from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen

from allocator.ordering.result import LOOKS, WORK, Limits, OrderResult
from allocator.ordering.search import lower_than, lowest
from allocator.ordering.step_graph import StepGraph, renumbered, shuffled
from allocator.progress import Activity
from engine.searches.rounds import EXACT_SHARE, SEARCHES, share
from engine.workers.flow import in_order
from engine.workers.place import Place

_FIRST, _MOST = 20_000, 640_000
"""Nodes of a search in the first round; twice as many in each, up to the most."""
_USUAL = 12 * WORK
"""Nodes of all searches times those of the network, where there is no limit."""
_PROVING = 0
"""The seed of the search that proves: it has the network as it is."""


@frozen(eq=False)
class OrderSearch:
    """One search of a round, as a worker gets it: it goes on from the order `best`; see `Search` in `rounds`."""

    graph: StepGraph
    best: OrderResult
    seed: int
    limits: Limits
    seconds: float


def lowest_shared(graph: StepGraph, limits: Limits, place: Place) -> OrderResult:
    """Returns the order with the lowest peak that the workers of a place find, in nodes that all of them share.

    The search of one process is the first. Same limits of nodes, same order, however many workers there are.
    """
    nodes = limits.nodes or _USUAL // max(len(graph), 1)
    first = evolve(limits, nodes=limits.nodes and min(limits.nodes, _FIRST))
    best, left = lowest(graph, first), nodes - first.nodes
    each, number = _FIRST, 0
    with Activity("ordering", "by workers", total=nodes, unit="steps", limit=limits.seconds_left) as seen:
        while left > 0 and not best.is_proved and not limits.is_over:
            of_each = min(each, share(left))
            for outcome in in_order(place, carry_out, _searches(graph, best, limits, of_each, number)):
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
        return lower_than(graph, best.order, limits, best.bound)
    order = shuffled(graph, search.seed)
    start = np.argsort(order)[best.order]
    result = lower_than(renumbered(graph, order), start, limits, best.bound, is_proving=False)
    return evolve(result, order=order[result.order])


def _better(best: OrderResult, other: OrderResult) -> OrderResult:
    """Returns the first of the better orders, with the higher bound and all nodes that were tried."""
    lower = other if other.peak < best.peak else best
    bound, tried = max(best.bound, other.bound), best.tried + other.tried
    return evolve(best, order=lower.order, peak=lower.peak, bound=bound, tried=tried)


def _searches(graph: StepGraph, best: OrderResult, limits: Limits, nodes: int, number: int) -> Iterator[OrderSearch]:
    """Yields the searches of a round: the one that proves first, as it takes longest."""
    seconds = max(limits.seconds_left, 0.0) if limits.until < math.inf else math.inf
    looks = 0 if limits.nodes else LOOKS // EXACT_SHARE
    plain = OrderSearch(graph, best, _PROVING, Limits(nodes, most_looks=looks), seconds)
    yield evolve(plain, limits=evolve(plain.limits, nodes=EXACT_SHARE * nodes))
    for place in range(1, SEARCHES):
        yield evolve(plain, seed=number * SEARCHES + place)
