"""The judge of lower bounds: it adds up what a bound's witness names. It searches nothing and imports no maker."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt

from allocator.check.offsets import Fault, occupied
from allocator.problem import FREE, NO_TICK, Bound, Column, Problem, distinct


class BoundFault(StrEnum):
    """Ways in which the witness of a lower bound can be wrong."""

    NAMES = "a witness that names nothing"
    APART = "chunks that may share bytes"
    SUM = "another sum"


def check_bound(problem: Problem, bound: Bound) -> Fault | None:
    """Returns the first fault of a bound's witness; None where it is right, or where there is none to check.

    Without a witness the bound is what its reason says, such as the end of a search: nothing can be added up.
    """
    witness = bound.witness
    if not witness:
        return None
    rows, enter = occupied(problem)
    if witness.tick != NO_TICK:
        rows = rows[(enter[rows] <= witness.tick) & (witness.tick < problem.end[rows])]
    chunks = np.array(witness.chunks, np.int64)
    fault = _check_names(problem, bound, chunks)
    if fault is None and witness.tick == NO_TICK:
        rows = chunks[problem.size[chunks] > 0]
        fault = _check_alive(problem, rows, enter) if problem.conflicts is None else _check_pairs(problem, rows)
    return fault or _check_sum(problem, bound, rows)


def _check_names(problem: Problem, bound: Bound, chunks: Column) -> Fault | None:
    witness = bound.witness
    if witness.cell < 1:
        return Fault(BoundFault.NAMES, (), f"cells of {witness.cell} bytes")
    if witness.tick != NO_TICK and (len(chunks) or problem.conflicts is not None):
        return Fault(BoundFault.NAMES, (), f"tick {witness.tick}, where chunks or pairs of them decide")
    if len(distinct(chunks)) != len(chunks) or ((chunks < 0) | (chunks >= len(problem))).any():
        return Fault(BoundFault.NAMES, (), f"a chunk twice, or one that is none of the {len(problem)}")
    return None


def _check_alive(problem: Problem, rows: Column, enter: Column) -> Fault | None:
    """Checks that lifetimes meet: those that each two meet in a tick all meet in one."""
    if not len(rows):
        return None
    first, last = int(rows[problem.end[rows].argmin()]), int(rows[enter[rows].argmax()])
    if enter[last] < problem.end[first]:
        return None
    return Fault(BoundFault.APART, (first, last), f"chunk {first} ends before chunk {last} needs bytes of its own")


def _check_pairs(problem: Problem, rows: Column) -> Fault | None:
    """Checks that each two chunks conflict, or chunks of their chains in which all their bytes lie."""
    assert problem.conflicts is not None
    chain, count = problem.chains, len(rows)
    member = np.full(len(problem), -1)
    member[chain.root[rows]] = np.arange(count)
    a, b = (_member(problem, rows, member, ids) for ids in (problem.conflicts.one, problem.conflicts.other))
    is_apart = np.eye(count, dtype=bool)
    both = (a >= 0) & (b >= 0)
    is_apart[a[both], b[both]] = is_apart[b[both], a[both]] = True
    missing = np.argwhere(~is_apart)
    if not len(missing):
        return None
    one, other = rows[missing[0]].tolist()
    return Fault(BoundFault.APART, (one, other), f"nothing keeps chunk {one} and chunk {other} apart")


def _member(problem: Problem, rows: Column, member: Column, ids: Column) -> Column:
    """Returns for each chunk the place in `rows` of the one of its chain that lies inside it; -1 for none."""
    place, chain = member[problem.chains.root[ids]], problem.chains
    low, high = chain.offset, chain.offset + problem.size
    inner = rows[place] if len(rows) else ids
    is_inside = (place >= 0) & (low[ids] <= low[inner]) & (high[inner] <= high[ids])
    return np.where(is_inside, place, -1)


def _check_sum(problem: Problem, bound: Bound, rows: Column) -> Fault | None:
    total = _bytes(problem, rows, bound.witness.cell)
    if total == bound.nbytes:
        return None
    return Fault(BoundFault.SUM, (), f"the witness of {bound.nbytes} bytes adds up to {total}")


def _bytes(problem: Problem, rows: Column, cell: int) -> int:
    """Returns the bytes of an arena that chunks need of which no two share a byte.

    From the beginning of a chunk at the edge of a cell to that of the next there are whole cells, enough for it and
    what lies between; of the topmost one the end may be missing. No arena ends below a pinned chunk.
    """
    chain = problem.chains
    root, shift = chain.root[rows], chain.offset[rows]
    is_pinned: npt.NDArray[np.bool_] = problem.pinned[root] != FREE
    ends = (problem.pinned[root] + shift + problem.size[rows])[is_pinned]
    first = shift + np.where(is_pinned, problem.pinned[root], 0)
    is_at_edge = (first % cell == 0) & (is_pinned | (problem.alignment[root] % cell == 0))
    full, rest = np.divmod(problem.size[rows], cell)
    idle = np.where(is_at_edge & (rest > 0), cell - rest, 0)
    total = int((full * cell + idle + np.where(idle > 0, rest, 0)).sum()) - int(idle.max(initial=0))
    return max(total, int(ends.max(initial=0)))
