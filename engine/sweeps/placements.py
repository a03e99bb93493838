"""One network's activations placed in several ways: not at all, by dynamic allocators, and in one planned arena.

These are the columns of MegEngine's article on static memory planning.
"""

import time
from collections.abc import Callable
from typing import Any

from allocator.heaps import simulate
from allocator.heaps.events import of_chunks
from allocator.progress import each
from engine.api import make_plan
from engine.execution_plan import ExecutionPlan
from engine.graph.graph import Graph
from engine.models.batches import at_batch
from engine.sweeps.task import BATCH, Task
from engine.trace.buffers import buffers_of

HEAPS = ("pytorch", "bfc_tensorflow", "bfc_onnxruntime")
"""Dynamic allocators whose reserved bytes are told."""
TFLITE = "greedy_by_size"
"""TensorFlow Lite's strategy for offsets in one arena."""
REPEATS = 3
COLUMNS = (
    "operators",
    "weights_bytes",
    "unoptimised_bytes",
    "naive_bytes",
    *(f"{heap}_bytes" for heap in HEAPS),
    "refcount_bytes",
    "tflite_bytes",
    "tflite_bound",
    "arena_bytes",
    "lower_bound",
    "saved",
    "proof",
    "solver",
    "plan_seconds",
)
SHOWN = (
    *("weights_bytes", "unoptimised_bytes", "pytorch_bytes", "refcount_bytes", "tflite_bytes", "arena_bytes"),
    *("lower_bound", "saved", "plan_seconds"),
)
NOTES = (
    "bytes besides the weights. unoptimised: every tensor has its own; pytorch: reserved by its caching allocator;",
    "refcount: a heap without loss; tflite: greedy by size, no overwrites; saved: by the arena, of the unoptimised",
)


def placement_row(task: Task) -> dict[str, Any]:
    """Plans the model of a task at its batch in all ways."""
    return place(at_batch(*task.apart_from(BATCH)))


def place(graph: Graph, repeats: int = REPEATS) -> dict[str, Any]:
    """Plans a graph in all ways, once more `repeats` times to take the time. Nothing is run or allocated.

    Sizes are those of activations, inputs, outputs and workspaces; `weights_bytes` come on top of each.

    - `unoptimised_bytes`: every tensor, views included, has bytes of its own from the start to the end.
    - `naive_bytes`: the same, but views share the bytes that they look at.
    - `arena_bytes`: the plan, with views, overwrites and reuse; none is smaller than `lower_bound`.
    - `saved`: the share of `unoptimised_bytes` that `arena_bytes` does without.
    - `tflite_bytes`: greedy by size over the same tensors with views, without overwrites; `tflite_bound` likewise.
    - `refcount_bytes`: reference counting on a heap that loses nothing; it knows views, but no overwrites.
    - those of `HEAPS`: what real allocators would reserve for the same run.

    `plan_seconds` is the least of several runs, judges included.
    """
    plan = make_plan(graph, optimise=0)
    report = plan.report()
    apart = make_plan(graph, views=False, overwrite=False, reuse=False, nest=False, optimise=0)
    tflite = make_plan(graph, strategy=TFLITE, overwrite=False, nest=False, optimise=0)
    return {
        "operators": report.operators,
        "weights_bytes": report.weights_bytes,
        "unoptimised_bytes": apart.arena_bytes,
        "naive_bytes": report.naive_bytes,
        **_reserved(plan),
        "refcount_bytes": tflite.report().dynamic_peak_bytes,
        "tflite_bytes": tflite.arena_bytes,
        "tflite_bound": tflite.plan.lower_bound,
        "arena_bytes": report.arena_bytes,
        "lower_bound": report.lower_bound,
        "saved": 1 - report.arena_bytes / max(apart.arena_bytes, 1),
        "proof": report.status,
        "solver": report.strategy,
        "plan_seconds": min(_seconds(lambda: make_plan(graph, optimise=0)) for _ in range(repeats)),
    }


def _reserved(plan: ExecutionPlan) -> dict[str, int]:
    events = of_chunks(buffers_of(plan, "dynamic").chunks)
    return {f"{name}_bytes": simulate(name, events).peak_reserved for name in each("heap", HEAPS)}


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
