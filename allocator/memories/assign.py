"""The best plan for several memories that is found: everything fits, then the transfers take the least time."""

import math
import time

import numpy as np
from attrs import evolve

from allocator.errors import PlanError, UnsupportedProblemError
from allocator.memories.addresses import Addresses, Limits, Placement, fits
from allocator.memories.greedy import Filler, by_arrival, by_contention, by_density, by_size
from allocator.memories.improve import Improvement
from allocator.memories.judge import check_plan
from allocator.memories.plan import CLOSE, NOWHERE, Baseline, BaselineName, MemoryPlan, MemoryUse
from allocator.memories.problem import MemoryProblem
from allocator.memories.shortage import find_shortage, reason_of, reason_of_bound
from allocator.memories.units import Units
from allocator.problem import Column, Status
from allocator.progress import Activity
from allocator.solvers import BEST
from allocator.solvers.base import NO_NODES

CONTENTION, SIZE = "greedy by contention", "greedy by size"


def assign(
    problem: MemoryProblem,
    strategy: str = BEST,
    seed: int = 0,
    *,
    seconds: float = math.inf,
    nodes: int = NO_NODES,
) -> MemoryPlan:
    """Returns the best plan that is found: a memory and an offset for each chunk, with what is proved.

    First everything has to fit; then the time of all transfers is to be short. `solve` makes the offsets in each
    memory, by the `strategy` where its arena fits. One memory has the plan that `solve` makes with the same arguments.
    Of several, `nodes` limit the searches for assignments. `seconds` limit all of it. With no limit of time, the same
    problem, seed and nodes have the same plan on every machine.

    Raises UnsupportedProblemError for conflicts in place of lifetimes where there are several memories, ProblemError
    where two pinned chunks overlap, and PlanError where the judge refuses the plan: an error in this program.
    """
    if problem.chunks.conflicts is not None and len(problem.memories) > 1:
        raise UnsupportedProblemError(
            "several memories need one order of the operators: plan without parallel operators"
        )
    limits = Limits(strategy, seed, time.monotonic() + seconds, nodes)
    with Activity("assigning memories", limit=seconds):
        plan = _assigned(problem, limits)
    fault = check_plan(problem, plan)
    if fault is not None:
        raise PlanError(f"{plan.strategy} made a wrong plan of memories ({fault.kind}): {fault.message}")
    return plan


def _assigned(problem: MemoryProblem, limits: Limits) -> MemoryPlan:
    units = Units.of(problem)
    shortages = find_shortage(units)
    if shortages:
        reason = reason_of(problem, shortages[0])
        return evolve(_no_plan(problem, Status.INFEASIBLE, reason), shortages=shortages)
    addresses = Addresses(units, limits)
    if len(problem.memories) == 1:
        return _in_one(addresses)
    reason = _reason_of_addresses(addresses)
    if reason:
        return _no_plan(problem, Status.INFEASIBLE, reason)
    return _in_several(addresses)


def _in_one(addresses: Addresses) -> MemoryPlan:
    """Returns the plan of one arena, and one that was made for its capacity where the former is too large."""
    units, limits = addresses.units, addresses.limits
    only: Column = np.zeros(len(units), np.int64)
    plan = addresses.smallest(0, only == 0, limits.nodes)
    if not fits(plan):
        plan = addresses.probe(0, only == 0)
    if not fits(plan):
        return _no_plan(units.problem, plan.status, reason_of_bound(units.problem.memories[0], plan))
    placement = Placement(only, (plan,), units.cost(only), plan.strategy)
    baselines = tuple(Baseline(name, placement.cost) for name in BaselineName)
    return evolve(_plan_of(units, placement, placement.cost), baselines=baselines)


def _in_several(addresses: Addresses) -> MemoryPlan:
    """Returns the best of greedy assignments, local search and branch and bound, with a bound by relaxation."""
    units = addresses.units
    starts = _starts(addresses)
    baselines = tuple(
        Baseline(name, min((p.cost for p in starts if p.maker == name), default=math.inf)) for name in BaselineName
    )
    race = Improvement.of(addresses, starts)
    race.run()
    bound = race.bound
    if race.best:
        best = addresses.final(race.best[0])
        return evolve(_plan_of(units, best, bound), baselines=baselines)
    if math.isinf(bound):
        return _no_plan(units.problem, Status.INFEASIBLE, "no assignment fits: branch and bound tried all")
    unknown = _no_plan(
        units.problem, Status.UNKNOWN, "no assignment was found that fits, and none was proved not to be"
    )
    return evolve(unknown, bound=bound, baselines=baselines)


def _reason_of_addresses(addresses: Addresses) -> str:
    """Returns why the chunks that can lie in one memory alone do not fit there, where the planner proves it."""
    units = addresses.units
    is_forced = units.can.sum(axis=1) == 1
    for m, memory in enumerate(units.problem.memories):
        plan = addresses.probe(m, is_forced & units.can[:, m])
        if plan.status is Status.INFEASIBLE:
            return reason_of_bound(memory, plan)
    return ""


def _starts(addresses: Addresses) -> list[Placement]:
    """Returns the greedy placements that fit, those of baselines among them."""
    units = addresses.units
    filler, capacities = Filler.of(units), units.capacities
    orders: dict[str, Column] = {
        CONTENTION: by_contention(units),
        BaselineName.FIRST_COME: by_arrival(units),
        BaselineName.DENSITY: by_density(units),
        SIZE: by_size(units),
    }
    filled = {maker: filler.fill(order, capacities) for maker, order in orders.items()}
    filled[BaselineName.SLOWEST] = filler.fill(by_arrival(units), capacities, slowest=True)
    placements = (addresses.repaired(memory, str(maker)) for maker, memory in filled.items())
    return [placement for placement in placements if placement is not None]


def _plan_of(units: Units, placement: Placement, bound: float) -> MemoryPlan:
    problem = units.problem
    memory = placement.memory[units.unit_of]
    offset = np.zeros(len(problem), np.int64)
    uses = []
    for m, (where, plan) in enumerate(zip(problem.memories, placement.plans, strict=True)):
        rows = np.flatnonzero(memory == m)
        offset[rows] = plan.offset
        peak = int(units.load(placement.memory == m).max(initial=0))
        uses.append(MemoryUse(where, rows, plan, peak, float(problem.seconds[rows, m].sum())))
    is_optimal = placement.cost <= bound * (1 + CLOSE)
    return MemoryPlan(
        memory=memory,
        offset=offset,
        uses=tuple(uses),
        cost=placement.cost,
        bound=min(bound, placement.cost),
        status=Status.OPTIMAL if is_optimal else Status.FEASIBLE,
        strategy=placement.maker,
    )


def _no_plan(problem: MemoryProblem, status: Status, reason: str) -> MemoryPlan:
    nowhere: Column = np.full(len(problem), NOWHERE)
    bound = math.inf if status is Status.INFEASIBLE else 0.0
    return MemoryPlan(nowhere, nowhere, (), math.inf, bound, status, "no plan", reason=reason)
