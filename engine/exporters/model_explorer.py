"""Colours for the nodes of a model in Google's Model Explorer: "custom node data", one measure a file.

The model itself is opened there with the extension model-explorer-onnx, which calls nodes as the file does, or
`<node_7>` where the seventh behind the first has no name (Model Explorer 0.1.34, the extension 0.4.2; ids of nodes that
are not there are passed over). A node that became several operators here has the largest of their numbers. Events know
the names of operators, not of nodes, so that these are guessed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO

from attrs import define, field, frozen

from engine.exporters.texts import to_unicode
from engine.trace.trace import ALLOC, BEGIN, END, FREE, OVERWRITE, VIEW, Event, Trace

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

    It is a number of what runs then, if `while_it_runs`, else of what makes the tensor. Sums of numbers that do not
    `add_up` are not shown.
    """

    title: str
    read: Callable[[Event], int]
    add_up: bool = False
    while_it_runs: bool = False


def _output(event: Event, what: Callable[[Event], int]) -> int:
    made = event.kind in {ALLOC, OVERWRITE, VIEW} and event.role != _WORKSPACE
    return what(event) if made else -1


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "alive": Measure(
            "bytes alive while it runs", lambda e: -1 if e.kind == FREE else e.live_bytes, while_it_runs=True
        ),
        "outputs": Measure("bytes of its outputs", lambda e: _output(e, lambda made: made.bytes - made.padding), True),
        "offsets": Measure("offset of its output in the arena", lambda e: _output(e, lambda made: made.offset)),
        "workspaces": Measure(
            "bytes of its workspace", lambda e: e.bytes if e.kind == ALLOC and e.role == _WORKSPACE else -1
        ),
    }
)
"""By name, what a file may tell of nodes."""


def write(trace: Trace, out: BinaryIO, measure: str = "alive") -> None:
    """JSON in the form of `model_explorer.node_data_builder.GraphNodeData`. It keeps a number a node, and names."""
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
    """By node; the operators that were told of, and those that run, by tick."""

    by_node: dict[str, int] = field(factory=dict)
    met: set[str] = field(factory=set)
    running: dict[int, Event] = field(factory=dict)

    def meet(self, event: Event, measure: Measure) -> None:
        """One event after the other."""
        self.met.add(event.operator)
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
        """The ids that the operator's node may have.

        Operators on the way to what a node makes are called `node/schema`, and come before the one called `node`.
        """
        yield to_unicode(operator)
        node, slash, way = operator.rpartition("/")
        if slash and node not in self.met and re.fullmatch(rf"{re.escape(schema)}(_\d+)?", way):
            yield to_unicode(node)
            operator = node
        unnamed = _UNNAMED.fullmatch(operator)
        if unnamed:
            yield f"<node_{unnamed[1]}>"
