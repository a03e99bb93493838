"""The judge of plans for several memories. It believes the problem, and nothing else: it imports no maker of plans."""

import math
from enum import StrEnum
from functools import reduce

import numpy as np
from attrs import evolve

from allocator.check.offsets import Fault, check, occupied
from allocator.memories.plan import CLOSE, NOWHERE, MemoryPlan, Shortage
from allocator.memories.problem import Mask, MemoryProblem
from allocator.problem import FREE, Column, Status, align_up


class MemoryFault(StrEnum):
    """Ways in which a plan for several memories can be wrong, beside those of offsets."""

    LENGTH = "length"
    NO_MEMORY = "no such memory"
    NOT_ALLOWED = "memory not allowed"
    READ_ONLY = "written in read-only memory"
    CHAIN = "overwrite in another memory"
    ALIGNMENT = "alignment of the memory"
    PINNED = "pinned offset"
    CAPACITY = "capacity"
    USES = "wrong list of what a memory holds"
    PEAK = "wrong peak"
    COST = "wrong cost"
    BOUND = "bound above the cost"
    BASELINE = "simple way below the bound"
    STATUS = "wrong status"
    SHORTAGE = "a shortage that does not add up"


def check_plan(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    """Returns the first fault of a plan, or None. O(n log n).

    Every chunk lies in one allowed memory, which is writable if the chunk is written, inside of its capacity, aligned,
    with all of its chain; no two that are alive at once share a byte. Bytes and seconds are added up anew. Where there
    is no plan, the proof is added up.
    """
    if len(plan.memory) != len(problem) or len(plan.offset) != len(problem):
        return Fault(MemoryFault.LENGTH, (), f"{len(plan.memory)} places for {len(problem)} chunks")
    if not plan.has_plan:
        return _check_no_plan(problem, plan)
    return (
        _check_memories(problem, plan)
        or _check_offsets(problem, plan)
        or _check_uses(problem, plan)
        or _check_cost(problem, plan)
    )


def _check_memories(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    memory, chunks = plan.memory, problem.chunks
    unknown = (memory < 0) | (memory >= len(problem.memories))
    if unknown.any():
        return _fault(MemoryFault.NO_MEMORY, problem, plan, unknown)
    writable = np.array([m.writable for m in problem.memories], bool)[memory]
    wrong = {
        MemoryFault.NOT_ALLOWED: ~problem.allowed[np.arange(len(memory)), memory],
        MemoryFault.READ_ONLY: ~writable & (problem.written_bytes > 0),
        MemoryFault.CHAIN: memory != memory[chunks.chains.root],
    }
    for kind, rows in wrong.items():
        if rows.any():
            return _fault(kind, problem, plan, rows)
    return None


def _check_offsets(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    """Checks offsets as those of one arena, in which each memory begins behind the one before, at a common multiple."""
    chunks, offset = problem.chunks, plan.offset
    used, is_root = chunks.size > 0, chunks.chains.root == np.arange(len(chunks))
    alignment = np.array([m.alignment for m in problem.memories], np.int64)[plan.memory]
    capacity = np.array([m.capacity for m in problem.memories], np.int64)[plan.memory]
    wrong = {
        MemoryFault.ALIGNMENT: is_root & (offset % alignment != 0),
        MemoryFault.PINNED: (chunks.pinned != FREE) & (offset != chunks.pinned),
        MemoryFault.CAPACITY: (offset < 0) | (offset > capacity - chunks.size),
    }
    for kind, rows in wrong.items():
        if (rows & used).any():
            return _fault(kind, problem, plan, rows & used)
    edge, start, starts = reduce(math.lcm, {1, *chunks.alignment.tolist()}), 0, []
    for m in range(len(problem.memories)):
        starts.append(start)
        rows = used & (plan.memory == m)
        start = align_up(start + int((offset + chunks.size)[rows].max(initial=0)), edge)
    shifted = offset + np.array(starts, np.int64)[plan.memory]
    return check(evolve(chunks, pinned=np.full(len(chunks), FREE)), shifted, start)


def _check_uses(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    if [use.memory for use in plan.uses] != list(problem.memories):
        return Fault(MemoryFault.USES, (), f"{len(plan.uses)} memories are listed, and {len(problem.memories)} there")
    size = problem.chunks.size
    for m, use in enumerate(plan.uses):
        rows, name = np.flatnonzero(plan.memory == m), use.memory.name
        if not np.array_equal(rows, use.chunks) or not np.array_equal(plan.offset[rows], use.plan.offset):
            return Fault(
                MemoryFault.USES, (), f"memory {name!r} lists other chunks or offsets than those that lie in it"
            )
        end = int((plan.offset + size)[rows][size[rows] > 0].max(initial=0))
        if end != use.plan.arena_bytes or use.plan.lower_bound > end:
            claim = f"an arena of {use.plan.arena_bytes} bytes and a bound of {use.plan.lower_bound}"
            return Fault(MemoryFault.USES, (), f"memory {name!r} has {claim}, and its last byte ends at {end}")
        if use.peak != (peak := _most_alive(problem, rows)):
            return Fault(MemoryFault.PEAK, (), f"memory {name!r} has a peak of {use.peak} bytes, not of {peak}")
    return None


def _most_alive(problem: MemoryProblem, rows: Column) -> int:
    """Returns the most bytes of some chunks alive in one tick."""
    own, enter = occupied(problem.chunks)
    rows = np.intersect1d(rows, own)
    ticks = np.concatenate((problem.chunks.end[rows], enter[rows]))
    change = np.concatenate((-problem.chunks.size[rows], problem.chunks.size[rows]))
    in_order = np.argsort(ticks, kind="stable")  # what ends in a tick leaves before what begins
    return int(np.cumsum(change[in_order]).max(initial=0))


def _check_cost(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    total = 0.0
    for m, use in enumerate(plan.uses):
        rows, memory = plan.memory == m, problem.memories[m]
        seconds = (
            int(problem.read_bytes[rows].sum()) / memory.read_bandwidth
            + int(problem.written_bytes[rows].sum()) / memory.write_bandwidth
            + int(problem.calls[rows].sum()) * memory.latency
        )
        if not math.isclose(use.cost, seconds, rel_tol=CLOSE):
            return Fault(MemoryFault.COST, (), f"memory {memory.name!r} costs {use.cost} s, not {seconds}")
        total += seconds
    if not math.isclose(plan.cost, total, rel_tol=CLOSE):
        return Fault(MemoryFault.COST, (), f"the plan costs {plan.cost} s, and its transfers take {total}")
    if not 0 <= plan.bound <= total * (1 + CLOSE):  # also where it is no number
        return Fault(MemoryFault.BOUND, (), f"no plan is to cost less than {plan.bound} s, but this one costs {total}")
    if plan.status is Status.OPTIMAL and plan.bound < total * (1 - CLOSE):
        return Fault(MemoryFault.STATUS, (), f"a plan of {total} s is optimal, and the bound {plan.bound} s")
    for baseline in plan.baselines:
        if not plan.bound <= baseline.cost * (1 + CLOSE):
            claim = f"{baseline.name!r} costs {baseline.cost} s"
            return Fault(MemoryFault.BASELINE, (), f"{claim}, and no plan less than {plan.bound}")
    return None


def _check_no_plan(problem: MemoryProblem, plan: MemoryPlan) -> Fault | None:
    if (plan.memory != NOWHERE).any() or (plan.offset != NOWHERE).any() or plan.uses or plan.cost != math.inf:
        return Fault(MemoryFault.STATUS, (), f"places or a cost of a plan that is {plan.status}")
    is_proved = plan.bound == math.inf
    if not plan.bound >= 0 or (plan.status is Status.INFEASIBLE) != is_proved or (plan.shortages and not is_proved):
        return Fault(MemoryFault.STATUS, (), f"a plan that is {plan.status}, with a bound of {plan.bound} s")
    faults = (_check_shortage(problem, shortage) for shortage in plan.shortages)
    return next((fault for fault in faults if fault is not None), None)


def _check_shortage(problem: MemoryProblem, shortage: Shortage) -> Fault | None:
    chunks = shortage.chunks
    if not chunks or len(set(chunks)) != len(chunks) or min(chunks) < 0 or max(chunks) >= len(problem):
        return Fault(MemoryFault.SHORTAGE, (), "a chunk twice, none at all, or one that does not exist")
    for chunk in chunks:
        others = [m for m in range(len(problem.memories)) if m not in shortage.memories and _may_lie(problem, chunk, m)]
        if others:
            name = problem.memories[others[0]].name
            return Fault(MemoryFault.SHORTAGE, (chunk,), f"chunk {chunk} may lie in {name!r}, too")
    return _check_bytes(problem, shortage) if shortage.memories else None


def _check_bytes(problem: MemoryProblem, shortage: Shortage) -> Fault | None:
    """Checks that the chunks are alive in the tick, and have more bytes than there are."""
    chunks = np.array(shortage.chunks, np.int64)
    _, enter = occupied(problem.chunks)
    if problem.chunks.conflicts is not None and len(chunks) > 1:
        return Fault(MemoryFault.SHORTAGE, (), "chunks of one tick, where pairs of them decide")
    is_alive = (enter[chunks] <= shortage.tick) & (shortage.tick < problem.chunks.end[chunks])
    if not is_alive.all():
        chunk = int(chunks[np.argmin(is_alive)])
        return Fault(MemoryFault.SHORTAGE, (chunk,), f"chunk {chunk} has no bytes of its own in tick {shortage.tick}")
    nbytes = int(problem.chunks.size[chunks].sum())
    capacity = sum(problem.memories[m].capacity for m in set(shortage.memories))
    if (nbytes, capacity) != (shortage.nbytes, shortage.capacity) or nbytes <= capacity:
        claim = f"{shortage.nbytes} bytes in {shortage.capacity}"
        return Fault(MemoryFault.SHORTAGE, (), f"{claim} are {nbytes} bytes in {capacity}")
    return None


def _may_lie(problem: MemoryProblem, chunk: int, m: int) -> bool:
    """Returns whether nothing keeps the chain of a chunk out of a memory."""
    chunks, memory = problem.chunks, problem.memories[m]
    chain = np.flatnonzero(chunks.chains.root == chunks.chains.root[chunk])
    pinned = [int(p) for p, size in zip(chunks.pinned[chain], chunks.size[chain], strict=True) if size and p != FREE]
    highest = max([0, *pinned]) + int(chunks.size[chain].max())
    return bool(
        problem.allowed[chain, m].all()
        and (memory.writable or not problem.written_bytes[chain].any())
        and highest <= memory.capacity
        and all(p % memory.alignment == 0 for p in pinned)
    )


def _fault(kind: MemoryFault, problem: MemoryProblem, plan: MemoryPlan, rows: Mask) -> Fault:
    i = int(np.argmax(rows))
    where = f"memory {plan.memory[i]}"
    if 0 <= plan.memory[i] < len(problem.memories):
        memory = problem.memories[int(plan.memory[i])]
        where = f"memory {memory.name!r} of {memory.capacity} bytes, alignment {memory.alignment}"
    is_written = ", which is written," if problem.written_bytes[i] else ""
    chunk = f"chunk {i} of {problem.chunks.size[i]} bytes{is_written}"
    return Fault(
        kind,
        (i,),
        f"{chunk} lies at {plan.offset[i]} in {where}; its chain begins with chunk {problem.chunks.chains.root[i]}",
    )
