"""What it costs that a unit changes its memory between two visits, and the moments at which it can.

Its bytes are read once and written once, by a call or beside calls by a copy engine. Where a unit can be computed
again, it may also be dropped behind a visit, which costs nothing and frees its bytes, and be computed right before the
next one.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, field, frozen

from allocator.memories.memory import Memory
from allocator.memories.problem import Mask, Seconds, transfer_seconds
from allocator.problem import column

STAYS = -1
"""The bytes of a copy where there can be none."""
IN_TURN = -1
"""The last tick of a copy that no engine makes."""
HIDDEN = 0.05
"""The part of its time that a copy costs even where it is hidden, as one engine makes all copies one after the other.
tools/bench_moves.py has networks with a copy engine."""


@frozen
class Change:
    """A unit changes its memory between a visit and the next one; `visit` is its row.

    The copy begins behind the tick `after`. A copy engine makes it beside the ticks up to `until`; IN_TURN where it is
    over before any other tick. `is_back`: the copy of a unit that stays is dropped. `is_again`: the unit has no bytes
    behind the visit, and is computed again behind the tick `after`.
    """

    visit: int
    after: int
    until: int = IN_TURN
    is_back: bool = False
    is_again: bool = False


@frozen
class Gap:
    """A moment between a visit in the tick `left` and the next one in `back`, at which a unit can change its memory.

    The moment is that before `tick`. To a slower memory, the bytes in the faster one stay until then; to a faster one
    they are there from then on. `leaving` and `entering` are the seconds of the calls beside which an engine then makes
    the copy, of `nbytes`. `again` has the seconds in which the unit is computed again in each memory; empty where it
    cannot be.
    """

    visit: int
    left: int
    tick: int
    back: int
    nbytes: int
    leaving: float = 0.0
    entering: float = 0.0
    again: tuple[float, ...] = ()


@frozen(eq=False)
class Engine:
    """The copy engine of memories, and the clock of the ticks beside which it copies.

    `moments`: at how many ticks between two visits a copy in its turn can be made, at most; two are those at the ends.
    """

    memories: tuple[Memory, ...]
    begins: Seconds
    moments: int = 2
    reaches: Mask = field(init=False)
    slower: Mask = field(init=False)

    @reaches.default
    def _pairs(self) -> Mask:
        """Returns, for each memory to copy into, and each to copy from, whether the engine does it."""
        has_engine = np.array([memory.copy_engine for memory in self.memories]) & (len(self.begins) > 0)
        pairs: Mask = has_engine[:, None] & has_engine
        np.fill_diagonal(pairs, val=False)
        return pairs

    @slower.default
    def _order(self) -> Mask:
        """Returns, for the same pairs, whether the memory to copy into is read no faster."""
        speed = np.array([memory.read_bandwidth for memory in self.memories])
        slower: Mask = speed[:, None] <= speed
        return slower

    def seconds(self, nbytes: int) -> Seconds:
        """Returns the seconds of a copy into each memory, from each memory; 0 where it stays."""
        read, write = transfer_seconds(self.memories, column([nbytes, 0]), column([0, nbytes]), column([1, 1]))
        seconds: Seconds = write[:, None] + read
        np.fill_diagonal(seconds, 0.0)
        return seconds

    def costs(self, gap: Gap) -> Seconds:
        """Returns what a change of memory costs, into each memory, from each memory."""
        seconds = self.seconds(gap.nbytes)
        beside = np.where(self.slower, gap.leaving, gap.entering)
        costs: Seconds = np.where(self.reaches, np.maximum(seconds - beside, HIDDEN * seconds), seconds)
        return costs

    def costs_from(self, gap: Gap, home: int) -> Seconds:
        """Returns what a change costs of a unit that stays in its home; in its turn a copy is made before a visit."""
        may_copy = self.reaches[:, home] if gap.tick < gap.back else np.ones(len(self.memories), bool)
        costs: Seconds = np.tile(np.where(may_copy, self.costs(gap)[:, home], np.inf)[:, None], len(self.memories))
        costs[home] = 0.0
        np.fill_diagonal(costs, 0.0)
        return costs

    def costs_with_dropping(self, gap: Gap) -> Seconds:
        """Returns what a change of memory costs, with a row and a column more, those of a unit that has no bytes."""
        costs: Seconds = np.pad(self.costs(gap), (0, 1), constant_values=np.inf)
        costs[-1, -1] = 0.0
        if gap.again and gap.tick == gap.left + 1:
            costs[-1] = 0.0
        if gap.again and gap.tick == gap.back:
            costs[:-1, -1] = gap.again
        return costs

    def change(self, gap: Gap, into: int, source: int) -> Change:
        """Returns the change of memory in a gap; where it has no bytes before, the unit is computed again."""
        if source == len(self.memories):
            return Change(gap.visit, gap.tick - 1, is_again=True)
        beside = gap.leaving if self.slower[into, source] else gap.entering
        if not self.reaches[into, source]:
            return Change(gap.visit, gap.tick - 1)
        if not beside:
            return Change(gap.visit, gap.tick - 1, gap.tick - 1)
        if self.slower[into, source]:
            return Change(gap.visit, gap.left, gap.tick - 1)
        return Change(gap.visit, gap.tick - 1, gap.back - 1)

    def gaps(self, first: Gap, coming: int) -> Iterator[Gap]:
        """Yields the moments between two visits at which the memory can change, in order of ticks.

        The first is right behind the visit; `coming` are the bytes of a copy right before the next one. An engine has
        the last moment at which it must begin so that the copy is hidden, and the first at which one that began behind
        the visit is.
        """
        if first.nbytes != coming or first.nbytes == STAYS or not self.reaches.any():
            is_same = first.nbytes == coming
            ticks = np.linspace(first.tick, first.back, self.moments if is_same else 2, dtype=int).tolist()
            pairs = [(first.tick, first.nbytes)] * (not is_same) + [(tick, coming) for tick in ticks[not is_same :]]
            yield from (evolve(first, tick=tick, nbytes=nbytes) for tick, nbytes in pairs if nbytes != STAYS)
            return
        begins, longest = self.begins, float(self.seconds(first.nbytes)[self.reaches].max())
        begin, end = float(begins[first.tick]), float(begins[first.back])
        over = int(np.searchsorted(begins, begin + longest))
        late = int(np.searchsorted(begins, end - longest, side="right")) - 1
        for tick in sorted({first.tick, min(over, first.back), max(late, first.tick), first.back}):
            yield evolve(first, tick=tick, leaving=float(begins[tick]) - begin, entering=end - float(begins[tick]))
