"""The smallest arena by a constraint solver (OR-Tools CP-SAT), with a model that shares no code with ours."""

import math
from functools import cache
from importlib import import_module
from itertools import combinations
from typing import Any

import numpy as np
from attrs import frozen

from allocator.problem import FREE, Problem


@frozen
class Optimum:
    """A plan and a proved lower bound of its arena: they are equal, unless the effort was too small."""

    arena_bytes: int
    lower_bound: int
    offset: tuple[int, ...]


@cache
def _cp_model() -> Any:
    return import_module("ortools.sat.python.cp_model")


def optimum(problem: Problem, effort: float = 1.0) -> Optimum:
    """Minimises the arena. It is deterministic: one worker, and `effort` counts work, not time (some seconds each).

    Without overwrites and conflicts, chunks are rectangles in bytes and ticks, and no two overlap. Otherwise, of each
    pair of conflicting chunks in different chains, one lies below the other.
    """
    model = _cp_model().CpModel()
    most = int(problem.size.sum() + problem.alignment.sum() + problem.pinned.max(initial=0))
    arena = model.new_int_var(0, most, "arena")
    offset, chain = _offsets(problem, model, most)
    for row in problem.rows():
        model.add(offset[row.id] + row.size <= arena)
    if problem.conflicts is None:
        _add_breadths(problem, model, arena)
    if len(problem.src) or problem.conflicts is not None:
        _keep_pairs_apart(problem, model, offset, chain)
    else:
        _keep_rectangles_apart(problem, model, offset)
    model.minimize(arena)
    return _solved(model, arena, offset, effort)


def _offsets(problem: Problem, model: Any, most: int) -> tuple[list[Any], list[int]]:
    """Returns an expression for the offset of each chunk, and the root of its chain."""
    taken = zip(problem.src.tolist(), problem.dest.tolist(), problem.overwrite_offset.tolist(), strict=True)
    dest_of = {src: (dest, at) for src, dest, at in taken}
    rows = list(problem.rows())
    offset: dict[int, Any] = {}
    root: dict[int, int] = {}
    for row in sorted(rows, key=lambda r: r.begin):  # what is overwritten is older
        if row.id in dest_of:
            dest, at = dest_of[row.id]
            offset[row.id], root[row.id] = offset[dest] + at, root[dest]
        else:
            place = model.new_int_var(0, most // row.alignment, f"place {row.id}")
            offset[row.id], root[row.id] = place * row.alignment, row.id
            if row.pinned != FREE and row.size:
                model.add(place == row.pinned // row.alignment)
    return [offset[r.id] for r in rows], [root[r.id] for r in rows]


def _add_breadths(problem: Problem, model: Any, arena: Any) -> None:
    """Adds that chunks alive at once fit into the arena. It follows from the rest, but shortens proofs.

    An overwriter lies inside another chunk in its first tick.
    """
    for tick in np.unique(problem.begin).tolist():
        new = set(problem.src[problem.begin[problem.src] == tick].tolist())
        model.add(arena >= sum(r.size for r in problem.rows() if r.begin <= tick < r.end and r.id not in new))


def _keep_rectangles_apart(problem: Problem, model: Any, offset: list[Any]) -> None:
    rows = [row for row in problem.rows() if row.size]
    bytes_of = [model.new_fixed_size_interval_var(offset[r.id], r.size, f"bytes {r.id}") for r in rows]
    life_of = [model.new_fixed_size_interval_var(r.begin, r.end - r.begin, f"life {r.id}") for r in rows]
    model.add_no_overlap_2d(life_of, bytes_of)


def _keep_pairs_apart(problem: Problem, model: Any, offset: list[Any], chain: list[int]) -> None:
    rows = list(problem.rows())
    pairs = [(a.id, b.id) for a, b in combinations(rows, 2) if a.begin < b.end and b.begin < a.end]
    if problem.conflicts is not None:
        pairs = list(zip(problem.conflicts.one.tolist(), problem.conflicts.other.tolist(), strict=True))
    for a, b in pairs:
        if rows[a].size and rows[b].size and chain[a] != chain[b]:
            a_is_below = model.new_bool_var(f"{a} below {b}")
            model.add(offset[a] + rows[a].size <= offset[b]).only_enforce_if(a_is_below)
            model.add(offset[b] + rows[b].size <= offset[a]).only_enforce_if(a_is_below.negated())


def _solved(model: Any, arena: Any, offset: list[Any], effort: float) -> Optimum:
    solver = _cp_model().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    assert status in {_cp_model().OPTIMAL, _cp_model().FEASIBLE}, solver.status_name(status)
    bound = math.ceil(solver.best_objective_bound - 1e-6)
    return Optimum(solver.value(arena), bound, tuple(solver.value(o) for o in offset))
