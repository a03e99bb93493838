"""A cache of planned stages, as a tree of runs: below each stage those that came next, by the data that decided them.

A plan depends on where the stage before left its tensors, so it is kept below that stage only. Leaves of the tree are
evicted first: the least recently used one, but none of the current run. A repeated run of more stages than are kept
finds its first stages in the cache.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from attrs import define, field, frozen

from engine.stages.stage import Stage


@frozen
class CacheStatistics:
    """Numbers of a cache of `plans`, at most `size`: `hits` requests found a plan, `misses` made one."""

    size: int
    plans: int
    hits: int
    misses: int


@frozen(eq=False)
class CachedStage:
    """A stage, and those that followed it, by the data that decided them."""

    stage: Stage
    followers: "dict[Hashable, CachedStage]" = field(factory=dict, repr=False)


_Place = tuple[dict[Hashable, CachedStage], Hashable]
"""The table that has an entry, and its key there."""


@define(eq=False)
class PlanCache:
    """Keeps the `size` most recently used stages. One run at a time: `start`, then `get` for each of its stages.

    The stages of a run that has ended count as used from the last to the first. So no stage was used later than the
    one before it, and the least recently used stage is always a leaf: each access takes constant time.
    """

    size: int
    hits: int = 0
    misses: int = 0
    _first: dict[Hashable, CachedStage] = field(factory=dict, repr=False)
    _next: dict[Hashable, CachedStage] = field(factory=dict, repr=False)
    _running: list[tuple[CachedStage, _Place]] = field(factory=list, repr=False)
    _idle: "OrderedDict[CachedStage, _Place]" = field(factory=OrderedDict, repr=False)

    def start(self) -> None:
        """Begins a run, after the one before has ended, with or without an error."""
        self._idle.update(reversed(self._running))
        self._running.clear()
        self._next = self._first

    def get(self, key: Hashable, make: Callable[[], Stage]) -> CachedStage:
        """Returns the next stage of a run; `make` plans it where it is not in the cache.

        `key` has all that it depends on besides the stages before. An error of `make` leaves the cache as it was.
        """
        place = self._next, key
        entry = self._next.get(key) or CachedStage(make())
        if entry in self._idle:
            self.hits += 1
            del self._idle[entry]
            self._running.append((entry, place))
        else:
            self.misses += 1
            self._keep(entry, place)
        self._next = entry.followers
        return entry

    def _keep(self, entry: CachedStage, place: _Place) -> None:
        """Adds an entry, unless the stages of the current run fill the cache."""
        if len(self) >= self.size:
            if not self._idle:
                return
            _, (siblings, key) = self._idle.popitem(last=False)
            del siblings[key]
        siblings, key = place
        siblings[key] = entry
        self._running.append((entry, place))

    def __len__(self) -> int:
        return len(self._idle) + len(self._running)

    @property
    def statistics(self) -> CacheStatistics:
        """The numbers so far."""
        return CacheStatistics(self.size, len(self), self.hits, self.misses)
