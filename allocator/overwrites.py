"""Which of the overwrites that operators allow are taken (MegEngine's static memory planning, step 4)."""

from collections.abc import Callable, Collection, Iterator

from attrs import define, frozen

from allocator.errors import ProblemError
from allocator.steps import Overwrite, Program, Step

Permit = Callable[[int, int], bool]
"""Of a chunk and a step that is the last to use it: may the step overwrite it?"""


def always(_: int, __: int) -> bool:
    """Where steps run one after the other."""
    return True


@frozen
class Taken:
    """Chunk src takes the bytes of chunk dest from byte `offset` of it on."""

    src: int
    dest: int
    offset: int
    required: bool = False


@define(eq=False)
class Extents:
    """What the decision looks at: the chunk of each value and its offset there; life and bytes of each chunk."""

    chunk_of: list[int]
    offset_in_chunk: list[int]
    begin: list[int]
    end: list[int]
    size: list[int]


def choose_overwrites(
    program: Program, extents: Extents, protected: Collection[int] = (), permit: Permit = always
) -> tuple[Taken, ...]:
    """The overwrites to take, by src, of those that are permitted. Chunks of `protected` values are never overwritten.

    What is required comes first, then the largest candidate, the tightest, the first; no chunk overwrites or is
    overwritten twice. Raises ProblemError where a required one is not possible.
    """
    safe_from = {extents.chunk_of[v] for v in protected}
    candidates = _candidates(program, extents)
    found = [c for c in candidates if c.required or (c.dest not in safe_from and permit(c.dest, extents.begin[c.src]))]
    found.sort(key=lambda c: (not c.required, -extents.size[c.src], extents.size[c.dest]))
    takers, givers, taken = set[int](), set[int](), []
    for candidate in found:
        if candidate.src not in takers and candidate.dest not in givers:
            takers.add(candidate.src)
            givers.add(candidate.dest)
            taken.append(candidate)
    return tuple(sorted(taken, key=lambda c: c.src))


def _candidates(program: Program, extents: Extents) -> Iterator[Taken]:
    for step in program.steps:
        for overwrite in step.overwrites:
            src, dest = extents.chunk_of[overwrite.out], extents.chunk_of[overwrite.src]
            candidate = Taken(src, dest, extents.offset_in_chunk[overwrite.src] + overwrite.offset, overwrite.required)
            if _is_possible(candidate, extents) and not _is_needed(step, overwrite, dest, extents.chunk_of):
                yield candidate
            elif overwrite.required and extents.size[src]:
                raise ProblemError(
                    f"value {overwrite.out} must overwrite value {overwrite.src}, which is needed longer"
                )


def _is_possible(candidate: Taken, extents: Extents) -> bool:
    src, dest, offset = candidate.src, candidate.dest, candidate.offset
    in_last_tick = extents.begin[src] == extents.end[dest] - 1
    inside = 0 <= offset <= extents.size[dest] - extents.size[src]
    return in_last_tick and inside and extents.size[src] > 0


def _is_needed(step: Step, overwrite: Overwrite, dest: int, chunk_of: list[int]) -> bool:
    """Does the step look at bytes of dest by another name than the operand that may be overwritten?"""
    by_reading = any(chunk_of[v] == dest for v in step.reads if v != overwrite.src)
    return by_reading or any(chunk_of[view.out] == dest for view in step.views)
