"""The race judge: finds from happens-before alone whether two calls might touch the same bytes at once.

A call reads the bytes of its inputs and writes those of its outputs and its workspace. It happens before another if a
path of edges of the schedule leads from one to the other; there is nothing else that orders calls. The feed comes
before all of them and the fetch after, so neither races. Two accesses that share a byte, one of them a write, must be
ordered. The accesses of one call are the data-flow judge's matter.

Calls are replayed in the order of nodes. Each byte knows its last writer and who read it since. A read must come after
that writer; a write must come after it and after those readers. Earlier users of the byte come before that writer,
as was checked then, so no older access needs a look.

Why a plan that both judges let pass is right however its calls run: edges go forward and nodes ascend in ticks, so each
ordered pair of accesses is ordered as in the sequence that the data-flow judge replays. All pairs that matter are
ordered. Hence in every run that keeps the schedule each read of a byte comes after the same write, and before the next
one, as in the sequence, and kernels that read the same bytes write the same bytes. Happens-before as the only ground
for a verdict: Lamport 1978; what to remember of each place: the detector FastTrack (Flanagan and Freund 2009).
"""

from collections.abc import Iterator
from typing import NoReturn

from attrs import define, field

from engine.check.happens_before import FEED, check_schedule, pasts
from engine.check.plans import BARRIER, ScheduledPlanLike
from engine.check.spans import Span, spans
from engine.lower.calls import Call, Storage
from engine.text.errors import RaceError


@define(eq=False)
class _Write:
    """Bytes [low, high) written by one call, or by the feed; `left` of them were not written again.

    `users` has bit k for number `number + k`: bit 0 is the writer, the others read all of the bytes. The feed has
    number 0, node i has number i + 1. Bits count from the writer, so sets are as short as lives.
    """

    number: int
    low: int
    high: int
    left: int
    users: int = 1

    def is_whole(self, low: int, high: int) -> bool:
        """Returns whether bytes [low, high) are those that were written, all of them and no others."""
        return low < high and (self.low, self.high) == (low, high) and self.left == high - low


Held = tuple[_Write, int]
"""The last write of a run of bytes, and who read a part of what was written that has the run in it, as in `users`."""


def check_races(plan: ScheduledPlanLike) -> None:
    """Raises RaceError with two calls that may race, and ScheduleError where the schedule is none for these calls.

    Sets are integers used as bits: takes O(n log n) in the number of accesses, and n / 64 for each of them at worst.
    A read of some of the bytes of a write counts once for each run of them that other reads tell apart.
    """
    check_schedule(plan.schedule, plan.lowered)
    _RaceJudge(plan, spans(plan, 0)).run()


@define(eq=False)
class _RaceJudge:
    """Storages hold places in the list `held`."""

    plan: ScheduledPlanLike
    spans: tuple[Span, ...]
    calls: dict[int, Call] = field(factory=dict)
    held: list[Held] = field(factory=lambda: [(_Write(0, 0, 0, 0), 0)])

    def run(self) -> None:
        for value in self.plan.lowered.inputs.values():
            self._write(value, 0, FEED)
        calls, schedule = iter(self.plan.lowered.calls), self.plan.schedule
        for number, (tick, past) in enumerate(zip(schedule.tick.tolist(), pasts(schedule), strict=True), 1):
            if tick != BARRIER:
                self.calls[number] = next(calls)
                self._call(self.calls[number], number, past)

    def _call(self, call: Call, number: int, past: int) -> None:
        for value in call.inputs:
            self._read(value, number, past)
        for value in call.outputs + call.workspace:
            self._write(value, number, past)

    def _read(self, value: int, number: int, past: int) -> None:
        """Records a read.

        A reader of all that a call wrote is kept once, not in each run: runs and readers may be many.
        """
        span = self.spans[value]
        low, high = span.low, span.high
        first, _ = self.held[span.held.at(low)]
        if first.is_whole(low, high):
            self._after(first, number, past, value, (low, high))
            first.users |= 1 << number - first.number
            return
        for start, end, place in span.held.pieces(low, high):
            write, users = self.held[place]
            self._after(write, number, past, value, (start, end))
            self._hold(span, start, end, (write, users | 1 << number - write.number))

    def _hold(self, span: Span, low: int, high: int, held: Held) -> None:
        span.held.write(low, high, len(self.held))
        self.held.append(held)

    def _after(self, write: _Write, number: int, past: int, value: int, piece: tuple[int, int]) -> None:
        if not past >> write.number & 1:
            self._race(write.number, number, value, "reads", piece)

    def _write(self, value: int, number: int, past: int) -> None:
        span = self.spans[value]
        low, high = span.low, span.high
        for start, end, place in span.held.pieces(low, high):
            write, users = self.held[place]
            unordered = (write.users | users) & ~(past >> write.number)
            if unordered:
                first = write.number + (unordered & -unordered).bit_length() - 1
                self._race(first, number, value, "writes", (start, end))
            write.left -= end - start
        self._hold(span, low, high, (_Write(number, low, high, high - low), 0))

    def _race(self, earlier: int, later: int, value: int, does: str, piece: tuple[int, int]) -> NoReturn:
        one, other = self.calls[earlier], self.calls[later]
        did, used = next(self._accesses(one, value, piece, is_read=does == "reads"))
        (a, b), (c, d) = (self.plan.places[v].layout.extent for v in (used, value))
        raise RaceError(
            f"{one.name} {did} {self._name(used)} and {other.name} {does} {self._name(value)}: both touch bytes "
            f"[{max(a, c)}, {min(b, d)}) of {self._storage(value)}, and neither waits for the other"
        )

    def _accesses(self, call: Call, value: int, piece: tuple[int, int], is_read: bool) -> Iterator[tuple[str, int]]:
        """Yields what a call does to the piece of the storage of `value`; reads are left out where `is_read`."""
        did = [("writes", v) for v in call.outputs + call.workspace]
        did += [] if is_read else [("reads", v) for v in call.inputs]
        for verb, used in did:
            span = self.spans[used]
            if span.held is self.spans[value].held and max(span.low, piece[0]) < min(span.high, piece[1]):
                yield verb, used

    def _name(self, value: int) -> str:
        return repr(self.plan.lowered.values[value].name)

    def _storage(self, value: int) -> str:
        place = self.plan.places[value]
        return "the arena" if place.storage is Storage.ARENA else f"{place.storage.value} {self._name(place.owner)}"
