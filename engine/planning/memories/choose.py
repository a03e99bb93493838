"""Plans in several memories: which memory holds each chunk and each constant, and the addresses there.

The arena is one row of bytes, in which the part of one memory lies behind that of the other: whoever follows, checks,
draws or runs a plan sees one arena. Constants are alive all the time, and a run reads them, or what kernels packed of
them, where the graph has them. So they lie behind the chunks of their memory, outside of the arena, as in every plan.
Only where a memory has no room for that do they lie between its chunks, where the arena leaves their bytes unused.
"""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from attrs import evolve

from allocator.bounds import proved_bound
from allocator.breadths import breadths
from allocator.derive.chunks import Chunks
from allocator.errors import PlanError
from allocator.memories.addresses import problem_in
from allocator.memories.assign import assign
from allocator.memories.judge import check_plan
from allocator.memories.memory import Memory
from allocator.memories.plan import CLOSE, MemoryPlan, MemoryUse, Shortage
from allocator.memories.problem import MemoryProblem, possible
from allocator.problem import NO_CAPACITY, Column, Plan, Problem, Status, align_up, column
from allocator.solvers.base import arena_bytes
from engine.lower.calls import Lowered, Role, Storage, Value
from engine.lower.memories import KINDS, NOT
from engine.lower.traffic import traffic_of
from engine.planning.deadline import Deadline
from engine.planning.memories.placed import Contents, InMemories
from engine.planning.options import Options
from engine.planning.solving import solve_problem
from engine.planning.weights import identity
from engine.text.errors import BudgetError, OptionError, UndecidedError
from engine.text.names import printable
from engine.text.options import close_to
from engine.text.units import format_bytes
from ops.tensor.layout import CACHE_LINE


def contents_of(lowered: Lowered, ids: Mapping[int, int], chunks: Chunks, options: Options) -> Contents:
    """Returns what lies in the memories of the options. Raises OptionError for a rule that fits nothing."""
    row_of = {value: int(chunks.chunk_of[number]) for value, number in ids.items()}
    entries, rows, constants, sizes = lowered.constants.entries, dict[Any, int](), list[int](), list[int]()
    by_name = {v.name: v.id for v in reversed(lowered.values) if v.id in entries}
    for value in lowered.values:
        if value.storage is Storage.CONSTANT:
            owner = lowered.values[value.owner]
            entry = entries[by_name.get(owner.source, owner.id)]  # a copy of a constant stands for it
            key = identity(entry)
            if key not in rows:
                rows[key] = len(chunks) + len(rows)
                constants.append(owner.id)
                sizes.append(entry.nbytes)
            row_of[value.id] = rows[key]
    count = len(chunks) + len(rows)
    allowed = _allowed(lowered, row_of, count, options)
    allowed[: len(chunks), [not memory.writable for memory in options.board]] = False
    return Contents(row_of, len(chunks), tuple(constants), sizes, traffic_of(lowered, row_of, count), allowed)


def _allowed(lowered: Lowered, row_of: Mapping[int, int], count: int, options: Options) -> Any:
    """Returns where the rules let each row lie: (rows, memories). Raises OptionError."""
    names = [memory.name for memory in options.board]
    allowed = np.ones((count, len(names)), bool)
    for pattern, where in options.place:
        rows = [row_of[value] for value in _named(lowered, pattern) if value in row_of]
        if not rows:
            raise OptionError(f"place {pattern!r} fits nothing that lies in a memory{_known(lowered, pattern)}")
        memory = np.array([name == where.removeprefix(NOT) for name in names])
        allowed[rows] &= ~memory if where.startswith(NOT) else memory
    for value, row in row_of.items():
        if not allowed[row].any():
            raise OptionError(
                f"place leaves no memory for {lowered.values[value].name!r}: its rules exclude each other"
            )
    return allowed


def _named(lowered: Lowered, pattern: str) -> set[int]:
    """Returns the values that a pattern fits: by name, by an operator that writes them, or by what they are for.

    None fits a copy of a weight: a rule says where the weight itself lies.
    """
    kinds: dict[str, Sequence[int]] = {
        "inputs": tuple(lowered.inputs.values()),
        "outputs": tuple(lowered.outputs.values()),
        "parameters": (*lowered.parameters, *lowered.parameters.values()),
        "constants": tuple(v.id for v in lowered.values if v.storage is Storage.CONSTANT),
        "workspaces": tuple(v.id for v in lowered.values if v.role is Role.WORKSPACE),
    }
    fitting = set(kinds.get(pattern, ()))
    fitting |= {v.id for v in lowered.values if any(fnmatchcase(name, pattern) for name in (v.name, v.source))}
    for instruction in lowered.instructions:
        if fnmatchcase(instruction.name, pattern):
            fitting.update(instruction.outputs)
    return {v for v in fitting if not _is_slot(lowered, lowered.values[v])}


def _is_slot(lowered: Lowered, value: Value) -> bool:
    """Returns whether a value is a copy of a weight in the arena."""
    var = lowered.graph.vars.get(value.source)
    return value.storage is Storage.ARENA and var is not None and var in lowered.graph.constants


def _known(lowered: Lowered, pattern: str) -> str:
    """Returns the end of a message about a pattern that fits nothing: what was probably meant; "" for what is known."""
    names = (*(v.name for v in lowered.values), *(s.name for s in lowered.instructions), *KINDS)
    return "" if pattern in names else f"; {close_to(pattern, tuple(dict.fromkeys(names)), most=4)}"


def assign_memories(contents: Contents, problem: Problem, lowered: Lowered, options: Options) -> InMemories:
    """Returns a memory and an address for each chunk and constant, where transfers take least time.

    Memories come first, then the addresses in each, by the strategy of the options. Raises BudgetError where it is
    proved that they cannot hold everything, UndecidedError where no plan was found in which they do.
    """
    deadline, count = Deadline.of(options), len(options.board)
    whole = contents.problem(problem, options.board)
    seconds = deadline.within(options, 1 + bool(contents.constants)).timeout
    assigned = assign(whole, options.strategy, options.seed, seconds=seconds, nodes=options.nodes)
    if not assigned.has_plan:
        raise _no_fit(whole, assigned, contents, lowered)
    offset, parts = np.zeros(len(whole), np.int64), list[Plan]()
    for m in range(count):
        limited = deadline.within(options, count - m)
        part, offset[assigned.memory == m] = _placed(whole, assigned, contents, limited, m)
        parts.append(part)
    placed = _in_memories(whole, evolve(assigned, offset=offset), contents, parts)
    fault = check_plan(whole, placed.assigned)
    if fault is not None:
        raise PlanError(f"{assigned.strategy} made a wrong plan of memories ({fault.kind}): {fault.message}")
    return placed


def _placed(
    whole: MemoryProblem, assigned: MemoryPlan, contents: Contents, options: Options, m: int
) -> tuple[Plan, Column]:
    """Returns the plan of the chunks in a memory, and the offsets of all rows in it: chunks, then constants.

    Constants lie behind the chunks if there is room; else all lie where they were assigned.
    """
    rows, memory, use = np.flatnonzero(assigned.memory == m), whole.memories[m], assigned.uses[m]
    is_chunk = rows < contents.chunks
    if is_chunk.all():
        return evolve(use.plan, capacity=NO_CAPACITY), use.plan.offset
    part = problem_in(whole, m, (assigned.memory == m) & (np.arange(len(whole)) < contents.chunks))
    behind, taken = _one_behind_the_other(whole.chunks.size[rows[~is_chunk]], memory.alignment)
    room = (memory.capacity - taken) // memory.alignment * memory.alignment
    plan = solve_problem(part, options, room)
    if plan.arena_bytes <= room:
        constants = align_up(plan.arena_bytes, memory.alignment) + behind
        return evolve(plan, capacity=NO_CAPACITY), column(np.concatenate((plan.offset, constants)))
    offset, chunks = assigned.offset[rows], assigned.offset[rows[is_chunk]]
    return Plan(chunks, arena_bytes(part, chunks), plan.bound, use.plan.strategy), column(offset)


def _one_behind_the_other(size: Column, alignment: int) -> tuple[Column, int]:
    """Returns offsets, from 0 on, of rows that lie one behind the other, and the end of the last one.

    The one that leaves most of its last `alignment` bytes unused lies last: nothing follows, so they are not lost.
    """
    rounded = -(-size // alignment) * alignment
    in_order = np.argsort(rounded - size, kind="stable")
    offset = np.zeros(len(size), np.int64)
    offset[in_order] = np.cumsum(rounded[in_order]) - rounded[in_order]
    return column(offset), int((offset + size).max(initial=0))


def placed_as(whole: MemoryProblem, memory: Column, arena: Plan, constants: Column, contents: Contents) -> InMemories:
    """Returns the memories whose chunks lie, each in its `memory`, as a plan of the whole arena says.

    `constants` has the offset of each constant in its memory. Nothing is searched for, and nothing is checked; the
    bound of the cost lets each row lie where it costs least.
    """
    rows, seconds, offset = np.arange(len(whole)), whole.seconds, np.zeros(len(whole), np.int64)
    offset[contents.chunks :] = constants
    parts, uses, start = list[Plan](), list[MemoryUse](), 0
    for m, where in enumerate(whole.memories):
        start, is_in = align_up(start, _edge(whole)), memory == m
        chunks = np.flatnonzero(is_in[: contents.chunks])
        part, all_of_it = problem_in(whole, m, is_in & (rows < contents.chunks)), problem_in(whole, m, is_in)
        offset[chunks] = np.where(part.size > 0, arena.offset[chunks] - start, 0)
        parts.append(Plan(offset[chunks], arena_bytes(part, offset[chunks]), proved_bound(part), arena.strategy))
        peak, bound = int(breadths(all_of_it).value.max(initial=0)), proved_bound(all_of_it)
        held = Plan(offset[is_in], 0, bound, arena.strategy)
        uses.append(MemoryUse(where, rows[is_in], held, peak, float(seconds[is_in, m].sum())))
        start += parts[-1].arena_bytes
    cost, least = sum(use.cost for use in uses), float(np.where(possible(whole), seconds, np.inf).min(axis=1).sum())
    status = Status.OPTIMAL if cost <= least * (1 + CLOSE) else Status.FEASIBLE
    plan = MemoryPlan(memory, offset, tuple(uses), cost, min(least, cost), status, arena.strategy)
    return _in_memories(whole, plan, contents, parts)


def _edge(whole: MemoryProblem) -> int:
    """Returns the bytes of which the first byte of each part of the arena is a multiple.

    Only chunks decide: the alignment of a memory counts from its own first byte.
    """
    return math.lcm(CACHE_LINE, *whole.chunks.alignment.tolist())


def _in_memories(whole: MemoryProblem, assigned: MemoryPlan, contents: Contents, parts: Sequence[Plan]) -> InMemories:
    """Returns the memories, whose parts of the arena lie one behind the other, with what lies in each as assigned."""
    starts, uses, start, edge = list[int](), list[MemoryUse](), 0, _edge(whole)
    end = np.where(whole.chunks.size > 0, assigned.offset + whole.chunks.size, 0)
    for m, (use, part) in enumerate(zip(assigned.uses, parts, strict=True)):
        start, is_in = align_up(start, edge), assigned.memory == m
        starts.append(start)
        start += part.arena_bytes
        held = evolve(use.plan, offset=assigned.offset[is_in], arena_bytes=int(end[is_in].max(initial=0)))
        uses.append(evolve(use, plan=held))
    return InMemories(whole, evolve(assigned, uses=tuple(uses)), contents, tuple(parts), tuple(starts))


def _no_fit(
    whole: MemoryProblem, assigned: MemoryPlan, contents: Contents, lowered: Lowered
) -> BudgetError | UndecidedError:
    """Returns the error that says, in one line, why the memories hold no plan.

    Where no moment has more bytes than the memories have, what it calls required is the bound of one arena, which may
    be less than is there: they hold as many bytes, but not these. A copy of what no memory can hold is as large, so
    that is proved with copies, too.
    """
    capacity = sum(memory.capacity for memory in whole.memories)
    head = f"the memories cannot hold {lowered.graph.name!r}"
    if assigned.status is not Status.INFEASIBLE:
        return UndecidedError(
            f"no plan of {lowered.graph.name!r} in these memories was found, and it is not proved that there is none: "
            "give larger memories, or fewer rules"
        )
    without = f"{head} without copies between them, which is proved, and no plan with copies was found"
    for shortage in assigned.shortages:
        text = _shortage_text(shortage, whole, contents, lowered)
        why = f"{without}: {text}" if shortage.memories else f"{head}, which is proved: {text}"
        return BudgetError(why, shortage.nbytes, shortage.capacity, shortage.nbytes)
    least = proved_bound(whole.chunks).nbytes
    return BudgetError(f"{without}: {assigned.reason}", least, capacity, least)


def _shortage_text(shortage: Shortage, whole: MemoryProblem, contents: Contents, lowered: Lowered) -> str:
    names = contents.names(lowered)
    largest = sorted(shortage.chunks, key=lambda row: -int(whole.chunks.size[row]))
    what = ", ".join(f"{printable(names[row])} ({format_bytes(int(whole.chunks.size[row]))})" for row in largest[:3])
    more = f" and {len(largest) - 3} more" if len(largest) > 3 else ""
    if not shortage.memories:
        is_chunk, allowed = largest[0] < contents.chunks, whole.allowed[largest[0]].tolist()
        there = ", ".join(
            _room(memory, is_ruled_out=not is_allowed and (memory.writable or not is_chunk))
            for memory, is_allowed in zip(whole.memories, allowed, strict=True)
        )
        return f"no memory can hold {what}: {there}"
    tick = printable(lowered.tick_name(shortage.tick))
    where = " and ".join(whole.memories[m].name for m in shortage.memories)
    return (
        f"{what}{more}, alive in tick {shortage.tick} ({tick}), need {shortage.nbytes} bytes and can lie in {where} "
        f"alone, with {shortage.capacity} bytes"
    )


def _room(memory: Memory, *, is_ruled_out: bool) -> str:
    if is_ruled_out:
        return f"{memory.name} is ruled out"
    return f"{memory.name} has {format_bytes(memory.capacity)}{'' if memory.writable else ' and is read-only'}"
