"""Generators for tests; all they draw is valid by construction."""

import numpy as np
from attrs import define, field, frozen
from hypothesis import strategies as st

from allocator.problem import Problem
from allocator.steps import OverwriteForward, Program, Step, ViewForward
from tests.helpers.allocator.random_problems import Kind, built, relabelled

ALIGNMENTS = (1, 2, 4, 64)


@frozen
class _Drawn:
    draw: st.DrawFn

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


@frozen
class _Thrown:
    rng: np.random.Generator

    def number(self, low: int, high: int) -> int:
        bits = (high - low).bit_length()
        return low + int.from_bytes(self.rng.bytes(bits // 8 + 8)) % (high - low + 1)


@st.composite
def problems(
    draw: st.DrawFn,
    max_chunks: int = 12,
    max_size: int = 9,
    horizon: int = 8,
    alignments: tuple[int, ...] = ALIGNMENTS,
    *,
    overwrites: bool = True,
    pins: bool = False,
    conflicts: bool = False,
) -> Problem:
    """Draws problems with empty chunks; overwrite chains, pins and conflicts instead of lifetimes if allowed."""
    kind = Kind(
        max_size,
        horizon,
        alignments,
        overwrites=60 if overwrites else 0,
        pins=draw(st.sampled_from((0, 20, 70))) if pins else 0,
        highest=4 * max_size,
        is_timeless=draw(st.booleans()) if conflicts else False,
    )
    return built(_Drawn(draw), draw(st.integers(0, max_chunks)), kind)


def random_problem(rng: np.random.Generator, count: int, kind: Kind) -> Problem:
    """Returns a problem of `count` chunks, in an order that says nothing of them."""
    problem = built(_Thrown(rng), count, kind)
    return relabelled(problem, rng.permutation(count).tolist())


def offsets(problem: Problem, highest: int = 20) -> st.SearchStrategy[list[int]]:
    """Draws any offsets for a problem, mostly wrong ones."""
    return st.lists(st.integers(0, highest), min_size=len(problem), max_size=len(problem))


@define
class _Writer:
    draw: st.DrawFn
    max_size: int
    sizes: list[int] = field(factory=list)
    extent: dict[int, tuple[int, int, int]] = field(factory=dict)
    """Value -> (the value that owns its bytes, where it begins there, size)."""

    def new(self) -> int:
        value, size = len(self.sizes), self.draw(st.integers(0, self.max_size))
        self.sizes.append(size)
        self.extent[value] = (value, 0, size)
        return value

    def view(self, src: int) -> ViewForward:
        owner, at, _ = self.extent[src]
        whole = self.sizes[owner]
        size = self.draw(st.integers(0, whole))
        start = self.draw(st.integers(0, whole - size))
        out = len(self.sizes)
        self.sizes.append(size)
        self.extent[out] = (owner, start, size)
        return ViewForward(out, src, start - at)

    def some(self, values: list[int], most: int) -> tuple[int, ...]:
        if not values:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(values), max_size=most)))

    def step(self) -> Step:
        values = list(range(len(self.sizes)))
        recent = values[-4:]
        reads = self.some(recent, 2) + self.some(values, 1)
        writes = tuple(self.new() for _ in range(self.draw(st.integers(0, 2))))
        pairs = [(out, src) for out in writes for src in sorted(set(reads))]
        overwrites = tuple(
            OverwriteForward(out, src, self.draw(st.integers(0, 2))) for out, src in pairs if self.draw(st.booleans())
        )
        views = tuple(self.view(src) for src in self.some(list(range(len(self.sizes)))[-3:], 2))
        return Step(reads, writes, views, overwrites)


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 8, max_size: int = 6) -> Program:
    """Draws well-formed programs: a feed step, steps with reads, writes, views and overwrites, a fetch step."""
    writer = _Writer(draw, max_size)
    feed = Step(writes=tuple(writer.new() for _ in range(draw(st.integers(1, 3)))))
    body = [writer.step() for _ in range(draw(st.integers(0, max_steps)))]
    fetch = Step(reads=writer.some(list(range(len(writer.sizes))), 3))
    return Program((feed, *body, fetch), tuple(writer.sizes))
