"""Writes a plan as MegEngine's StaticMemoryInfo.json, which its `graph_info_analyze.py` shows in TensorBoard.

A chunk has the name of the tensor that owns it; `arenaplan solve` reads such files again. The format has an address for
each chunk and no heaps, so it holds static plans only; resident weights are one chunk behind the arena.
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
"""The id that means no chunk."""


def write(trace: Trace, out: BinaryIO) -> None:
    """Writes JSON. All chunks are held in memory. Raises OptionError unless it is one static plan, AllocatorError."""
    facts = trace.facts
    if facts.mode != "static" or facts.stages != 1:
        raise OptionError("StaticMemoryInfo.json holds one static plan: no dynamic run, and none of several stages")
    names = {event.tick: event.operator for event in trace if event.tick < facts.ticks}
    out.write(render(instance_of(rectangles_of(trace)), names, facts.resident_weights_bytes))


def instance_of(chunks: Rectangles) -> Instance:
    """Returns the chunks as buffers with names. Raises ProblemError."""
    ids, count = unique_names(chunks.name), len(chunks)
    pairs = [(src, dest) for src, dest in enumerate(chunks.overwrites.tolist()) if dest != NOTHING]
    problem = named_problem(
        ids,
        begin=chunks.begin,
        end=chunks.end,
        size=chunks.size,
        alignment=[1] * count,
        pinned=[FREE] * count,
        src=[src for src, _ in pairs],
        dest=[dest for _, dest in pairs],
        overwrite_offset=[int(chunks.offset[src] - chunks.offset[dest]) for src, dest in pairs],
    )
    return Instance(problem, ids, chunks.offset)


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names; those that stand there before get a number."""
    seen, unique = set(_TAKEN), list[str]()
    for name in names:
        number, candidate = 1, name
        while candidate in seen:
            number += 1
            candidate = f"{name}#{number}"
        seen.add(candidate)
        unique.append(candidate)
    return tuple(unique)
