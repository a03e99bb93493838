"""Addresses and lifetimes of tensors, written into the metadata of nodes and values, where viewers show them.

They are for people and other programs. The plan itself is read from the metadata of the model only.
"""

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from engine.lower.calls import Storage, Value
from engine.onnx.embedded import PREFIX
from engine.planning.placed import PlacedPlan


@frozen
class Note:
    """The place of a tensor in the arena: bytes [low, high), for the ticks [begin, end)."""

    low: int
    high: int
    begin: int
    end: int


def annotate(graph: Any, plan: PlacedPlan) -> None:
    """Writes notes into the nodes and values of a GraphProto, in place of older ones. The IR version must allow it."""
    notes = notes_of(plan)
    for value in (*graph.input, *graph.value_info, *graph.output):
        note = notes.get(value.name)
        texts = {} if note is None else {"offset": str(note.low), "bytes": str(note.high - note.low)}
        _write(value, texts if note is None else texts | {"ticks": f"[{note.begin}, {note.end})"})
    for node in graph.node:
        outputs = {name: notes[name] for name in node.output if name in notes}
        _write(node, {"outputs": _json(outputs)} if outputs else {})


def notes_of(plan: PlacedPlan) -> dict[str, Note]:
    """Returns the notes of all tensors in the arena, by name."""
    notes = {}
    for value in plan.lowered.values:
        if value.storage is Storage.ARENA and value.name == value.source:
            notes[value.name] = _note(plan, value)
    return notes


def _note(plan: PlacedPlan, value: Value) -> Note:
    chunk = plan.chunk_of(value.id)
    low, high = plan.places[value.id].layout.extent
    return Note(low, high, int(plan.problem.begin[chunk]), int(plan.problem.end[chunk]))


def _json(notes: Mapping[str, Note]) -> str:
    rows = {name: {"bytes": [n.low, n.high], "ticks": [n.begin, n.end]} for name, n in notes.items()}
    return json.dumps(rows, separators=(",", ":"))


def clear(message: Any) -> None:
    """Removes the metadata of this program from a message."""
    for at in reversed(range(len(message.metadata_props))):
        if message.metadata_props[at].key.startswith(PREFIX):
            del message.metadata_props[at]


def _write(message: Any, texts: Mapping[str, str]) -> None:
    clear(message)
    for key, text in texts.items():
        message.metadata_props.add(key=PREFIX + key, value=text)
