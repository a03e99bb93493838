"""Answers found by brute force, for tests: too simple to be wrong, too slow for use."""

from collections.abc import Sequence

from allocator.problem import FREE, Problem
from allocator.steps import Program


def is_right(problem: Problem, offset: Sequence[int], arena_bytes: int) -> bool:
    """Checks a plan tick by tick and byte by byte; O(ticks * chunks * bytes)."""
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
    if problem.conflicts is not None:
        pairs = zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True)
        taken = [set(range(offset[r.id], offset[r.id] + r.size)) for r in rows]
        return all(taken[a].isdisjoint(taken[b]) for a, b in pairs)
    for tick in range(max((r.end for r in rows), default=0)):
        holder: dict[int, int] = {}
        for row in rows:
            for byte in range(offset[row.id], offset[row.id] + row.size) if row.begin <= tick < row.end else ():
                other = holder.setdefault(byte, row.id)
                newcomers = [c for c in (row.id, other) if c in over and rows[c].begin == tick]
                in_pair = any(over[c][0] in (row.id, other) for c in newcomers)
                if other != row.id and not in_pair:
                    return False
    return True


def minimal_peak(problem: Problem) -> int:
    """Returns the smallest arena of any plan: tries every offset of every chain, capacity by capacity.

    For 7 chunks at most. Chunks are sets of bytes: bit b is byte b of the arena.
    """
    chains = _chains(problem)
    capacity = 0
    while not _fits(problem, chains, _conflicting(problem), {}, capacity):
        capacity += 1
    return capacity


def _chains(problem: Problem) -> list[list[tuple[int, int]]]:
    """Returns (chunk, its offset in the root) of each chain, the root first; the largest chain first, none empty."""
    parent = {
        int(s): (int(d), int(at)) for s, d, at in zip(problem.src, problem.dest, problem.overwrite_offset, strict=True)
    }
    result: dict[int, list[tuple[int, int]]] = {c: [(c, 0)] for c in range(len(problem)) if c not in parent}
    for chunk in parent:
        root, at = chunk, 0
        while root in parent:
            root, step = parent[root]
            at += step
        result[root].append((chunk, at))
    return sorted((c for r, c in result.items() if problem.size[r]), key=lambda c: -problem.size[c[0][0]])


def _conflicting(problem: Problem) -> dict[int, set[int]]:
    """Returns the chunks with which each chunk may share no byte, if they are not in its chain."""
    if problem.conflicts is None:
        ticks = {r.id: set(range(r.begin, r.end)) for r in problem.rows()}
        return {a: {b for b in ticks if a != b and ticks[a] & ticks[b]} for a in ticks}
    result: dict[int, set[int]] = {c: set() for c in range(len(problem))}
    for a, b in zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True):
        result[a].add(b)
        result[b].add(a)
    return result


def _fits(
    problem: Problem,
    chains: list[list[tuple[int, int]]],
    conflicting: dict[int, set[int]],
    taken: dict[int, int],
    capacity: int,
) -> bool:
    """Returns whether all chains fit within the capacity, beside the bytes that are taken."""
    if not chains:
        return True
    root = chains[0][0][0]
    pinned, size, alignment = int(problem.pinned[root]), int(problem.size[root]), int(problem.alignment[root])
    for offset in (pinned,) if pinned != FREE else range(0, capacity - size + 1, alignment):
        own = {chunk: ((1 << int(problem.size[chunk])) - 1) << offset + at for chunk, at in chains[0]}
        is_free = all(not own[c] & taken[r] for c in own for r in conflicting[c] & taken.keys())
        if offset + size <= capacity and is_free and _fits(problem, chains[1:], conflicting, taken | own, capacity):
            return True
    return False


def live_bytes(problem: Problem, tick: int) -> int:
    """Returns the bytes of the chunks alive in a tick; an overwriter counts from the tick after its first."""
    return sum(r.size for r in problem.rows() if r.begin + (r.id in problem.src) <= tick < r.end)


def owner_of(program: Program, value: int) -> tuple[int, int]:
    """Returns the value that owns the bytes, and the offset of `value` there, through its views."""
    views = {v.out: v for step in program.steps for v in step.views}
    at = 0
    while value in views:
        at += views[value].offset
        value = views[value].src
    return value, at


def life_of(program: Program, owner: int) -> tuple[int, int]:
    """Returns [begin, end) of the chunk of an owner: all ticks that read or write one of its values."""
    ticks = []
    for tick, step in enumerate(program.steps):
        named = (*step.reads, *step.writes)
        ticks += [tick for value in named if owner_of(program, value)[0] == owner]
    return min(ticks), max(ticks) + 1
