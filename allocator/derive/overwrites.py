"""Which of the overwrites that operators allow are taken (MegEngine's static memory planning, step 4)."""

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum

from attrs import define, evolve, frozen

from allocator.errors import ProblemError
from allocator.steps import OverwriteForward, Program, Step

Permit = Callable[[int, int], bool]
"""A function of a chunk and of the step that uses it last. It returns whether the step may overwrite the chunk."""


def always(_: int, __: int) -> bool:
    """Permits every overwrite, as is right where steps run one after the other."""
    return True


@frozen
class Taken:
    """Chunk src takes the bytes of chunk dest from byte `offset` of it on."""

    src: int
    dest: int
    offset: int
    required: bool = False


class Refusal(StrEnum):
    """Why an overwrite that an operator allows is not taken; the first of these that holds."""

    NONE = ""
    """It is taken, or may be."""
    EMPTY = "empty"
    """The value that would be written has no bytes."""
    LATER = "later"
    """Something reads the bytes after the step."""
    OUTSIDE = "outside"
    """The value that would be written does not fit into the bytes."""
    BESIDE = "beside"
    """The step itself looks at the bytes by another name."""
    PROTECTED = "protected"
    """The bytes are never to be overwritten."""
    UNSAFE = "unsafe"
    """Where steps run at once, others may still use the bytes."""
    ELSEWHERE = "elsewhere"
    """The value is written over another one."""
    GIVEN = "given"
    """Another value is written over the bytes."""


@frozen
class Judged:
    """An overwrite that the operator of a step allows, in chunks, and why it is not taken (NONE: it is)."""

    step: int
    out: int
    src: int
    candidate: Taken
    refusal: Refusal


@define(eq=False)
class Extents:
    """The data of the decision: the chunk of each value and its offset there; lifetime and bytes of each chunk."""

    chunk_of: list[int]
    offset_in_chunk: list[int]
    begin: list[int]
    end: list[int]
    size: list[int]


def choose_overwrites(
    program: Program, extents: Extents, protected: Collection[int] = (), permit: Permit = always
) -> tuple[Taken, ...]:
    """Returns the overwrites to take of those that are permitted, by src.

    Chunks of `protected` values are never overwritten.

    What is required comes first, then the largest candidate, the tightest, the first; no chunk overwrites or is
    overwritten twice. Raises ProblemError where a required one is not possible.
    """
    return _taken(tuple(_judged(program, extents, protected, permit)), extents)


def judge_overwrites(
    program: Program, extents: Extents, protected: Collection[int] = (), permit: Permit = always
) -> tuple[Judged, ...]:
    """Returns all overwrites that operators allow, in order, each with the reason why it is not taken."""
    judged = tuple(_judged(program, extents, protected, permit))
    taken = _taken(judged, extents)
    takers, pairs = {t.src for t in taken}, {(t.src, t.dest, t.offset) for t in taken}
    return tuple(_settled(j, takers, pairs) for j in judged)


def _settled(judged: Judged, takers: Collection[int], pairs: Collection[tuple[int, int, int]]) -> Judged:
    """Returns the overwrite with the verdict of the choice, where nothing else was against it."""
    candidate = judged.candidate
    if judged.refusal or (candidate.src, candidate.dest, candidate.offset) in pairs:
        return judged
    return evolve(judged, refusal=Refusal.ELSEWHERE if candidate.src in takers else Refusal.GIVEN)


def _taken(judged: tuple[Judged, ...], extents: Extents) -> tuple[Taken, ...]:
    candidates = [j.candidate for j in judged if not j.refusal]
    candidates.sort(key=lambda c: (not c.required, -extents.size[c.src], extents.size[c.dest]))
    takers, givers, taken = set[int](), set[int](), []
    for candidate in candidates:
        if candidate.src not in takers and candidate.dest not in givers:
            takers.add(candidate.src)
            givers.add(candidate.dest)
            taken.append(candidate)
    return tuple(sorted(taken, key=lambda c: c.src))


def _judged(program: Program, extents: Extents, protected: Collection[int], permit: Permit) -> Iterator[Judged]:
    """Yields all that operators allow, and what is against each alone."""
    safe_from = {extents.chunk_of[v] for v in protected}
    for number, step in enumerate(program.steps):
        for overwrite in step.overwrites:
            src, dest = extents.chunk_of[overwrite.out], extents.chunk_of[overwrite.src]
            candidate = Taken(src, dest, extents.offset_in_chunk[overwrite.src] + overwrite.offset, overwrite.required)
            refusal = _refusal(candidate, extents) or _beside(step, overwrite, dest, extents.chunk_of)
            if refusal and overwrite.required and extents.size[src]:
                raise ProblemError(
                    f"value {overwrite.out} must overwrite value {overwrite.src}, which is needed longer"
                )
            if not refusal and not overwrite.required:
                refusal = _forbidden(candidate, extents, safe_from, permit)
            yield Judged(number, overwrite.out, overwrite.src, candidate, refusal)


def _refusal(candidate: Taken, extents: Extents) -> Refusal:
    src, dest, offset = candidate.src, candidate.dest, candidate.offset
    if extents.size[src] <= 0:
        return Refusal.EMPTY
    if extents.begin[src] != extents.end[dest] - 1:
        return Refusal.LATER
    inside = 0 <= offset <= extents.size[dest] - extents.size[src]
    return Refusal.NONE if inside else Refusal.OUTSIDE


def _beside(step: Step, overwrite: OverwriteForward, dest: int, chunk_of: list[int]) -> Refusal:
    """Returns BESIDE where the step uses bytes of dest by another name than the operand that may be overwritten."""
    by_reading = any(chunk_of[v] == dest for v in step.reads if v != overwrite.src)
    by_viewing = any(chunk_of[view.out] == dest for view in step.views)
    return Refusal.BESIDE if by_reading or by_viewing else Refusal.NONE


def _forbidden(candidate: Taken, extents: Extents, safe_from: Collection[int], permit: Permit) -> Refusal:
    if candidate.dest in safe_from:
        return Refusal.PROTECTED
    return Refusal.NONE if permit(candidate.dest, extents.begin[candidate.src]) else Refusal.UNSAFE
