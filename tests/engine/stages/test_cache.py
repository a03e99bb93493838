"""The tree of plans, against one that looks through all of them."""

import contextlib
import weakref
from collections.abc import Hashable
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.stages.cache import CachedStage, CacheStatistics, PlanCache

Run = tuple[int, ...]
RUNS = st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple), st.booleans()), max_size=30)
"""Keys of stages, and whether the last of them cannot be planned."""


@define(eq=False)
class Plain:
    """Which runs, from their beginning to some stage, are kept, with the number of the run that used them last."""

    size: int
    used: dict[Run, int] = field(factory=dict)
    hits: int = 0

    def run(self, number: int, keys: Run) -> None:
        for end in range(1, len(keys) + 1):
            if keys[:end] in self.used:
                self.hits += 1
                self.used[keys[:end]] = number
            elif end == 1 or keys[: end - 1] in self.used:
                self._keep(number, keys[:end])

    def _keep(self, number: int, path: Run) -> None:
        behind = {p[:-1] for p in self.used}
        leaves = [p for p in self.used if p not in behind and self.used[p] != number]
        if len(self.used) >= self.size and leaves:
            del self.used[min(leaves, key=lambda p: self.used[p])]
        if len(self.used) < self.size:
            self.used[path] = number


def fail() -> Any:
    raise ValueError("no plan")


def stage() -> Any:
    """Returns a stand-in for a stage: the cache reads none."""
    return object()


def run(cache: PlanCache, keys: Run, *, fails: bool = False) -> list[CachedStage]:
    """Asks for the stages of a run; the last may fail, if it is not there."""
    cache.start()
    stages = [cache.get(key, stage) for key in (keys[:-1] if fails else keys)]
    if fails:
        with contextlib.suppress(ValueError):
            stages.append(cache.get(keys[-1], fail))
    return stages


def kept(cache: PlanCache) -> set[tuple[Hashable, ...]]:
    """Returns the paths of all entries in the tree."""
    paths: set[tuple[Hashable, ...]] = set()
    left: list[tuple[tuple[Hashable, ...], CachedStage]] = [((k,), e) for k, e in cache._first.items()]
    while left:
        path, entry = left.pop()
        paths.add(path)
        left += [((*path, k), e) for k, e in entry.followers.items()]
    return paths


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), RUNS)
def test_the_plan_cache_keeps_what_a_plain_one_keeps(size: int, runs: list[tuple[Run, bool]]) -> None:
    cache, plain, asked = PlanCache(size), Plain(size), 0
    for number, (keys, fails) in enumerate(runs):
        stages = run(cache, keys, fails=fails)
        plain.run(number, keys[: len(stages)])
        asked += len(stages)
        assert kept(cache) == plain.used.keys()
        assert cache.statistics == CacheStatistics(size, len(plain.used), plain.hits, asked - plain.hits)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 12))
def test_a_run_of_more_stages_than_are_kept_finds_its_first_ones(size: int, length: int) -> None:
    cache, keys = PlanCache(size), tuple(range(length))
    run(cache, (99, *keys))
    first = run(cache, keys)
    again = run(cache, keys)
    alike = [one is other for one, other in zip(first, again, strict=True)]
    assert alike == [i < size for i in range(length)]


def test_the_plan_cache_keeps_stages_that_many_runs_begin_with() -> None:
    cache = PlanCache(3)
    for last in range(10):
        run(cache, (7, last))
    assert kept(cache) == {(7,), (7, 8), (7, 9)}
    assert cache.statistics == CacheStatistics(size=3, plans=3, hits=9, misses=11)


def test_a_plan_that_is_made_anew_knows_no_later_ones() -> None:
    cache = PlanCache(2)
    old = run(cache, (1, 2))
    run(cache, (3, 4))
    new = run(cache, (1, 2))
    assert not {*old} & {*new}


def test_a_stage_that_cannot_be_takes_no_place() -> None:
    cache = PlanCache(2)
    run(cache, (1, 2))
    with pytest.raises(ValueError, match="no plan"):
        cache.start()
        cache.get(3, fail)
    assert kept(cache) == {(1,), (1, 2)} and cache.statistics == CacheStatistics(2, 2, 0, 2)


def test_the_plan_cache_drops_a_long_run_at_once() -> None:
    cache = PlanCache(50_000)
    entries = run(cache, tuple(range(50_000)))
    last = weakref.ref(entries.pop())
    cache.size = 49_999
    run(cache, (-1,))
    assert last() is None  # with no collection of garbage
    first = weakref.ref(entries[0])
    del entries, cache
    assert first() is None
