"""Spans: the bytes of a storage that each place has."""

from collections.abc import Iterator
from functools import cached_property
from typing import Generic, TypeVar

from attrs import frozen

from engine.check.byte_map import ByteMap
from engine.check.pieces import Run, runs_of
from engine.check.plans import PlaceLike, PlanLike
from engine.lower.calls import Storage
from ops.tensor.layout import Layout

T = TypeVar("T")


@frozen(eq=False)
class Span(Generic[T]):
    """Bytes of a storage that has `size` bytes, all of them in [low, high); `held` has the contents of the storage."""

    held: ByteMap[T]
    low: int
    high: int
    size: int
    layout: Layout

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Returns the bytes themselves, in order."""
        return runs_of(self.layout)

    def meets(self, other: "Span[T]") -> bool:
        """Returns whether a byte is in both."""
        if self.held is not other.held or max(self.low, other.low) >= min(self.high, other.high):
            return False
        if self.layout.is_dense and other.layout.is_dense:
            return True
        return any(max(a, c) < min(b, d) for (a, b), (c, d) in _neighbours(self.runs, other.runs))


def spans(plan: PlanLike, nothing: T) -> tuple[Span[T], ...]:
    """Returns the span of each value. At first all bytes hold `nothing`.

    There is one arena, and one storage to each constant and caller's array.
    """
    arena, arena_bytes, values = ByteMap(nothing), plan.arena_bytes, plan.lowered.values
    others = dict[tuple[Storage, int], ByteMap[T]]()

    def span(place: PlaceLike) -> Span[T]:
        if place.storage is Storage.ARENA:
            return Span(arena, *place.layout.extent, arena_bytes, place.layout)
        key = place.storage, place.owner
        if key not in others:
            others[key] = ByteMap(nothing)
        return Span(others[key], *place.layout.extent, values[place.owner].spec.nbytes, place.layout)

    return tuple(map(span, plan.places))


def _neighbours(one: tuple[Run, ...], other: tuple[Run, ...]) -> Iterator[tuple[Run, Run]]:
    """Yields pairs of runs among which all are that share a byte: O(n + m)."""
    i = j = 0
    while i < len(one) and j < len(other):
        yield one[i], other[j]
        if one[i][1] <= other[j][1]:
            i += 1
        else:
            j += 1
