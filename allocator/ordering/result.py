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
"""Of a network; who comes before whom is a table of the square of it."""
WORK = 80_000_000
"""Nodes of a piece times nodes that are tried in it, unless told otherwise: a few seconds."""
LOOKS = 32_000_000
"""At nodes, in all pieces together, unless told otherwise: so that wide networks, where a node that is tried enables
many, cost no more than others."""
_UNLOADED = 20_000
"""Nodes, below which it is not worth loading numba to follow one order."""
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
        """Whether no order has a lower peak."""
        return self.peak == self.bound


@frozen
class Limits:
    """When a search ends: after so many nodes that are tried (0: as it likes), at a moment of `time.monotonic`."""

    nodes: int = 0
    until: float = math.inf

    def nodes_of(self, count: int) -> int:
        """For a piece of so many nodes."""
        return self.nodes or WORK // max(count, 1)

    @property
    def looks(self) -> int:
        """How often nodes are looked at in all pieces."""
        return _UNBOUND if self.nodes else LOOKS

    @property
    def seconds_left(self) -> float:
        """Until that moment."""
        return self.until if self.until == math.inf else self.until - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return not self.have(0)

    def have(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return self.until == math.inf or time.monotonic() + seconds < self.until


NO_LIMITS = Limits()


def peaks_of(net: StepGraph, order: Column) -> Column:
    """Bytes alive while each node of an order runs."""
    part, peaks = cut_out(net, 0, len(net)), np.zeros(len(net), np.int64)
    board, mode = new_board(part), KernelMode.of(len(net), _UNLOADED)
    mode.kernel(kernels.clear)(part, board, net.start)
    mode.kernel(kernels.follow)(part, board, np.array(order, np.int64), peaks)
    return column(peaks)


def ends(net: StepGraph) -> int:
    """Bytes alive while inputs are fed, or outputs are fetched."""
    return max(net.first, live_between(net, len(net)))


def as_given(net: StepGraph) -> OrderResult:
    """The order as it is, and a bound of all others."""
    return followed(net, np.arange(len(net)))


def followed(net: StepGraph, order: Column | tuple[int, ...]) -> OrderResult:
    """What an order costs that somebody has chosen."""
    kept = column(order)
    bound = int(floors(net, reach(net)).max(initial=0)) if len(net) <= MOST_NODES else 0
    return OrderResult(kept, peak_of(net, kept), peak_of(net, np.arange(len(net))), max(ends(net), bound))


def peak_of(net: StepGraph, order: Column) -> int:
    """Most bytes alive at once in an order."""
    return max(ends(net), int(peaks_of(net, order).max(initial=0)))
