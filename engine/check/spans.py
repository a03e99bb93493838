"""Which bytes of which storage each place speaks of."""

from typing import Generic, TypeVar

from attrs import frozen

from engine.calls import Storage
from engine.check.byte_map import ByteMap
from engine.check.plans import PlaceLike, PlanLike

T = TypeVar("T")


@frozen(eq=False)
class Span(Generic[T]):
    """Bytes [low, high) of a storage that has `size` bytes; `held` tells what is in them."""

    held: ByteMap[T]
    low: int
    high: int
    size: int

    def meets(self, other: "Span[T]") -> bool:
        """Whether a byte is in both."""
        return self.held is other.held and max(self.low, other.low) < min(self.high, other.high)


def spans(plan: PlanLike, nothing: T) -> tuple[Span[T], ...]:
    """The span of each value. At first all bytes hold `nothing`.

    There is one arena, and one storage to each constant and caller's array.
    """
    arena, arena_bytes, values = ByteMap(nothing), plan.arena_bytes, plan.lowered.values
    others = dict[tuple[Storage, int], ByteMap[T]]()

    def span(place: PlaceLike) -> Span[T]:
        if place.storage is Storage.ARENA:
            return Span(arena, *place.layout.extent, arena_bytes)
        key = place.storage, place.owner
        if key not in others:
            others[key] = ByteMap(nothing)
        return Span(others[key], *place.layout.extent, values[place.owner].spec.nbytes)

    return tuple(map(span, plan.places))
