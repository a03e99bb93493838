"""Generators of problems that files hold; valid by construction."""

from attrs import evolve
from hypothesis import strategies as st

from allocator.io.gaps import conflicts_of
from allocator.io.instance import Gaps, Instance
from allocator.problem import Problem
from tests.helpers.allocator.strategies import problems


def plain(problem: Problem) -> Problem:
    """Returns the same chunks without overwrites and alignments."""
    return evolve(problem, src=(), dest=(), overwrite_offset=(), alignment=[1] * len(problem))


def named(problem: Problem) -> Instance:
    """Returns the problem with a name for each chunk."""
    return Instance(problem, (f"b{i}" for i in range(len(problem))))


@st.composite
def gapped(draw: st.DrawFn, max_chunks: int = 8) -> Instance:
    """Draws buffers with alignments, some of which have gaps; no overwrites."""
    problem = evolve(draw(problems(max_chunks)), src=(), dest=(), overwrite_offset=())
    rows: list[tuple[int, int, int]] = []
    for row in problem.rows():
        for _ in range(draw(st.integers(0, 2)) if row.end - row.begin > 1 else 0):
            begin = draw(st.integers(row.begin, row.end - 1))
            rows.append((row.id, begin, draw(st.integers(begin + 1, row.end))))
    gaps = Gaps(*zip(*rows, strict=True)) if rows else Gaps()
    conflicts = conflicts_of(problem.begin, problem.end, problem.size, gaps) if rows else None
    return evolve(named(evolve(problem, conflicts=conflicts)), gaps=gaps)
