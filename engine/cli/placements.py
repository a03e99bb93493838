"""One network's activations placed in several ways: not at all, by dynamic allocators, and in one planned arena."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import asdict, field, frozen

from allocator.heaps import simulate
from allocator.heaps.events import of_chunks
from allocator.progress import each
from engine.api import make_plan
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes
from engine.trace.buffers import buffers_of

HEAPS = ("pytorch", "bfc_tensorflow", "bfc_onnxruntime")
"""Dynamic allocators whose reserved bytes are told."""
TFLITE = "greedy_by_size"
"""TensorFlow Lite's strategy for offsets in one arena."""
REPEATS = 3


@frozen(eq=False)
class Placements:
    """Sizes in bytes, of activations, inputs, outputs and workspaces; `weights_bytes` come on top of each.

    - `unoptimised_bytes`: every tensor, views included, has bytes of its own from the start to the end.
    - `naive_bytes`: the same, but views share the bytes that they look at.
    - `arena_bytes`: the plan, with views, overwrites and reuse; none is smaller than `lower_bound`.
    - `tflite_bytes`: greedy by size over the same tensors with views, without overwrites; `tflite_bound` likewise.
    - `refcount_bytes`: reference counting on a heap that loses nothing; it knows views, but no overwrites.
    - `reserved_bytes`: what real allocators would hold for the same run, by name.

    `planning_seconds` is the least of several runs, judges included.
    """

    model: str
    batch: int
    operators: int
    weights_bytes: int
    unoptimised_bytes: int
    naive_bytes: int
    refcount_bytes: int
    tflite_bytes: int
    tflite_bound: int
    arena_bytes: int
    lower_bound: int
    strategy: str
    status: str
    planning_seconds: float
    reserved_bytes: Mapping[str, int] = field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)


def place(graph: Graph, model: str, batch: int, repeats: int = REPEATS) -> Placements:
    """Plans a graph in all ways, once more `repeats` times to take the time. Nothing is run or allocated."""
    plan = make_plan(graph, optimise=0)
    report = plan.report()
    apart = make_plan(graph, views=False, overwrite=False, reuse=False, nest=False, optimise=0)
    tflite = make_plan(graph, strategy=TFLITE, overwrite=False, nest=False, optimise=0)
    return Placements(
        model=model,
        batch=batch,
        operators=report.operators,
        weights_bytes=report.weights_bytes,
        unoptimised_bytes=apart.arena_bytes,
        naive_bytes=report.naive_bytes,
        refcount_bytes=tflite.report().dynamic_peak_bytes,
        tflite_bytes=tflite.arena_bytes,
        tflite_bound=tflite.plan.lower_bound,
        arena_bytes=report.arena_bytes,
        lower_bound=report.lower_bound,
        strategy=report.strategy,
        status=report.status,
        planning_seconds=min(_seconds(lambda: make_plan(graph, optimise=0)) for _ in range(repeats)),
        reserved_bytes=_reserved(plan),
    )


def table(rows: Sequence[Placements]) -> str:
    """Returns a line for each network and batch."""
    head = [name for name, _ in _COLUMNS]
    lines = in_columns([head, *([tell(row) for _, tell in _COLUMNS] for row in rows)], set(range(1, len(head))))
    return joined((*lines, *_NOTES))


def _reserved(plan: ExecutionPlan) -> dict[str, int]:
    events = of_chunks(buffers_of(plan, "dynamic").chunks)
    return {name: simulate(name, events).peak_reserved for name in each("heap", tuple(HEAPS))}


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _bytes(name: str) -> Callable[[Placements], str]:
    return lambda row: format_bytes(getattr(row, name))


_COLUMNS: tuple[tuple[str, Callable[[Placements], str]], ...] = (
    ("network", lambda row: row.model),
    ("batch", lambda row: str(row.batch)),
    ("weights", _bytes("weights_bytes")),
    ("not optimised", _bytes("unoptimised_bytes")),
    ("pytorch", lambda row: format_bytes(row.reserved_bytes["pytorch"])),
    ("refcount", _bytes("refcount_bytes")),
    ("tflite", _bytes("tflite_bytes")),
    ("arena", _bytes("arena_bytes")),
    ("lower bound", _bytes("lower_bound")),
    ("saved", lambda row: f"{1 - row.arena_bytes / max(row.unoptimised_bytes, 1):.1%}"),
    ("planned in", lambda row: f"{row.planning_seconds * 1e3:.1f} ms"),
)
_NOTES = (
    "bytes besides the weights. not optimised: every tensor has its own; pytorch: reserved by its caching allocator;",
    "refcount: a heap without loss; tflite: greedy by size, no overwrites; saved: by the arena, of the not optimised",
)
