"""Lifetimes, views and overwrites to memory chunks, and those to a problem."""

from collections.abc import Collection, Mapping

import numpy as np
from attrs import evolve, field, frozen

from allocator.derive.lifetimes import lifetimes
from allocator.derive.overwrites import Extents, Judged, Permit, Taken, always, choose_overwrites, judge_overwrites
from allocator.derive.sharing import share
from allocator.errors import ProblemError
from allocator.problem import DEFAULT_ALIGNMENT, FREE, Column, Problem, column
from allocator.steps import Program, only_required


@frozen(eq=False)
class Chunks:
    """Memory chunks of a program.

    Value v lies in chunk `chunk_of[v]`, `offset_in_chunk[v]` bytes behind its first byte. Chunk c lives in the ticks
    [begin[c], end[c]) and has size[c] bytes. Chunk src[k] overwrites chunk dest[k] from byte overwrite_offset[k] on.
    """

    chunk_of: Column = field(converter=column)
    offset_in_chunk: Column = field(converter=column)
    begin: Column = field(converter=column)
    end: Column = field(converter=column)
    size: Column = field(converter=column)
    src: Column = field(converter=column, factory=tuple)
    dest: Column = field(converter=column, factory=tuple)
    overwrite_offset: Column = field(converter=column, factory=tuple)

    def __len__(self) -> int:
        return len(self.size)


def derive(
    program: Program,
    *,
    overwrite: bool = True,
    reuse: bool = True,
    protected: Collection[int] = (),
    permit: Permit = always,
) -> Chunks:
    """Returns the chunks of a program.

    `overwrite=False` takes no overwrite but those that are required; `reuse=False` lets every chain of chunks live from
    the first tick to the last; the chunks of `protected` values are never overwritten, nor is one in a step where
    `permit` says no. Raises ProblemError for a malformed program.
    """
    chunks = _without_overwrites(program)
    if not overwrite:
        program = only_required(program)
    if any(step.overwrites for step in program.steps):
        taken = choose_overwrites(program, _extents(chunks), protected, permit)
        chunks = _with_overwrites(chunks, taken)
    return chunks if reuse else _live_throughout(chunks, len(program.steps))


def judge(program: Program, *, protected: Collection[int] = (), permit: Permit = always) -> tuple[Judged, ...]:
    """Returns why `derive` takes or refuses each overwrite that operators allow, in order.

    Raises ProblemError as it does.
    """
    return judge_overwrites(program, _extents(_without_overwrites(program)), protected, permit)


def to_problem(
    chunks: Chunks, alignment: int = DEFAULT_ALIGNMENT, padding: int = 0, pinned: Mapping[int, int] | None = None
) -> Problem:
    """Returns the problem of placing the chunks. `pinned` maps chunks to fixed offsets.

    Alignment holds for the roots of chains, and `padding` bytes are added to those that are not empty: an overwriter
    lies where its root makes it lie.
    """
    if padding < 0:
        raise ProblemError(f"a padding of {padding} bytes is negative")
    is_root = np.ones(len(chunks), bool)
    is_root[chunks.src] = False
    return Problem(
        begin=chunks.begin,
        end=chunks.end,
        size=chunks.size + np.where(is_root & (chunks.size > 0), padding, 0),
        alignment=np.where(is_root, alignment, 1),
        pinned=_pinned_column(len(chunks), pinned or {}),
        src=chunks.src,
        dest=chunks.dest,
        overwrite_offset=chunks.overwrite_offset,
    )


def _without_overwrites(program: Program) -> Chunks:
    life, sharing = lifetimes(program), share(program)
    roots, chunk_of = sharing.roots, sharing.chunk_of
    begin, end = life.begin[roots], life.end[roots]  # a view begins after what it looks at
    is_used = sharing.is_root | (life.end > life.begin + 1)
    np.maximum.at(end, chunk_of[is_used], life.end[is_used])  # a view without a reader needs no bytes
    return Chunks(chunk_of, sharing.offset, begin, end, column(program.sizes)[roots])


def _extents(chunks: Chunks) -> Extents:
    columns = (chunks.chunk_of, chunks.offset_in_chunk, chunks.begin, chunks.end, chunks.size)
    return Extents(*(c.tolist() for c in columns))


def _with_overwrites(chunks: Chunks, taken: tuple[Taken, ...]) -> Chunks:
    return evolve(
        chunks,
        src=[t.src for t in taken],
        dest=[t.dest for t in taken],
        overwrite_offset=[t.offset for t in taken],
    )


def _live_throughout(chunks: Chunks, horizon: int) -> Chunks:
    begin, end = np.zeros_like(chunks.begin), np.full_like(chunks.end, horizon)
    begin[chunks.src], end[chunks.dest] = chunks.begin[chunks.src], chunks.end[chunks.dest]
    return evolve(chunks, begin=begin, end=end)


def _pinned_column(count: int, pinned: Mapping[int, int]) -> Column:
    offsets = np.full(count, FREE, np.int64)
    for chunk, offset in pinned.items():
        if not 0 <= chunk < count:
            raise ProblemError(f"chunk {chunk} is pinned to {offset}, but there are {count} chunks")
        offsets[chunk] = offset
    return offsets
