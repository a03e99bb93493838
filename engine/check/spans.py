"""Spans: the bytes of a storage that each place has."""

from functools import cached_property

from attrs import frozen

from engine.check.byte_map import ByteMap
from engine.check.pieces import Runs, meet, runs_of
from engine.check.plans import PlaceLike, PlanLike
from engine.lower.calls import Storage
from ops.tensor.layout import Layout


@frozen(eq=False)
class Span:
    """Bytes of a storage that has `size` bytes, all of them in [low, high); `held` has the contents of the storage."""

    held: ByteMap
    low: int
    high: int
    size: int
    layout: Layout

    @cached_property
    def runs(self) -> Runs:
        """Returns the bytes themselves."""
        return runs_of(self.layout)

    def meets(self, other: "Span") -> bool:
        """Returns whether a byte is in both."""
        if self.held is not other.held or max(self.low, other.low) >= min(self.high, other.high):
            return False
        if self.layout.is_dense and other.layout.is_dense:
            return True
        return meet(self.runs, other.runs)


def spans(plan: PlanLike, nothing: int) -> tuple[Span, ...]:
    """Returns the span of each value. At first all bytes hold `nothing`.

    There is one arena, and one storage to each constant and caller's array.
    """
    arena, arena_bytes, values = ByteMap(nothing), plan.arena_bytes, plan.lowered.values
    others = dict[tuple[Storage, int], ByteMap]()

    def span(place: PlaceLike) -> Span:
        if place.storage is Storage.ARENA:
            return Span(arena, *place.layout.extent, arena_bytes, place.layout)
        key = place.storage, place.owner
        if key not in others:
            others[key] = ByteMap(nothing)
        return Span(others[key], *place.layout.extent, values[place.owner].spec.nbytes, place.layout)

    return tuple(map(span, plan.places))
