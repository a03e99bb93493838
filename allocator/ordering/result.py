"""An order of a network, what it costs, and what no order goes below."""

import math
import time

import numpy as np
from attrs import field, frozen

from allocator.kernels import ordering as kernels
from allocator.kernels.mode import KernelMode
from allocator.ordering.parts import cut_out, live_between, new_board
from allocator.ordering.reach import floors, reach
from allocator.ordering.step_graph import StepGraph
from allocator.problem import Column, column

MOST_NODES = 2**13
"""The most nodes of a network: the table of which node comes before which has the square of it in entries."""
WORK = 80_000_000
"""The default limit of the nodes of a piece times the nodes that are tried in it. More of them find better orders and
take longer; tools/bench_order.py times the search."""
LOOKS = 32_000_000
"""The default limit of looks at nodes, in all pieces together. It bounds the time for wide networks, where a node that
is tried enables many others."""
_UNBOUND = 2**62


@frozen(eq=False)
class OrderResult:
    """`order` has all nodes. `peak`: most bytes alive at once in it; `given`: in the given order.

    No order goes below `bound`. `tried` counts nodes of the search.
    """

    order: Column = field(converter=column)
    peak: int
    initial_peak: int
    bound: int
    tried: int = 0

    @property
    def is_proved(self) -> bool:
        """Returns whether no order has a lower peak."""
        return self.peak == self.bound


@frozen
class Limits:
    """The limits of a search: the nodes to try (0: its default), and the moment of `time.monotonic` when it ends.

    `most_looks` are those at nodes, in all pieces (0: where the nodes are the default, LOOKS, else no limit).
    """

    nodes: int = 0
    until: float = math.inf
    most_looks: int = 0

    def nodes_of(self, count: int) -> int:
        """Returns the nodes that may be tried for a piece of `count` nodes."""
        return self.nodes or WORK // max(count, 1)

    @property
    def looks(self) -> int:
        """Returns how often nodes may be looked at, in all pieces."""
        return self.most_looks or (_UNBOUND if self.nodes else LOOKS)

    @property
    def seconds_left(self) -> float:
        """Returns the seconds until that moment."""
        return self.until if self.until == math.inf else self.until - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Returns whether there is no time left."""
        return not self.have(0)

    def have(self, seconds: float) -> bool:
        """Returns whether so much time is left."""
        return self.until == math.inf or time.monotonic() + seconds < self.until


NO_LIMITS = Limits()


def peaks_of(graph: StepGraph, order: Column) -> Column:
    """Returns the bytes alive while each node of an order runs."""
    part, peaks = cut_out(graph, 0, len(graph)), np.zeros(len(graph), np.int64)
    board, mode = new_board(part), KernelMode.of(len(graph))
    mode.kernel(kernels.clear)(part, board, graph.start)
    mode.kernel(kernels.follow)(part, board, np.array(order, np.int64), peaks)
    return column(peaks)


def ends(graph: StepGraph) -> int:
    """Returns the bytes alive while inputs are fed, or outputs are fetched."""
    return max(graph.first, live_between(graph, len(graph)))


def as_given(graph: StepGraph) -> OrderResult:
    """Returns the given order with its peak, and a bound of all orders."""
    return followed(graph, np.arange(len(graph)))


def followed(graph: StepGraph, order: Column | tuple[int, ...]) -> OrderResult:
    """Returns an order with its peak, that of the given order, and a bound of all orders."""
    kept = column(order)
    bound = int(floors(graph, reach(graph)).max(initial=0)) if len(graph) <= MOST_NODES else 0
    return OrderResult(kept, peak_of(graph, kept), peak_of(graph, np.arange(len(graph))), max(ends(graph), bound))


def peak_of(graph: StepGraph, order: Column) -> int:
    """Returns most bytes alive at once in an order."""
    return max(ends(graph), int(peaks_of(graph, order).max(initial=0)))
