"""A plan as MegEngine's StaticMemoryInfo.json, which its `graph_info_analyze.py` shows in TensorBoard.

A chunk is called as the tensor that it was made for; `arenaplan solve` reads such files again. The format has an
address for each chunk and knows no heaps, so it is one for static plans; weights are one chunk behind the arena.
"""

from collections.abc import Iterable
from typing import BinaryIO

from allocator.io.instance import Instance, named_problem
from allocator.io.megengine_record import render
from allocator.problem import FREE
from engine.text.errors import OptionError
from engine.trace.rectangles import Rectangles, rectangles_of
from engine.trace.trace import NOTHING, Trace

_TAKEN = frozenset(("-1",))
"""Means no chunk."""


def write(trace: Trace, out: BinaryIO) -> None:
    """JSON. All chunks are held in memory. Raises OptionError for what is no plan of one stage, AllocatorError."""
    facts = trace.facts
    if facts.mode != "static" or facts.stages != 1:
        raise OptionError("StaticMemoryInfo.json holds one static plan: no dynamic run, and none of several stages")
    names = {event.tick: event.operator for event in trace if event.tick < facts.ticks}
    out.write(render(instance_of(rectangles_of(trace)), names, facts.constants_bytes))


def instance_of(found: Rectangles) -> Instance:
    """The chunks as buffers with names. Raises ProblemError."""
    ids, count = _unique(found.name), len(found)
    pairs = [(src, dest) for src, dest in enumerate(found.overwrites.tolist()) if dest != NOTHING]
    problem = named_problem(
        ids,
        begin=found.begin,
        end=found.end,
        size=found.size,
        alignment=[1] * count,
        pinned=[FREE] * count,
        src=[src for src, _ in pairs],
        dest=[dest for _, dest in pairs],
        overwrite_offset=[int(found.offset[src] - found.offset[dest]) for src, dest in pairs],
    )
    return Instance(problem, ids, found.offset)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with a number behind those that were there before."""
    seen, made = set(_TAKEN), list[str]()
    for name in names:
        number, one = 1, name
        while one in seen:
            number += 1
            one = f"{name}#{number}"
        seen.add(one)
        made.append(one)
    return tuple(made)
