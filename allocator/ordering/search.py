"""The order of nodes in which fewest bytes are alive at once, and what no order goes below.

The network is cut where all orders agree (`reach.cuts`); the pieces with the highest peaks are searched, until what is
left needs no more than what some piece needs in every order: a best-first search, and where that does not end soon,
beams of growing width first, so that it can leave out more.
"""

import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define, field, frozen

from allocator.kernels import ordering as kernels
from allocator.kernels.ordering import PEAK, SOLVED, TRIED, Part, Table
from allocator.ordering.network import Network
from allocator.ordering.parts import cut_out, live_between, new_board, new_table
from allocator.ordering.reach import cuts, floors, reach
from allocator.problem import Column, column
from allocator.runner import Runner

MOST_NODES = 2**13
"""Of a network; who comes before whom is a table of the square of it."""
WORK = 20_000_000
"""Nodes of a piece times nodes that are tried in it, unless told otherwise: about a second or two."""
FIRST_LOOK = 3_000
"""Nodes that are tried before beams are: most pieces need no more."""
WIDTHS = (4, 32, 256)
_MOST_WORDS = 2**23
_PLAIN = 40
"""Nodes of a piece, below which a first look is not worth loading numba."""
_UNLOADED = 20_000
"""Nodes, below which it is not worth loading numba to follow one order."""
_SLICE = 20_000


@frozen(eq=False)
class Found:
    """`order` has all nodes. `peak`: most bytes alive at once in it; `given`: in the given order.

    No order goes below `bound`. `tried` counts nodes of the search.
    """

    order: Column = field(converter=column)
    peak: int
    given: int
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
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return self.until < math.inf and time.monotonic() >= self.until


def peaks_of(net: Network, order: Column) -> Column:
    """Bytes alive while each node of an order runs."""
    part, made = cut_out(net, 0, len(net)), np.zeros(len(net), np.int64)
    board, runner = new_board(part), Runner.of(len(net), _UNLOADED)
    runner.kernel(kernels.clear)(part, board, net.start)
    runner.kernel(kernels.follow)(part, board, np.array(order, np.int64), made)
    return column(made)


def ends(net: Network) -> int:
    """Bytes alive while inputs are fed, or outputs are fetched."""
    return max(net.first, live_between(net, len(net)))


def as_given(net: Network) -> Found:
    """The order as it is, and a bound of all others."""
    if not len(net):
        return Found((), ends(net), ends(net), ends(net))
    given = np.arange(len(net))
    peak = max(ends(net), int(peaks_of(net, given).max()))
    bound = int(floors(net, reach(net)).max()) if len(net) <= MOST_NODES else 0
    return Found(given, peak, peak, max(ends(net), bound))


def lowest(net: Network, limits: Limits = Limits()) -> Found:
    """The order with the lowest peak that is found; the given one where none is lower."""
    if not 0 < len(net) <= MOST_NODES:
        return as_given(net)
    search = _Search.of(net, limits)
    search.run()
    return search.found()


@define(eq=False)
class _Piece:
    low: int
    high: int
    peak: int
    order: list[int]


@define(eq=False)
class _Search:
    net: Network
    limits: Limits
    given: int
    floor: int
    pieces: list[_Piece]
    tried: int = 0

    @classmethod
    def of(cls, net: Network, limits: Limits) -> "_Search":
        before = reach(net)
        at = cuts(before)
        peaks = peaks_of(net, np.arange(len(net))).tolist()
        pieces = [_Piece(a, b, max(peaks[a:b]), list(range(a, b))) for a, b in pairwise(at)]
        floor = max(ends(net), int(floors(net, before).max()))
        return cls(net, limits, max(ends(net), *peaks), floor, pieces)

    def run(self) -> None:
        """From the highest piece down to those that cost nothing."""
        for piece in sorted(self.pieces, key=lambda p: (-p.peak, p.low)):
            if piece.peak <= self.floor or self.limits.is_over:
                return
            if piece.high - piece.low > 1:
                self._improve(piece)

    def _improve(self, piece: _Piece) -> None:
        part = cut_out(self.net, piece.low, piece.high)
        live = live_between(self.net, piece.low)
        hunt = _Hunt(part, live, self.floor, piece.peak, self.limits)
        hunt.run()
        self.tried += hunt.tried
        self.floor = max(self.floor, hunt.floor)
        if hunt.order:
            piece.order = [piece.low + node for node in hunt.order]
            piece.peak = hunt.peak

    def found(self) -> Found:
        """All pieces one behind the other."""
        peak = max(ends(self.net), *(p.peak for p in self.pieces))
        order = [node for piece in self.pieces for node in piece.order]
        return Found(order, peak, self.given, min(self.floor, peak), self.tried)


@define(eq=False)
class _Hunt:
    """The search in one piece: for an order with a lower peak than `peak`; `floor` is what some piece needs anyhow."""

    part: Part
    live: int
    floor: int
    peak: int
    limits: Limits
    order: list[int] = field(factory=list)
    tried: int = 0

    def run(self) -> None:
        """A short look, then beams, then the rest of the search."""
        nodes = self.limits.nodes_of(len(self.part.waiting))
        first = min(nodes, FIRST_LOOK)
        table = self._table(first)
        if self._explore(table, first):
            return
        for width in WIDTHS:
            if self.tried < nodes and self.peak > self.floor and not self.limits.is_over:
                self._sweep(width)
        left = nodes - self.tried
        if left > 0 and self.peak > self.floor:
            self._explore(self._table(left), left)

    def _kernel(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Small pieces are begun plain, and most end so."""
        is_small = len(self.part.waiting) <= _PLAIN and self.tried < FIRST_LOOK
        return Runner(is_small and plain is not kernels.sweep).kernel(plain)

    def _table(self, states: int) -> Table:
        words = -(-len(self.part.waiting) // kernels.BITS)
        room = min(states, _MOST_WORDS // words) + len(self.part.waiting) + 2
        table = new_table(self.part, room)
        begin = self._kernel(kernels.begin)
        begin(self.part, new_board(self.part), table, self.live, self.floor)
        return table

    def _explore(self, table: Table, nodes: int) -> bool:
        """Whether the search came to an end."""
        board, explore = new_board(self.part), self._kernel(kernels.explore)
        self._kernel(kernels.lift)(table, 0)
        end = kernels.LIMITED
        while end != SOLVED and table.tally[TRIED] < nodes and not self.limits.is_over:
            before = int(table.tally[TRIED])
            end = explore(self.part, board, table, self.peak, min(nodes, before + _SLICE))
            if int(table.tally[TRIED]) == before and end != SOLVED:
                break  # no room for more states
        self.tried += int(table.tally[TRIED])
        is_empty = table.tally[kernels.HEAPED] == 0
        top = int(table.heap[0])
        level = self.peak if is_empty else int(table.entry[PEAK, top])
        if end == SOLVED and not is_empty and level < self.peak:
            self._note(table, top)
        self.floor = max(self.floor, min(level, self.peak))
        return end == SOLVED

    def _sweep(self, width: int) -> None:
        """A beam, for an order with a lower peak."""
        total = len(self.part.waiting)
        table, heads = self._table(width * total * 8), np.zeros(total + 1, np.int64)
        last = self._kernel(kernels.sweep)(self.part, new_board(self.part), table, self.peak, width, heads)
        self.tried += int(table.tally[TRIED])
        if last != kernels.NONE:
            self._note(table, int(last))

    def _note(self, table: Table, number: int) -> None:
        """Takes over the order that led to a final state."""
        board, way = new_board(self.part), np.zeros(len(self.part.waiting) + 1, np.int64)
        self._kernel(kernels.retrace)(self.part, board, table, number, self.live, way)
        self.order, self.peak = board.trail.tolist(), int(table.entry[PEAK, number])
