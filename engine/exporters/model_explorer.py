"""Colours for the nodes of a model in Google's Model Explorer: "custom node data", one measure a file.

The model itself is opened there with the extension model-explorer-onnx, which calls nodes as the file does, or
`<node_7>` where the seventh behind the first has no name (Model Explorer 0.1.34, the extension 0.4.2; ids of nodes that
are not there are passed over). A node that became several operators here has the largest of their numbers.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO

from attrs import define, field, frozen

from engine.exporters.texts import to_unicode
from engine.trace import ALLOC, FREE, OVERWRITE, VIEW, Event, Trace

_GRADIENT = ((0.0, "#fff7bc"), (0.35, "#fec44f"), (0.7, "#d95f0e"), (1.0, "#7f1d0a"))
"""Of the least number to the greatest: the darker, the more bytes."""
_WORKSPACE = "workspace"
_RESULTS = "results"
"""A node of that name would make a file without the id of its graph look like one with it."""
_UNNAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*_(\d+)")
"""What the importer calls node i that has no name: its ONNX operator, then i."""


@frozen(eq=False)
class Measure:
    """What a number tells, and how it is read off an event; below 0 where the event tells nothing of it.

    Sums of numbers that do not `add_up` are not shown.
    """

    title: str
    read: Callable[[Event], int]
    add_up: bool = False


def _output(event: Event, what: Callable[[Event], int]) -> int:
    made = event.kind in {ALLOC, OVERWRITE, VIEW} and event.role != _WORKSPACE
    return what(event) if made else -1


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "alive": Measure("bytes alive while it runs", lambda e: -1 if e.kind == FREE else e.live_bytes),
        "outputs": Measure("bytes of its outputs", lambda e: _output(e, lambda made: made.bytes - made.padding), True),
        "offsets": Measure("offset of its output in the arena", lambda e: _output(e, lambda made: made.offset)),
        "workspaces": Measure(
            "bytes of its workspace", lambda e: e.bytes if e.kind == ALLOC and e.role == _WORKSPACE else -1
        ),
    }
)
"""By name, what a file may tell of nodes."""


def write(trace: Trace, out: BinaryIO, measure: str = "alive") -> None:
    """JSON in the form of `model_explorer.node_data_builder.GraphNodeData`. It keeps a number a node."""
    chosen, numbers = MEASURES[measure], _Numbers()
    for event in trace:
        numbers.meet(event, chosen)
    results = {name: {"value": value} for name, value in numbers.by_node.items()}
    stops = [{"stop": stop, "bgColor": colour} for stop, colour in _GRADIENT]
    data: dict[str, Any] = {"results": results, "name": f"{trace.facts.model}: {chosen.title}", "gradient": stops}
    if not chosen.add_up:
        data |= {"hideAggregatedStats": ["sum", "avg"], "hideInChildrenStatsTable": True}
    whole = {trace.facts.model: data} if _RESULTS in results else data
    out.write(json.dumps(whole, separators=(",", ":")).encode())


def writer_of(measure: str) -> Callable[[Trace, BinaryIO], None]:
    """`write` for a measure."""
    return partial(write, measure=measure)


@define(eq=False)
class _Numbers:
    by_node: dict[str, int] = field(factory=dict)

    def meet(self, event: Event, measure: Measure) -> None:
        number = measure.read(event)
        if number < 0 or not event.schema:
            return
        for node in _nodes(event):
            self.by_node[node] = max(self.by_node.get(node, number), number)


def _nodes(event: Event) -> tuple[str, ...]:
    """The ids that the operator's node may have: operators on the way to what a node makes are called `node/schema`."""
    told = [event.operator]
    name, slash, way = event.operator.rpartition("/")
    if slash and re.fullmatch(rf"{re.escape(event.schema)}(_\d+)?", way):
        told.append(name)
    unnamed = _UNNAMED.fullmatch(told[-1])
    if unnamed:
        told.append(f"<node_{unnamed[1]}>")
    return tuple(map(to_unicode, told))
