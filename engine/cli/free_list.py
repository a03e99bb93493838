"""What `arenaplan trace --simulate` writes: a line, or an object of JSON, for each event of the free list."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from attrs import asdict

from allocator.kernels.freelist import NO_CHUNK
from allocator.solvers.free_list import Alloc, Event, Free, Overwrite, Source
from engine.exporters.summary import sized
from engine.text.names import escaped
from engine.text.screen import BOLD, DIM, Screen, cut
from engine.text.tables import in_columns
from engine.trace.simulation import Memory, Simulation

_TITLE = ("tick", "event", "tensor", "bytes", "block", "memory, from low to high")
_RIGHT = (0, 3)
VERSION = 1
"""The version of the JSON, which `docs/free_list.schema.json` describes."""


def show(simulation: Simulation, out: BinaryIO, screen: Screen) -> None:
    """Writes a table for people. On a terminal, lines are cut at its width."""
    count = len(simulation.problem)
    head = f"{escaped(simulation.model) or 'a model'}: {count} chunks in the free list of {simulation.strategy.name}"
    title, *lines = in_columns([_TITLE, *_rows(simulation)], _RIGHT)
    foot = f"pushed down: {sized(simulation.arena_bytes())}; no plan needs less than {sized(simulation.lower_bound)}"
    for line, style in [(head, BOLD), ("", ""), (title, DIM), *((line, "") for line in lines), ("", ""), (foot, BOLD)]:
        fitting = cut(line, screen.width, screen.dots) if screen.is_terminal else line
        screen.put(screen.styled(fitting, style), out)


def write_json(simulation: Simulation, out: BinaryIO, screen: Screen) -> None:
    """Writes one object of JSON."""
    offset = simulation.offsets().tolist()
    data = {
        "version": VERSION,
        "model": simulation.model,
        "strategy": simulation.strategy.name,
        "arena_bytes": simulation.arena_bytes(),
        "lower_bound": simulation.lower_bound,
        "chunks": [
            {"chunk": chunk, "tensor": simulation.tensors[chunk], "bytes": size, "offset": offset[chunk]}
            for chunk, size in enumerate(simulation.problem.size.tolist())
        ],
        "events": [_event(event, memory) for event, memory in simulation.steps()],
    }
    screen.put(json.dumps(data, indent=1), out)


def _event(event: Event, memory: Memory) -> dict[str, Any]:
    fields = asdict(event)
    blocks = [{"chunk": chunk, "bytes": size} for chunk, size in memory]
    return {"event": _kind(event), "bytes": fields.pop("size"), **fields, "memory": blocks}


def _rows(simulation: Simulation) -> Iterator[tuple[str, ...]]:
    names = {chunk: escaped(name) for chunk, name in simulation.tensors.items()} | {NO_CHUNK: "free"}
    for event, memory in simulation.steps():
        blocks = " | ".join(f"{names[chunk]} {size}" for chunk, size in memory)
        how = _merged(event) if isinstance(event, Free) else _placed(event, names)
        yield str(event.tick), _kind(event), names[event.chunk], str(event.size), how, blocks


def _kind(event: Event) -> str:
    return type(event).__name__.lower()


def _placed(event: Alloc | Overwrite, names: dict[int, str]) -> str:
    """Tells where a chunk begins."""
    if isinstance(event, Overwrite):
        sides = f"{event.before} before it and {event.behind} behind it become free"
        return f"over {names[event.dest]}" + (f": {sides}" if event.before or event.behind else "")
    if event.source == Source.END:
        return "new, at the end"
    if event.source == Source.GROW:
        return f"the largest free one grows: {event.available} to {event.size}"
    return f"the smallest that fits: {event.available}" + (f", {event.rest} stay free" if event.rest else "")


def _merged(event: Free) -> str:
    """Tells with what a free block is merged."""
    sides = [f"{size} {side}" for side, size in (("below", event.left), ("above", event.right)) if size]
    return f"merged with {' and '.join(sides)}" if sides else ""
