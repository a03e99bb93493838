"""Random graphs of many operators on values of one size, and which of them MXNet's colours let share bytes."""

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from attrs import evolve

from allocator import solvers
from allocator.problem import Conflicts
from engine import ExecutionPlan, Graph
from engine.lower.calls import Storage
from engine.lower.schedule import Schedule, by_data
from engine.planning.placed import place_values
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.tensor.spec import Array
from tests.helpers.graphs.race_oracle import reach

SLOT = 64
"""Bytes of a value."""
Matrix = npt.NDArray[np.bool_]
Rule = Callable[[list[int], int, list[int]], bool]
"""Of the users of an old value, the taker of its bytes and the colour of each tick: may it?"""


def _same(specs: Specs, _: Attrs) -> Specs:
    return specs[:1]


def _bind(call: Binding) -> Thunk:
    return partial(_mix, call.inputs, call.y)


def _mix(inputs: tuple[Array, ...], y: Array) -> None:
    y[:] = sum((k + 2) * x for k, x in enumerate(inputs)) % 1021


MIX = OpSchema("mix", _same, (Kernel("numpy", _bind),), arity=(1, 3))
"""A sum that tells its inputs apart."""


def dag(seed: int, window: int = 1000, operators: int = 40) -> Graph:
    """Returns a graph whose operators read one to three of the last `window` values; unread ones are outputs."""
    rng, graph = np.random.default_rng(seed), Graph(f"dag{seed}")
    pool, unread = [graph.input("x", (SLOT // 4,))], dict[int, None]()
    for i in range(1, operators + 1):
        near = np.arange(max(0, i - window), i)
        read = rng.choice(near, min(len(near), int(rng.integers(1, 4))), replace=False).tolist()
        pool.extend(graph.add(MIX, [pool[k] for k in read]))
        unread[i] = None
        for k in read:
            unread.pop(k, None)
    for i in unread:
        graph.output(pool[i], f"y{i}")
    return graph


def users_of(plan: ExecutionPlan) -> list[list[int]]:
    """Returns by chunk the ticks that touch it, in order; the feed is tick 0, the fetch the last."""
    lowered, users = plan.lowered, [set[int]() for _ in range(len(plan.chunks))]
    touched = [(call.tick, call.inputs + call.outputs + call.workspace) for call in lowered.calls]
    touched += [(0, tuple(lowered.inputs.values())), (len(lowered.instructions) + 1, tuple(lowered.outputs.values()))]
    for tick, values in touched:
        for value in values:
            if lowered.values[value].storage is Storage.ARENA:
                users[plan.chunk_of(value)].add(tick)
    return [sorted(ticks) for ticks in users]


def order_of(plan: ExecutionPlan) -> Matrix:
    """Returns [a, b]: whether tick a is over before tick b begins, by the data alone."""
    waits, last = by_data(plan.lowered, "data"), len(plan.lowered.instructions) + 1
    edges = [(0, last)]
    edges += [edge for tick in waits.tick.tolist() for edge in ((0, tick), (tick, last))]
    edges += zip(waits.tick[waits.before].tolist(), waits.tick[waits.after].tolist(), strict=True)
    rows = np.array(edges)
    return reach(Schedule("", range(last + 1), rows[:, 0], rows[:, 1]))


def path_colours(order: Matrix) -> list[int]:
    """Returns MXNet's colours by tick: the longest chain has 0, of the rest the longest has 1, and so on."""
    colour, number = [-1] * len(order), 0
    while -1 in colour:
        chains = dict[int, list[int]]()
        for tick in (t for t, assigned in enumerate(colour) if assigned < 0):
            chains[tick] = [*max((c for t, c in chains.items() if order[t, tick]), key=len, default=[]), tick]
        for tick in max(chains.values(), key=len):
            colour[tick] = number
        number += 1
    return colour


def all_of_one_colour(users: list[int], taker: int, colour: list[int]) -> bool:
    """Returns whether all users of the old value and the taker have one colour: MXNet's rule as it must be meant."""
    return {colour[tick] for tick in users} == {colour[taker]}


def releaser_of_one_colour(users: list[int], taker: int, colour: list[int]) -> bool:
    """Returns whether the last user in sequence and the taker have one colour: the rule that is not enough."""
    return colour[users[-1]] == colour[taker]


def shared_by(plan: ExecutionPlan, rule: Rule) -> ExecutionPlan:
    """Returns the plan with its chunks placed anew by a rule, and no more waiting than for data."""
    users, colour = users_of(plan), path_colours(order_of(plan))
    free = [[a[-1] < b[0] and rule(a, b[0], colour) for b in users] for a in users]
    apart = np.argwhere(~np.array(free) & ~np.array(free).T & np.tri(len(users), k=-1, dtype=bool))
    placed = solvers.solve(evolve(plan.problem, conflicts=Conflicts(apart[:, 0], apart[:, 1])))
    places = place_values(plan.lowered, plan.ids, plan.chunks, placed)
    return evolve(plan, plan=placed, places=places, schedule=by_data(plan.lowered, "colour"))
