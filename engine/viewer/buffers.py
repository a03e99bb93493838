"""Rectangles of a planning instance that a strategy has placed; its buffers have no operators and no shapes."""

import numpy as np
from attrs import evolve

from allocator.io.instance import Instance
from allocator.problem import Column, Plan, Problem, column
from engine.trace.rectangles import Rectangles
from engine.trace.trace import NOT_RUN, NOTHING, RunInfo


def buffer_rectangles(name: str, instance: Instance, plan: Plan) -> Rectangles:
    """Returns the buffers of `instance` at their offsets in `plan`; the page shows `name` as their model."""
    problem, many = instance.problem, len(instance.problem)
    overwrites = np.full(many, NOTHING)
    overwrites[problem.src] = problem.dest
    ticks, live = _curve(problem)
    facts = _facts(name, problem, plan, ticks, live)
    zeros, no_texts = np.zeros(many, np.int64), ("",) * many
    return Rectangles(
        facts=facts,
        begin=problem.begin,
        end=problem.end,
        born=np.full(many, float(NOT_RUN)),
        died=np.full(many, float(NOT_RUN)),
        offset=np.maximum(plan.offset, 0),
        size=problem.size,
        padding=zeros,
        overwrites=overwrites,
        stage=zeros,
        thread=zeros + NOT_RUN,
        name=instance.ids,
        operator=no_texts,
        schema=no_texts,
        shape=no_texts,
        dtype=no_texts,
        role=("buffer",) * many,
        views=(),
        operators=(),
        stages=(),
        tick=ticks,
        time=np.full(len(ticks), float(NOT_RUN)),
        live=live,
        footprint=np.full(len(ticks), plan.arena_bytes),
        at_peak=_alive(problem, facts.peak_tick),
    )


def _curve(problem: Problem) -> tuple[Column, Column]:
    """Returns the ticks at which the live bytes change, and the live bytes from then on.

    A buffer that is overwritten ends where the other one begins.
    """
    until = _until(problem)
    ticks, place = np.unique(np.concatenate((problem.begin, until)), return_inverse=True)
    change = np.zeros(len(ticks), np.int64)
    np.add.at(change, place, np.concatenate((problem.size, -problem.size)))
    return ticks, np.cumsum(change)


def _until(problem: Problem) -> Column:
    """Returns the tick in which each buffer ends, which for one that is overwritten is where the other begins."""
    until = problem.end.copy()
    until[problem.dest] = problem.begin[problem.src]
    return until


def _alive(problem: Problem, tick: int) -> Column:
    """Returns the buffers that are alive in a tick."""
    return column(np.flatnonzero((problem.begin <= tick) & (tick < _until(problem))))


def _facts(name: str, problem: Problem, plan: Plan, ticks: Column, live: Column) -> RunInfo:
    facts = RunInfo(
        model=name,
        mode="static",
        strategy=plan.strategy,
        status=str(plan.status),
        alignment=int(problem.alignment.max(initial=1)),
        arena_bytes=plan.arena_bytes,
        lower_bound=plan.lower_bound,
        footprint_bytes=plan.arena_bytes,
        ticks=int(problem.end.max(initial=0)),
    )
    if not len(live):
        return facts
    peak = int(live.max())
    return evolve(facts, peak_bytes=peak, possible_peak_bytes=peak, peak_tick=int(ticks[live.argmax()]))
