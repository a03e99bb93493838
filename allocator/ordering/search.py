"""The order of nodes in which fewest bytes are alive at once, and what no order goes below.

The network is cut where all orders agree (`reach.cuts`); the pieces with the highest peaks are searched, until what is
left needs no more than what some piece needs in every order: a best-first search, and where that does not end soon,
beams of growing width first, so that it can leave out more.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from attrs import define, field

from allocator.kernels import ordering as kernels
from allocator.kernels.mode import KernelMode
from allocator.kernels.ordering import HEAP, LOOKED, PEAK, SOLVED, TRAIL, TRIED, OrderPart, StateTable
from allocator.ordering.parts import cut_out, live_between, new_board, new_table
from allocator.ordering.reach import cuts, floors, reach
from allocator.ordering.result import MOST_NODES, NO_LIMITS, Limits, OrderResult, ends, followed, peaks_of
from allocator.ordering.step_graph import StepGraph
from allocator.problem import Column
from allocator.progress import Activity

FIRST_LOOK = 3_000
"""Nodes that are tried before beams are. More of them prove more pieces without beams, and take longer on all others;
tools/bench_order.py times the search."""
WIDTHS = (1, 4, 16, 64, 256)
"""Widths of the beams, in the order in which they are tried. The nodes that a beam tries grow with its width."""
_MOST_WORDS = 2**23
_PLAIN = 40
"""Nodes of a piece up to which the first look runs plain, so that small networks never wait for a compiler."""
_PLAIN_TRIES = 3_000
_SLICE = 20_000
LEAST_LOOKS = 500_000
"""The looks that each piece may take, even if those before it took all."""


Exchange = Callable[[OrderResult], OrderResult | None]
"""Shows others the best order that a search has, and returns the best of all; None where the search is to end."""


def keep_own(own: OrderResult) -> OrderResult:
    """Returns the search's own order: there is nobody to show it."""
    return own


def lowest(graph: StepGraph, limits: Limits = NO_LIMITS) -> OrderResult:
    """Returns the order with the lowest peak that is found; the given one where none is lower."""
    return lower_than(graph, np.arange(len(graph)), limits)


def lower_than(
    graph: StepGraph,
    start: Column,
    limits: Limits = NO_LIMITS,
    floor: int = 0,
    *,
    is_proving: bool = True,
    exchange: Exchange = keep_own,
) -> OrderResult:
    """Returns an order with a lower peak than that of an order `start`; that one where none is found.

    No order has fewer than `floor` bytes alive, as is known before. `is_proving=False` searches by beams alone: so
    nothing is proved, and all nodes are spent on better orders. `exchange` is called now and then; the search goes on
    from the pieces that a better order has, and ends where the highest bound is met.
    """
    if not 0 < len(graph) <= MOST_NODES:
        return followed(graph, start)
    with Activity("ordering", limit=limits.seconds_left) as seen:
        search = _OrderSearch.of(graph, limits, seen, start, floor, is_proving=is_proving, exchange=exchange)
        search.run()
        return search.found()


@define(eq=False)
class _OrderPiece:
    low: int
    high: int
    peak: int
    order: list[int]


@define(eq=False)
class _OrderSearch:
    graph: StepGraph
    limits: Limits
    initial_peak: int
    floor: int
    pieces: list[_OrderPiece]
    looks: int
    seen: Activity
    exchange: Exchange
    is_proving: bool
    tried: int = 0
    is_ended: bool = False

    @classmethod
    def of(
        cls,
        graph: StepGraph,
        limits: Limits,
        seen: Activity,
        start: Column,
        floor: int,
        *,
        is_proving: bool,
        exchange: Exchange,
    ) -> "_OrderSearch":
        before = reach(graph)
        at = cuts(before)
        peaks = peaks_of(graph, start).tolist()
        pieces = [_OrderPiece(a, b, max(peaks[a:b]), start[a:b].tolist()) for a, b in pairwise(at)]
        floor = max(floor, ends(graph), int(floors(graph, before).max()))
        return cls(graph, limits, max(ends(graph), *peaks), floor, pieces, limits.looks, seen, exchange, is_proving)

    def run(self) -> None:
        """Searches from the highest piece down to those that need no more than the others already do."""
        target = self.floor
        for piece in sorted(self.pieces, key=lambda p: (-p.peak, p.low)):
            self.seen.best, self.seen.bound = max(ends(self.graph), *(p.peak for p in self.pieces)), self.floor
            if piece.peak <= target or self.limits.is_over or self.is_ended:
                return
            if piece.high - piece.low > 1:
                self._improve(piece, target)
            target = max(target, piece.peak)

    def _improve(self, piece: _OrderPiece, target: int) -> None:
        """Looks for an order of a piece that needs no more than the target, or else as little as can be."""
        part = cut_out(self.graph, piece.low, piece.high)
        live = live_between(self.graph, piece.low)
        looks = max(self.looks, LEAST_LOOKS)
        search = _PieceSearch(
            part,
            live,
            target,
            piece.peak,
            self.limits,
            piece.high - piece.low <= _PLAIN,
            looks,
            self.seen,
            self.is_proving,
            lambda search: self._exchanged(piece, search),
        )
        search.run()
        self.looks -= looks - search.looks
        self.tried += search.tried
        if search.floor > target:  # what is no more than the target was never asked
            self.floor = max(self.floor, search.floor)
        self._take(piece, search)

    def _take(self, piece: _OrderPiece, search: "_PieceSearch") -> None:
        """Takes over what a search in a piece has found."""
        if search.order:
            piece.order = [piece.low + node for node in search.order]
            piece.peak, search.order = search.peak, []

    def _exchanged(self, piece: _OrderPiece, search: "_PieceSearch") -> bool:
        """Shows the order so far, and takes the pieces of the best of all that are better; returns whether to go on."""
        if self.exchange is keep_own:
            return True
        self._take(piece, search)
        own = self.found()
        best = self.exchange(own)
        if best is own:
            return True
        self.is_ended = best is None or best.peak <= best.bound
        if best is None:
            return False
        if best.peak < own.peak:
            peaks = peaks_of(self.graph, best.order).tolist()
            for one in self.pieces:
                highest = max(peaks[one.low : one.high])
                if highest < one.peak:
                    one.order, one.peak = best.order[one.low : one.high].tolist(), highest
        self.floor, search.peak = max(self.floor, best.bound), min(search.peak, piece.peak)
        return not self.is_ended

    def found(self) -> OrderResult:
        """Returns all pieces one behind the other."""
        peak = max(ends(self.graph), *(p.peak for p in self.pieces))
        order = [node for piece in self.pieces for node in piece.order]
        return OrderResult(order, peak, self.initial_peak, min(self.floor, peak), self.tried)


@define(eq=False)
class _PieceSearch:
    """A search in one piece, for an order with a lower peak than `peak`; less than `floor` is of no use."""

    part: OrderPart
    live: int
    floor: int
    peak: int
    limits: Limits
    is_plain: bool
    looks: int
    seen: Activity
    is_proving: bool
    exchange: Callable[["_PieceSearch"], bool]
    order: list[int] = field(factory=list)
    tried: int = 0
    is_ended: bool = False

    def run(self) -> None:
        """Searches shortly, then by beams, then for the rest of the nodes."""
        nodes = self.limits.nodes_of(self.count)
        self.seen.unit, self.seen.total, self.seen.done = "steps", nodes, 0
        first = min(nodes, FIRST_LOOK)
        if self.is_proving and self._explore(self._table(first), first):
            return
        self.is_plain = self.is_plain and nodes <= _PLAIN_TRIES
        next_one, began = 0, time.monotonic()
        for width in WIDTHS:
            is_useful = self.tried + next_one < nodes and self.looks > 0 and self._is_going_on()
            if is_useful and self.limits.have(4 * (time.monotonic() - began)):
                next_one = 4 * self._sweep(width)
        left = nodes - self.tried
        if self.is_proving and left > 0 and self.looks > 0 and self._is_going_on():
            self._explore(self._table(left), left)

    def _is_going_on(self) -> bool:
        """Exchanges what was found; returns whether there is more to find."""
        self.is_ended = self.is_ended or not self.exchange(self)
        return not self.is_ended and self.peak > self.floor

    @property
    def count(self) -> int:
        """Returns the number of nodes."""
        return int(self.part.node.shape[1]) - 1

    def _kernel(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the kernel to call: small pieces are begun plain, and most end so."""
        return KernelMode(self.is_plain).kernel(plain)

    def _table(self, states: int) -> StateTable:
        words = -(-self.count // kernels.BITS)
        room = min(states, _MOST_WORDS // words) + self.count + 2
        table = new_table(self.part, room)
        begin = self._kernel(kernels.begin)
        begin(self.part, new_board(self.part), table, self.live, self.floor)
        return table

    def _explore(self, table: StateTable, nodes: int) -> bool:
        """Returns whether the search came to an end."""
        board, explore = new_board(self.part), self._kernel(kernels.explore)
        self._kernel(kernels.lift)(table, 0)
        end = kernels.LIMITED
        while end != SOLVED and table.tally[TRIED] < nodes and not self.limits.is_over:
            before = int(table.tally[TRIED])
            end = explore(self.part, board, table, self.peak, min(nodes, before + _SLICE), self.looks)
            self.seen.done += int(table.tally[TRIED]) - before
            if int(table.tally[TRIED]) == before and end != SOLVED:
                break  # no room for more states
            if end != SOLVED and not self._is_going_on():
                break
        self.tried += int(table.tally[TRIED])
        self.looks -= int(board.cursor[LOOKED])
        is_empty = table.tally[kernels.HEAPED] == 0
        top = int(table.entry[HEAP, 0])
        level = self.peak if is_empty else int(table.entry[PEAK, top])
        if end == SOLVED and not is_empty and level < self.peak:
            self._note(table, top)
        self.floor = max(self.floor, min(level, self.peak))
        return end == SOLVED

    def _sweep(self, width: int) -> int:
        """Searches by a beam for an order with a lower peak. Returns how many nodes it tried."""
        total = self.count
        table, heads, board = self._table(width * total * 8), np.zeros(total + 1, np.int64), new_board(self.part)
        last = self._kernel(kernels.sweep)(self.part, board, table, self.peak, width, heads, self.looks)
        self.looks -= int(board.cursor[LOOKED])
        self.tried += int(table.tally[TRIED])
        self.seen.done = self.tried
        if last != kernels.NONE:
            self._note(table, int(last))
        return int(table.tally[TRIED])

    def _note(self, table: StateTable, number: int) -> None:
        """Takes over the order that led to a final state."""
        board, way = new_board(self.part), np.zeros(self.count + 1, np.int64)
        self._kernel(kernels.retrace)(self.part, board, table, number, self.live, way)
        self.order, self.peak = board.node[TRAIL, :-1].tolist(), int(table.entry[PEAK, number])
