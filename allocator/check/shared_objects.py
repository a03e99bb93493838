"""The judge of shared objects. It believes the problem, and nothing else: it shares no code with what makes objects."""

from enum import StrEnum

import numpy as np

from allocator.check.offsets import Fault, occupied
from allocator.problem import Column, Problem


class ObjectFaultKind(StrEnum):
    """Ways in which a set of objects can be wrong."""

    LENGTH = "length"
    UNKNOWN = "no such object"
    SIZE = "object too small"
    OVERWRITE = "overwrite in another object"
    CONFLICT = "conflict"


def check_objects(problem: Problem, object_of: Column, size: Column) -> Fault | None:
    """Returns the first fault of a set of objects (object of each chunk, bytes of each object), or None. O(n log n).

    Two chunks that are alive in one tick share no object, but for an overwriter and the chunk that it overwrites, which
    must share one: it lies inside the bytes of that chunk. Conflicts, where the problem has them, are believed in place
    of lifetimes. Chunks of no bytes are in no object: what is said of them is not looked at.
    """
    if len(object_of) != len(problem):
        return Fault(ObjectFaultKind.LENGTH, (), f"{len(object_of)} objects named for {len(problem)} chunks")
    return (
        _check_each(problem, object_of, size)
        or _check_overwrites(problem, object_of)
        or (_check_lives(problem, object_of) if problem.conflicts is None else _check_pairs(problem, object_of))
    )


def _check_each(problem: Problem, object_of: Column, size: Column) -> Fault | None:
    used = problem.size > 0
    unknown = np.flatnonzero(used & ((object_of < 0) | (object_of >= len(size))))
    if len(unknown):
        i = int(unknown[0])
        return Fault(ObjectFaultKind.UNKNOWN, (i,), f"chunk {i} is in object {object_of[i]} of {len(size)}")
    chunks = np.flatnonzero(used)
    small = chunks[size[object_of[chunks]] < problem.size[chunks]]
    if len(small):
        i = int(small[0])
        message = f"chunk {i} has {problem.size[i]} bytes, but object {object_of[i]} has {size[object_of[i]]}"
        return Fault(ObjectFaultKind.SIZE, (i,), message)
    return None


def _check_overwrites(problem: Problem, object_of: Column) -> Fault | None:
    src, dest = problem.src, problem.dest
    apart = np.flatnonzero((object_of[src] != object_of[dest]) & (problem.size[src] > 0))
    if not len(apart):
        return None
    a, b = int(src[apart[0]]), int(dest[apart[0]])
    message = f"chunk {a} overwrites chunk {b}, but they are in the objects {object_of[a]} and {object_of[b]}"
    return Fault(ObjectFaultKind.OVERWRITE, (a, b), message)


def _check_lives(problem: Problem, object_of: Column) -> Fault | None:
    """Checks lifetimes: neighbours in time, object by object. An overwriter enters one tick late."""
    rows, enter = occupied(problem)
    rows = rows[np.lexsort((enter[rows], object_of[rows]))]
    one, other = rows[:-1], rows[1:]
    meet = np.flatnonzero((object_of[one] == object_of[other]) & (enter[other] < problem.end[one]))
    return _conflict(object_of, one[meet[0]], other[meet[0]]) if len(meet) else None


def _check_pairs(problem: Problem, object_of: Column) -> Fault | None:
    assert problem.conflicts is not None
    one, other = problem.conflicts.one, problem.conflicts.other
    used = (problem.size[one] > 0) & (problem.size[other] > 0)
    meet = np.flatnonzero(used & (object_of[one] == object_of[other]))
    return _conflict(object_of, one[meet[0]], other[meet[0]]) if len(meet) else None


def _conflict(object_of: Column, one: int, other: int) -> Fault:
    a, b = sorted((int(one), int(other)))
    return Fault(ObjectFaultKind.CONFLICT, (a, b), f"chunks {a} and {b} conflict, but share object {object_of[a]}")
