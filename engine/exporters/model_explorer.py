"""Writes colours for the nodes of a model in Google's Model Explorer: "custom node data", one measure a file.

The extension model-explorer-onnx opens the model itself. It takes the names of nodes from the model's file, and calls
node 7, counted from 0, `<node_7>` if it has no name (Model Explorer 0.1.34, the extension 0.4.2; unknown ids of nodes
are ignored). A node that became several operators has the largest of their numbers. Events have the names of
operators, not of nodes, so the names of nodes are derived from them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO

from attrs import define, field, frozen

from engine.text.names import to_unicode
from engine.trace.trace import ALLOC, BEGIN, END, FREE, OVERWRITE, VIEW, Event, Trace

_GRADIENT = ((0.0, "#fff7bc"), (0.35, "#fec44f"), (0.7, "#d95f0e"), (1.0, "#7f1d0a"))
"""Colours from the least number to the greatest: the darker, the more bytes."""
_WORKSPACE = "workspace"
_RESULTS = "results"
"""A key of the format. With a node of this name, the file needs the id of its graph around all data."""
_UNNAMED = re.compile(r"[A-Za-z][A-Za-z0-9]*_(\d+)")
"""The name that the importer gives to node i if it has none: its ONNX operator, then i."""


@frozen(eq=False)
class Measure:
    """A number of an operator; `read` takes it from an event, or returns a number below 0 if the event has none.

    The number belongs to the operator that runs at the event, if `while_it_runs`, else to the one that writes the
    tensor. Sums are shown only of numbers that `add_up`.
    """

    title: str
    read: Callable[[Event], int]
    add_up: bool = False
    while_it_runs: bool = False


def _output(event: Event, what: Callable[[Event], int]) -> int:
    is_output = event.kind in {ALLOC, OVERWRITE, VIEW} and event.role != _WORKSPACE
    return what(event) if is_output else -1


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "alive": Measure(
            "bytes alive while it runs", lambda e: -1 if e.kind == FREE else e.live_bytes, while_it_runs=True
        ),
        "outputs": Measure(
            "bytes of its outputs", lambda e: _output(e, lambda output: output.bytes - output.padding), True
        ),
        "offsets": Measure("offset of its output in the arena", lambda e: _output(e, lambda o: o.offset)),
        "workspaces": Measure(
            "bytes of its workspace", lambda e: e.bytes if e.kind == ALLOC and e.role == _WORKSPACE else -1
        ),
    }
)
"""The measures by name."""


def write(trace: Trace, out: BinaryIO, measure: str = "alive") -> None:
    """Writes JSON in the form of `model_explorer.node_data_builder.GraphNodeData`. It keeps a number for each node."""
    chosen, numbers = MEASURES[measure], _Numbers()
    for event in trace:
        numbers.enter(event, chosen)
    results = {name: {"value": value} for name, value in numbers.by_node.items()}
    stops = [{"stop": stop, "bgColor": colour} for stop, colour in _GRADIENT]
    data: dict[str, Any] = {"results": results, "name": f"{trace.facts.model}: {chosen.title}", "gradient": stops}
    if not chosen.add_up:
        data |= {"hideAggregatedStats": ["sum", "avg"], "hideInChildrenStatsTable": True}
    whole = {trace.facts.model: data} if _RESULTS in results else data
    out.write(json.dumps(whole, separators=(",", ":")).encode())


def writer_of(measure: str) -> Callable[[Trace, BinaryIO], None]:
    """Returns `write` for a measure."""
    return partial(write, measure=measure)


@define(eq=False)
class _Numbers:
    """Numbers by node; the names of operators so far, and the operators that run, by tick."""

    by_node: dict[str, int] = field(factory=dict)
    names: set[str] = field(factory=set)
    running: dict[int, Event] = field(factory=dict)

    def enter(self, event: Event, measure: Measure) -> None:
        """Takes the next event."""
        self.names.add(event.operator)
        if event.kind == BEGIN:
            self.running[event.tick] = event
        number, of = measure.read(event), event
        if measure.while_it_runs:
            of = self.running.get(event.tick, event)
            number = number if event.tick in self.running else -1
        if number >= 0 and of.schema:
            for node in self._nodes(of.operator, of.schema):
                self.by_node[node] = max(self.by_node.get(node, number), number)
        if event.kind == END:
            self.running.pop(event.tick, None)

    def _nodes(self, operator: str, schema: str) -> Iterator[str]:
        """Yields the ids that the node of an operator may have.

        A node may become several operators: all but the last are called `node/schema`, and the last one `node`.
        """
        yield to_unicode(operator)
        node, slash, part = operator.rpartition("/")
        if slash and node not in self.names and re.fullmatch(rf"{re.escape(schema)}(_\d+)?", part):
            yield to_unicode(node)
            operator = node
        unnamed = _UNNAMED.fullmatch(operator)
        if unnamed:
            yield f"<node_{unnamed[1]}>"
