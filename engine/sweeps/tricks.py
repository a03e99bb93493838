"""What each trick saves: MXNet's experiment (Chen et al. 2015; its note on memory), a network trained and run forward.

The tricks are its two: *in place* (an output takes the bytes of an input, or looks at them) and *sharing* (what is dead
gives its bytes to what comes). As there, what counts is internal: not weights, nor what is fed and fetched, nor
workspaces of kernels. Gradients of weights, which MXNet's caller holds, are internal here; an update takes them.
"""

from collections.abc import Mapping
from typing import Any

from allocator.progress import each
from engine.api import make_plan
from engine.graph.graph import Graph
from engine.models.batches import at_batch, training_at_batch
from engine.models.zoo import can_train, is_zoo
from engine.sweeps.task import BATCH, Task
from engine.text.errors import ModelError, OptionError

MODE = "mode"
TRAINING, FORWARD = "training", "forward"
MODES = {TRAINING: "training", FORWARD: "forward only"}
"""The values of `MODE`, with their names on charts and pages."""
NONE, IN_PLACE, SHARING, BOTH = "none_bytes", "in_place_bytes", "sharing_bytes", "both_bytes"
TRICKS: Mapping[str, Mapping[str, Any]] = {
    NONE: {"views": False, "overwrite": False, "reuse": False},
    IN_PLACE: {"views": True, "overwrite": True, "reuse": False},
    SHARING: {"views": False, "overwrite": False, "reuse": True},
    BOTH: {"views": True, "overwrite": True, "reuse": True},
}
"""The options of the plan. A view is what MXNet does in place; values computed inside others are no part of it."""
SHOWN = ("operators", "held_bytes", *TRICKS, "both_over_none")
COLUMNS = (*SHOWN, "workspace_bytes", "arena_bytes")
NOTES = (
    "bytes of what is computed and not fetched; held: weights and state, on top of each. in place: an output takes or",
    "sees the bytes of an input; sharing: dead bytes are used again. training: forward, backward, gradient descent",
)


def has_mode(task: Task) -> bool:
    """Returns whether the model of a task can be run in its mode: a file has no loss, nor has every network."""
    if dict(task.settings)[MODE] != TRAINING:
        return True
    try:
        return is_zoo(task.named.model) and can_train(task.named.model)
    except ModelError:
        return False


def trick_row(task: Task) -> dict[str, Any]:
    """Plans the model of a task at its batch, as a step of training or run forward. Raises OptionError, ModelError."""
    mode = dict(task.settings)[MODE]
    named, batch = task.apart_from(BATCH)
    if mode not in MODES:
        raise OptionError(f"{MODE} is {' or '.join(MODES)}, not {mode[:40]!r}")
    if mode == FORWARD:
        return tricks(at_batch(named, batch, is_forward=True))
    if not has_mode(task):
        raise ModelError(f"{task.title} has no loss, and is run forward alone")
    return tricks(training_at_batch(named, batch))


def tricks(graph: Graph) -> dict[str, Any]:
    """Plans a graph in all four ways. Nothing is run or allocated.

    Those of `TRICKS` are internal bytes; `held_bytes` (weights, statistics, state) come on top of each.
    `workspace_bytes` is the largest workspace, and `arena_bytes` the whole plan with both tricks: weights that are
    trained lie in it.
    """
    outside = (*graph.inputs, *graph.outputs)
    plans = {
        name: make_plan(graph, caller_buffers=outside, nest=False, optimise=0, **options)
        for name, options in each("plan", tuple(TRICKS.items()), lambda trick: trick[0])
    }
    both = plans[BOTH]
    parameters, report = _parameter_bytes(graph, both.alignment), both.report()
    internal = {name: plan.report().arena_without_workspace - parameters for name, plan in plans.items()}
    return {
        "operators": len(graph.operators),
        "held_bytes": parameters + both.weights_bytes,
        **internal,
        "both_over_none": internal[BOTH] / max(internal[NONE], 1),
        "workspace_bytes": report.workspace_bytes,
        "arena_bytes": report.arena_bytes,
    }


def _parameter_bytes(graph: Graph, alignment: int) -> int:
    """Returns the bytes that stay in the arena; each parameter begins at a multiple of the alignment."""
    return sum(-(-var.spec.nbytes // alignment) * alignment for var in graph.parameters)
