"""Generators for tests; what they draw is valid by construction."""

from attrs import define, field
from hypothesis import strategies as st

from allocator.problem import FREE, Problem
from allocator.steps import Overwrite, Program, Step, View

ALIGNMENTS = (1, 2, 4, 64)


@define
class _Rows:
    begin: list[int] = field(factory=list)
    end: list[int] = field(factory=list)
    size: list[int] = field(factory=list)
    alignment: list[int] = field(factory=list)
    src: list[int] = field(factory=list)
    dest: list[int] = field(factory=list)
    overwrite_offset: list[int] = field(factory=list)

    def add(self, begin: int, length: int, size: int, alignment: int) -> None:
        self.begin.append(begin)
        self.end.append(begin + length)
        self.size.append(size)
        self.alignment.append(alignment)

    def may_be_overwritten(self) -> list[int]:
        old_enough = (i for i in range(len(self.size)) if self.end[i] - self.begin[i] > 1)
        return [i for i in old_enough if i not in self.dest]


@st.composite
def problems(
    draw: st.DrawFn,
    max_chunks: int = 12,
    max_size: int = 9,
    horizon: int = 8,
    alignments: tuple[int, ...] = ALIGNMENTS,
) -> Problem:
    """Problems with overwrite chains and empty chunks; nothing is pinned."""
    rows = _Rows()
    for _ in range(draw(st.integers(0, max_chunks))):
        length, size = draw(st.integers(1, horizon)), draw(st.integers(0, max_size))
        targets = rows.may_be_overwritten()
        dest = draw(st.sampled_from([None, *targets]))
        if dest is not None:
            size = min(size, rows.size[dest])
            rows.src.append(len(rows.size))
            rows.dest.append(dest)
            rows.overwrite_offset.append(draw(st.integers(0, rows.size[dest] - size)))
            rows.add(rows.end[dest] - 1, length, size, 1)
        else:
            rows.add(draw(st.integers(0, horizon)), length, size, draw(st.sampled_from(alignments)))
    pinned = [FREE] * len(rows.size)
    return Problem(rows.begin, rows.end, rows.size, rows.alignment, pinned, rows.src, rows.dest, rows.overwrite_offset)


def offsets(problem: Problem, highest: int = 20) -> st.SearchStrategy[list[int]]:
    """Any offsets for a problem, mostly wrong ones."""
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

    def view(self, src: int) -> View:
        owner, at, _ = self.extent[src]
        whole = self.sizes[owner]
        size = self.draw(st.integers(0, whole))
        start = self.draw(st.integers(0, whole - size))
        out = len(self.sizes)
        self.sizes.append(size)
        self.extent[out] = (owner, start, size)
        return View(out, src, start - at)

    def some(self, values: list[int], most: int) -> tuple[int, ...]:
        if not values:
            return ()
        return tuple(self.draw(st.lists(st.sampled_from(values), max_size=most)))

    def step(self) -> Step:
        known = list(range(len(self.sizes)))
        recent = known[-4:]
        reads = self.some(recent, 2) + self.some(known, 1)
        writes = tuple(self.new() for _ in range(self.draw(st.integers(0, 2))))
        pairs = [(out, src) for out in writes for src in sorted(set(reads))]
        overwrites = tuple(
            Overwrite(out, src, self.draw(st.integers(0, 2))) for out, src in pairs if self.draw(st.booleans())
        )
        views = tuple(self.view(src) for src in self.some(list(range(len(self.sizes)))[-3:], 2))
        return Step(reads, writes, views, overwrites)


@st.composite
def programs(draw: st.DrawFn, max_steps: int = 8, max_size: int = 6) -> Program:
    """Well-formed programs: a feed step, steps with reads, writes, views and overwrites, a fetch step."""
    writer = _Writer(draw, max_size)
    feed = Step(writes=tuple(writer.new() for _ in range(draw(st.integers(1, 3)))))
    body = [writer.step() for _ in range(draw(st.integers(0, max_steps)))]
    fetch = Step(reads=writer.some(list(range(len(writer.sizes))), 3))
    return Program((feed, *body, fetch), tuple(writer.sizes))
