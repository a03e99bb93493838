"""Plans that were made already, as a tree of runs: behind each stage those that came next, by what decided them.

A stage relies on where the one before left things, so it is kept only behind that one, and leaves of the tree go first:
the one that was not used for longest, but none of the run that goes on. A run of more stages than are kept finds its
first ones there when it is repeated.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from attrs import define, field, frozen

from engine.stages.stage import Stage


@frozen
class CacheStatistics:
    """`plans` of at most `size` are held; of all that were asked for, `hits` were there and `misses` had to be made."""

    size: int
    plans: int
    hits: int
    misses: int


@frozen(eq=False)
class Entry:
    """A stage, and those that came behind it, by the data that decided."""

    stage: Stage
    behind: "dict[Hashable, Entry]" = field(factory=dict, repr=False)


_Spot = tuple[dict[Hashable, Entry], Hashable]
"""Where an entry hangs, and under what."""


@define(eq=False)
class PlanCache:
    """Keeps the `size` stages that were used last. One run at a time: `start`, then `get` for each of its stages.

    A run that has ended lets go of its stages from the last to the first. So no stage was used later than the one
    before it, and the stage that was not used for longest is always a leaf: each access takes a constant time.
    """

    size: int
    hits: int = 0
    misses: int = 0
    _first: dict[Hashable, Entry] = field(factory=dict, repr=False)
    _next: dict[Hashable, Entry] = field(factory=dict, repr=False)
    _running: list[tuple[Entry, _Spot]] = field(factory=list, repr=False)
    _idle: "OrderedDict[Entry, _Spot]" = field(factory=OrderedDict, repr=False)

    def start(self) -> None:
        """The run before has ended, if need be by an error; the next stage is a first one."""
        self._idle.update(reversed(self._running))
        self._running.clear()
        self._next = self._first

    def get(self, key: Hashable, make: Callable[[], Stage]) -> Entry:
        """The next stage of a run, made where it is not there; `key` is what it depends on besides the stages before.

        Whatever `make` raises leaves the cache as it was.
        """
        spot = self._next, key
        entry = self._next.get(key) or Entry(make())
        if entry in self._idle:
            self.hits += 1
            del self._idle[entry]
            self._running.append((entry, spot))
        else:
            self.misses += 1
            self._keep(entry, spot)
        self._next = entry.behind
        return entry

    def _keep(self, entry: Entry, spot: _Spot) -> None:
        """Adds an entry, unless all that there is room for belongs to the run that goes on."""
        if len(self) >= self.size:
            if not self._idle:
                return
            _, (siblings, key) = self._idle.popitem(last=False)
            del siblings[key]
        siblings, key = spot
        siblings[key] = entry
        self._running.append((entry, spot))

    def __len__(self) -> int:
        return len(self._idle) + len(self._running)

    @property
    def statistics(self) -> CacheStatistics:
        """What happened so far."""
        return CacheStatistics(self.size, len(self), self.hits, self.misses)
