"""The least time of transfers by a constraint solver (OR-Tools CP-SAT), with a model that shares no code with ours."""

from fractions import Fraction
from functools import cache
from importlib import import_module
from math import lcm
from typing import Any

from attrs import frozen

from allocator.memories.memory import Memory
from allocator.memories.problem import MemoryProblem


@frozen
class Cheapest:
    """The least cost in seconds; `fits` is False where no plan exists."""

    fits: bool
    cost: Fraction


@cache
def _cp_model() -> Any:
    return import_module("ortools.sat.python.cp_model")


def cheapest(problem: MemoryProblem) -> Cheapest:
    """Returns the optimum over all memories and addresses, proved. It is deterministic: one worker.

    Each chunk is a rectangle of bytes and ticks for each memory, that is there or not; in each memory no two overlap.
    A chunk that overwrites another begins its rectangle one tick late, and lies inside the other one in its memory.
    """
    model = _cp_model().CpModel()
    memories, rows = range(len(problem.memories)), list(problem.chunks.rows())
    lies = [[model.new_bool_var(f"{row.id} in {m}") for m in memories] for row in rows]
    late = dict(zip(problem.chunks.src.tolist(), problem.chunks.dest.tolist(), strict=True))
    at = dict(zip(problem.chunks.src.tolist(), problem.chunks.overwrite_offset.tolist(), strict=True))
    offset = {}
    for row in rows:
        model.add_exactly_one(lies[row.id])
        for m in memories:
            _limit(problem, model, lies, row.id, m)
    for m, memory in enumerate(problem.memories):
        offset[m] = _offsets(problem, model, memory, m)
        boxes = [row for row in rows if row.size and row.begin + (row.id in late) < row.end]
        spans, lives = [], []
        for row in boxes:
            where, is_in, begin = offset[m][row.id], lies[row.id][m], row.begin + (row.id in late)
            spans.append(model.new_optional_fixed_size_interval_var(where, row.size, is_in, f"bytes {row.id} {m}"))
            lives.append(
                model.new_optional_fixed_size_interval_var(begin, row.end - begin, is_in, f"life {row.id} {m}")
            )
        model.add_no_overlap_2d(lives, spans)
        for src, dest in late.items():
            model.add(lies[src][m] == lies[dest][m])
            if rows[src].size:
                model.add(offset[m][src] == offset[m][dest] + at[src]).only_enforce_if(lies[src][m])
    costs, unit = _costs(problem)
    model.minimize(sum(costs[row.id][m] * lies[row.id][m] for row in rows for m in memories))
    return _solved(model, unit)


def _limit(problem: MemoryProblem, model: Any, lies: list[list[Any]], chunk: int, m: int) -> None:
    memory = problem.memories[m]
    is_written = problem.written_bytes[chunk] > 0 and not memory.writable
    if not problem.allowed[chunk, m] or is_written or problem.chunks.size[chunk] > memory.capacity:
        model.add(lies[chunk][m] == 0)


def _offsets(problem: MemoryProblem, model: Any, memory: Memory, m: int) -> dict[int, Any]:
    overwriters = set(problem.chunks.src.tolist())
    offsets = {}
    for row in problem.chunks.rows():
        step = 1 if row.id in overwriters else lcm(row.alignment, memory.alignment)
        most = max(0, memory.capacity - row.size)
        offsets[row.id] = step * model.new_int_var(0, most // step, f"place {row.id} {m}")
    return offsets


def _costs(problem: MemoryProblem) -> tuple[list[list[int]], Fraction]:
    """Returns costs as integers, and the seconds of one."""
    exact = [
        [
            Fraction(int(read)) / Fraction(memory.read_bandwidth)
            + Fraction(int(written)) / Fraction(memory.write_bandwidth)
            + int(calls) * Fraction(memory.latency)
            for memory in problem.memories
        ]
        for read, written, calls in zip(problem.read_bytes, problem.written_bytes, problem.calls, strict=True)
    ]
    unit = Fraction(1, lcm(1, *(cost.denominator for row in exact for cost in row)))
    return [[int(cost / unit) for cost in row] for row in exact], unit


def _solved(model: Any, unit: Fraction) -> Cheapest:
    solver = _cp_model().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status == _cp_model().INFEASIBLE:
        return Cheapest(False, Fraction(0))
    assert status == _cp_model().OPTIMAL, solver.status_name(status)
    return Cheapest(True, round(solver.objective_value) * unit)
