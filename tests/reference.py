"""Answers found by brute force, for tests: too simple to be wrong, too slow for use."""

from collections.abc import Sequence

from allocator.problem import FREE, Problem
from allocator.steps import Program


def is_right(problem: Problem, offset: Sequence[int], arena_bytes: int) -> bool:
    """Judges a plan tick by tick and byte by byte; O(ticks * chunks * bytes)."""
    rows = list(problem.rows())
    for row in (r for r in rows if r.size):
        at = offset[row.id]
        if at < 0 or at % row.alignment or at + row.size > arena_bytes or row.pinned not in (FREE, at):
            return False
    over = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    for src, (dest, at) in over.items():
        if rows[src].size and offset[src] != offset[dest] + at:
            return False
    for tick in range(max((r.end for r in rows), default=0)):
        holder: dict[int, int] = {}
        for row in sorted(rows, key=lambda r: r.id in over):
            for byte in range(offset[row.id], offset[row.id] + row.size) if row.begin <= tick < row.end else ():
                other = holder.setdefault(byte, row.id)
                in_pair = row.id in over and over[row.id][0] == other and row.begin == tick
                if other != row.id and not in_pair:
                    return False
    return True


def minimal_peak(problem: Problem) -> int:
    """The smallest arena that any plan needs: every offset of every chain is tried, capacity by capacity."""
    capacity = 0
    while not _fits(problem, capacity):
        capacity += 1
    return capacity


def _fits(problem: Problem, capacity: int) -> bool:
    parent = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    rows = list(problem.rows())
    members: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        root, at = row.id, 0
        while root in parent:
            root, step = parent[root]
            at += step
        members.setdefault(root, []).append((row.id, at))
    roots = sorted((r for r in members if rows[r].size), key=lambda r: -rows[r].size)
    return _place(problem, roots, members, {}, capacity)


def _place(
    problem: Problem,
    roots: list[int],
    members: dict[int, list[tuple[int, int]]],
    placed: dict[int, int],
    capacity: int,
) -> bool:
    if not roots:
        return True
    root = roots[0]
    own = {chunk for chunk, _ in members[root]}
    for start in range(0, capacity - int(problem.size[root]) + 1, int(problem.alignment[root])):
        tried = placed | {chunk: start + at for chunk, at in members[root]}
        meets = any(_meet(problem, tried, a, b) for a in own for b in placed)
        if not meets and _place(problem, roots[1:], members, tried, capacity):
            return True
    return False


def _meet(problem: Problem, offset: dict[int, int], a: int, b: int) -> bool:
    in_time = problem.begin[a] < problem.end[b] and problem.begin[b] < problem.end[a]
    in_bytes = offset[a] < offset[b] + problem.size[b] and offset[b] < offset[a] + problem.size[a]
    return bool(in_time and in_bytes)


def live_bytes(problem: Problem, tick: int) -> int:
    """Bytes of the chunks alive in a tick; an overwriter counts from the tick after its first."""
    return sum(r.size for r in problem.rows() if r.begin + (r.id in problem.src) <= tick < r.end)


def owner_of(program: Program, value: int) -> tuple[int, int]:
    """(value that owns the bytes, where `value` begins there), by walking the views back."""
    views = {v.out: v for step in program.steps for v in step.views}
    at = 0
    while value in views:
        at += views[value].offset
        value = views[value].src
    return value, at


def life_of(program: Program, owner: int) -> tuple[int, int]:
    """[begin, end) of the chunk of an owner: the hull of the ticks that name one of its values."""
    ticks = []
    for tick, step in enumerate(program.steps):
        named = (*step.reads, *step.writes, *(v.out for v in step.views))
        ticks += [tick for value in named if owner_of(program, value)[0] == owner]
    return min(ticks), max(ticks) + 1
