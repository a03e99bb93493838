"""Faults of calls that run at once, and of values that are computed inside others."""

from typing import Any

import numpy as np
from attrs import evolve

from allocator.derive.users import Users
from allocator.policies import exact
from allocator.policies.base import Waits
from allocator.policies.edges import Edges
from allocator.policies.exact import ExactPolicy
from allocator.policies.levels import Levels
from allocator.problem import Conflicts, Problem
from engine.lower import schedule
from engine.lower.calls import Value
from engine.lower.schedule import Schedule
from engine.nesting import rewrite
from engine.nesting.hole_filling import Occupied
from engine.nesting.rewrite import _Joining
from engine.nesting.search import Nesting, SubBuffer, _SubBufferSearch
from engine.planning import concurrency
from tests.helpers.faults.base import DATA_FLOW, RACES, Fault, Work, after, constant, patched
from tests.helpers.faults.work import (
    block,
    branches,
    copied,
    gathered,
    joined,
    kept,
    nested,
    planning,
    shared,
    training,
)
from tests.helpers.graphs.concatenations import concat_graph
from tests.helpers.graphs.random_graphs import seeded

_SCHEDULE = "engine/lower/schedule.py"
_NESTING = "engine/nesting/search.py"


def at_once(policy: str) -> Work:
    """Returns what plans branches that may run at once."""
    return planning(branches, parallel=policy)


def _writers_only(users: Users, *_: object) -> Users:
    return Users(np.arange(len(users) + 1), users.writer)


def _of_the_sequence(conflicts: Conflicts, problem: Problem, *_: object) -> Conflicts:
    """Returns the pairs that are alive in one tick of the sequence."""
    one, other = conflicts.one, conflicts.other
    alive = (problem.begin[one] < problem.end[other]) & (problem.begin[other] < problem.end[one])
    return Conflicts(one[alive], other[alive])


def _twice(planned: Schedule, *_: object) -> Schedule:
    tick = planned.tick.copy()
    tick[-1] = tick[-2]
    return evolve(planned, tick=tick)


def _one_element_off(right: Any) -> Any:
    def join(lowered: Any, nesting: Nesting) -> Any:
        def moved(buffer: SubBuffer) -> SubBuffer:
            layout = buffer.layout
            return evolve(buffer, layout=evolve(layout, offset=max(layout.offset - layout.itemsize, 0)))

        return right(lowered, evolve(nesting, sub_buffers={v: moved(b) for v, b in nesting.sub_buffers.items()}))

    return join


def _where_it_is(joining: Any, call: Any, position: int, _: SubBuffer) -> int:
    value: Value = joining.values[call.inputs[position]]
    return value.id


ORDER = (
    Fault(
        "a call does not wait for its data",
        _SCHEDULE,
        RACES,
        patched(schedule, "data_edges", after(lambda edges, *_: edges[:-1])),
        at_once("exact"),
    ),
    Fault(
        "the update of a parameter does not wait for what reads it",
        _SCHEDULE,
        RACES,
        patched(schedule, "anti_dependences", constant([])),
        planning(training, parallel="exact"),
    ),
    Fault(
        "a call does not wait for the bytes that it takes",
        "allocator/policies/edges.py",
        RACES,
        patched(Edges, "waits", constant(Waits())),
        at_once("edges"),
    ),
    Fault(
        "chunks conflict as in the sequence",
        "allocator/policies/exact.py",
        RACES,
        patched(exact, "conflicts", after(_of_the_sequence)),
        at_once("exact"),
    ),
    Fault(
        "an overwrite while others may still read",
        "allocator/policies/exact.py",
        RACES,
        patched(ExactPolicy, "may_overwrite", constant(True)),
        planning(shared, parallel="exact"),
    ),
    Fault(
        "readers do not count as users",
        "engine/planning/concurrency.py",
        RACES,
        patched(concurrency, "users", after(_writers_only)),
        at_once("edges"),
    ),
    Fault(
        "levels have no barriers",
        "allocator/policies/levels.py",
        RACES,
        patched(Levels, "waits", constant(Waits())),
        at_once("levels"),
    ),
    Fault(
        "a call stands twice in the schedule, and another not at all",
        _SCHEDULE,
        RACES,
        patched(concurrency, "by_data", after(_twice)),
        at_once("exact"),
    ),
    Fault(
        "a part is computed one element in front of its place",
        "engine/nesting/rewrite.py",
        DATA_FLOW,
        patched(rewrite, "join", _one_element_off),
        nested(joined),
    ),
    Fault(
        "a part that lies elsewhere is not copied",
        "engine/nesting/rewrite.py",
        DATA_FLOW,
        patched(_Joining, "_placed", lambda _: _where_it_is),
        nested(copied),
    ),
    Fault(
        "a value is computed inside a concatenation by a kernel that writes dense tensors",
        _NESTING,
        DATA_FLOW,
        patched(_SubBufferSearch, "_can_be_written", constant(True)),
        nested(lambda: block(1)),
    ),
    Fault(
        "a value is read inside a concatenation by a kernel that reads dense tensors",
        _NESTING,
        DATA_FLOW,
        patched(_SubBufferSearch, "_is_readable", constant(True)),
        nested(gathered),
    ),
    Fault(
        "a value that is needed longer gives its place to what overwrites it",
        _NESTING,
        DATA_FLOW,
        patched(_SubBufferSearch, "_ends_in", constant(True)),
        nested(kept),
    ),
    Fault(
        "a value is put into a hole that is in use",
        "engine/nesting/hole_filling.py",
        DATA_FLOW,
        patched(Occupied, "overlaps", constant(False)),
        nested(lambda: concat_graph(seeded(46)), filled=True),
    ),
)
