"""Which bytes of which storage each place speaks of."""

from typing import Generic, TypeVar

from attrs import frozen

from engine.calls import Storage
from engine.check.byte_map import ByteMap
from engine.check.plans import PlaceLike, PlanLike, StorageKey, storage_of

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
    """The span of each value. At first all bytes of all storages hold `nothing`."""
    storages = dict[StorageKey, ByteMap[T]]()

    def span(place: PlaceLike) -> Span[T]:
        key, size = storage_of(place), plan.arena_bytes
        if place.storage is not Storage.ARENA:
            size = plan.lowered.values[place.owner].spec.nbytes
        if key not in storages:
            storages[key] = ByteMap(nothing)
        return Span(storages[key], *place.layout.extent, size)

    return tuple(map(span, plan.places))
