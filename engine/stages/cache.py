"""Plans that were made already, by what they were made for; the one that was not used for longest goes first."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from attrs import define, field, frozen

from engine.stages.stage import Stage

Path = tuple[Hashable, ...]
"""The lengths of all names, then for each stage before this one the data that it computed."""


@frozen
class CacheStatistics:
    """`plans` of at most `size` are held; of all that were asked for, `hits` were there and `misses` had to be made."""

    size: int
    plans: int
    hits: int
    misses: int


@define(eq=False)
class PlanCache:
    """Keeps the `size` stages that were used last."""

    size: int
    hits: int = 0
    misses: int = 0
    _stages: "OrderedDict[Path, Stage]" = field(factory=OrderedDict)

    def get(self, path: Path, make: Callable[[], Stage]) -> Stage:
        """The stage of that path, made where it is not there. Whatever `make` raises leaves the cache as it was."""
        if path in self._stages:
            self.hits += 1
            self._stages.move_to_end(path)
            return self._stages[path]
        stage = make()
        self.misses += 1
        self._forget_behind(path)
        self._stages[path] = stage
        while len(self._stages) > self.size:
            self._stages.popitem(last=False)
        return stage

    def _forget_behind(self, path: Path) -> None:
        """Later stages rely on where this one leaves things, and a search that is cut off by time may end elsewhere."""
        for other in [p for p in self._stages if p[: len(path)] == path]:
            del self._stages[other]

    def holds(self, stage: Stage) -> bool:
        """Whether a stage is still there."""
        return any(s is stage for s in self._stages.values())

    @property
    def statistics(self) -> CacheStatistics:
        """What happened so far."""
        return CacheStatistics(self.size, len(self._stages), self.hits, self.misses)
