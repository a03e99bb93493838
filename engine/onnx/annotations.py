"""What a plan says of each tensor, written where viewers show it: in the metadata of nodes and of values.

For people and for other programs. The plan itself is read from the metadata of the model, and from nowhere else.
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
    """A tensor of the arena: its bytes [low, high), and the ticks [begin, end) in which they are its chunk's."""

    low: int
    high: int
    begin: int
    end: int


def annotate(graph: Any, plan: PlacedPlan) -> None:
    """Notes for the nodes and values of a GraphProto, of an IR version that has them; what stood there is replaced."""
    notes = notes_of(plan)
    for value in (*graph.input, *graph.value_info, *graph.output):
        note = notes.get(value.name)
        texts = {} if note is None else {"offset": str(note.low), "bytes": str(note.high - note.low)}
        _write(value, texts if note is None else texts | {"ticks": f"[{note.begin}, {note.end})"})
    for node in graph.node:
        found = {name: notes[name] for name in node.output if name in notes}
        _write(node, {"outputs": _told(found)} if found else {})


def notes_of(plan: PlacedPlan) -> dict[str, Note]:
    """By name of a tensor that lies in the arena."""
    found = {}
    for value in plan.lowered.values:
        if value.storage is Storage.ARENA and value.name == value.source:
            found[value.name] = _note(plan, value)
    return found


def _note(plan: PlacedPlan, value: Value) -> Note:
    chunk = plan.chunk_of(value.id)
    low, high = plan.places[value.id].layout.extent
    return Note(low, high, int(plan.problem.begin[chunk]), int(plan.problem.end[chunk]))


def _told(notes: Mapping[str, Note]) -> str:
    rows = {name: {"bytes": [n.low, n.high], "ticks": [n.begin, n.end]} for name, n in notes.items()}
    return json.dumps(rows, separators=(",", ":"))


def clear(message: Any) -> None:
    """Takes our metadata away."""
    for at in reversed(range(len(message.metadata_props))):
        if message.metadata_props[at].key.startswith(PREFIX):
            del message.metadata_props[at]


def _write(message: Any, texts: Mapping[str, str]) -> None:
    clear(message)
    for key, text in texts.items():
        message.metadata_props.add(key=PREFIX + key, value=text)
