"""What each trick saves: MXNet's experiment (Chen et al. 2015; its note on memory), a network trained and run forward.

The tricks are its two: *in place* (an output takes the bytes of an input, or looks at them) and *sharing* (what is dead
gives its bytes to what comes). As there, what counts is internal: not weights, nor what is fed and fetched, nor
workspaces of kernels. Gradients of weights, which MXNet's caller holds, are internal here; an update takes them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import asdict, frozen

from allocator.progress import each
from engine.api import make_plan
from engine.graph.graph import Graph
from engine.text.tables import in_columns, joined
from engine.text.units import format_bytes

TRAINING, FORWARD = "training", "forward only"
NONE, IN_PLACE, SHARING, BOTH = "no optimisation", "in place", "sharing", "both"
TRICKS: Mapping[str, Mapping[str, Any]] = {
    NONE: {"views": False, "overwrite": False, "reuse": False},
    IN_PLACE: {"views": True, "overwrite": True, "reuse": False},
    SHARING: {"views": False, "overwrite": False, "reuse": True},
    BOTH: {"views": True, "overwrite": True, "reuse": True},
}
"""The options of the plan. A view is what MXNet does in place; values computed inside others are no part of it."""


@frozen(eq=False)
class MemoryCost:
    """Sizes in bytes: `internal_bytes` by trick; `held_bytes` (weights, statistics, state) come on top of each.

    `workspace_bytes` is the largest workspace, and `arena_bytes` the whole plan with both tricks: weights that are
    trained lie in it.
    """

    model: str
    batch: int
    mode: str
    operators: int
    held_bytes: int
    internal_bytes: Mapping[str, int]
    workspace_bytes: int
    arena_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Returns plain data with stable keys."""
        return asdict(self)


def memory_cost(graph: Graph, model: str, batch: int, mode: str) -> MemoryCost:
    """Plans a graph in all four ways. Nothing is run or allocated."""
    outside = (*graph.inputs, *graph.outputs)
    named = each("plan", tuple(TRICKS.items()), lambda trick: trick[0])
    plans = {
        name: make_plan(graph, caller_buffers=outside, nest=False, optimise=0, **options) for name, options in named
    }
    parameters, report = _parameter_bytes(graph, plans[BOTH].alignment), plans[BOTH].report()
    return MemoryCost(
        model=model,
        batch=batch,
        mode=mode,
        operators=len(graph.operators),
        held_bytes=parameters + plans[BOTH].weights_bytes,
        internal_bytes={name: plan.report().arena_without_workspace - parameters for name, plan in plans.items()},
        workspace_bytes=report.workspace_bytes,
        arena_bytes=report.arena_bytes,
    )


def _parameter_bytes(graph: Graph, alignment: int) -> int:
    """Returns the bytes that stay in the arena; each parameter begins at a multiple of the alignment."""
    return sum(-(-var.spec.nbytes // alignment) * alignment for var in graph.parameters)


def table(rows: Sequence[MemoryCost]) -> str:
    """Returns a line for each network and mode."""
    head = [name for name, _ in _COLUMNS]
    lines = in_columns([head, *([tell(row) for _, tell in _COLUMNS] for row in rows)], {1, *range(3, len(head))})
    return joined((*lines, *_NOTES))


def _internal(name: str) -> tuple[str, Callable[[MemoryCost], str]]:
    return name, lambda row: format_bytes(row.internal_bytes[name])


_COLUMNS: tuple[tuple[str, Callable[[MemoryCost], str]], ...] = (
    ("network", lambda row: row.model),
    ("batch", lambda row: str(row.batch)),
    ("mode", lambda row: row.mode),
    ("operators", lambda row: str(row.operators)),
    ("weights and state", lambda row: format_bytes(row.held_bytes)),
    *map(_internal, TRICKS),
    ("both / none", lambda row: f"{row.internal_bytes[BOTH] / max(row.internal_bytes[NONE], 1):.1%}"),
)
_NOTES = (
    "bytes of what is computed and not fetched; weights and state come on top of each. in place: an output takes or",
    "sees the bytes of an input; sharing: dead bytes are used again. training: forward, backward, gradient descent",
)
