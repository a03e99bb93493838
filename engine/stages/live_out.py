"""What later stages need of this one: tensors with bytes of their own, how to look at them, and data."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.calls import Lowered, Storage
from engine.stages.partial_graph import Draft
from engine.stages.progress import Made, Progress
from engine.stages.task import Late, Task, data_outside
from engine.text.errors import GraphError
from ops.schema.schema import no_views


@frozen(eq=False)
class Heirs:
    """`vars` stay alive, each until the task of the rest with that number has run; what is an output, to the end.

    `views` make what later stages read of them. `reads` are the data that are wanted, by key.
    """

    vars: Mapping[Var, int]
    views: Mapping[Var, Made]
    reads: Mapping[str, Var]


def heirs(graph: Graph, draft: Draft, lowered: Lowered, progress: Progress) -> Heirs:
    """Finds what the rest of a graph needs; nothing where the stage is the last."""
    if not draft.rest:
        return Heirs({}, {}, {})
    wanted = {key for task in draft.rest for key in data_outside(task)} - draft.facts.data.keys()
    reads = {key: draft.keyed[key] for key in sorted(wanted) if draft.keyed.get(key) in draft.vars}
    unknown = sorted(draft.rest[0].data - draft.facts.data.keys() - reads.keys())
    if unknown:
        raise GraphError(f"sizes depend on the data of {unknown[0]!r}, which nothing computes before they are needed")
    known = progress.alive.keys() | progress.views.keys() | draft.made.keys()
    needed = dict.fromkeys(reads.values(), 0) | _lasts(draft.rest, graph.outputs.values())
    own = {v.name for v in lowered.values if not v.is_view and v.storage is Storage.ARENA}
    makers = {**progress.views, **draft.made}
    held: dict[Var, int] = {}
    views: dict[Var, Made] = {}
    for var in sorted(needed.keys() & known, key=lambda v: v.name):
        source = var
        while source.name not in own and source in makers:  # what has no bytes looks at its maker's first input
            views[source] = makers[source]
            source = makers[source].inputs[0]
        if source.name in own:
            held[source] = max(held.get(source, 0), needed[var])
    return Heirs(held, views, reads)


def _lasts(rest: Sequence[Task | Late], outputs: Iterable[Var]) -> dict[Var, int]:
    """The number of the task that needs a var last, itself or as a view; that of no task for outputs."""
    lasts = dict.fromkeys(outputs, len(rest))
    for number, task in reversed(list(enumerate(rest))):
        for var in task.inputs:
            lasts.setdefault(var, number)
        if isinstance(task, Task) and task.operator.schema.views is not no_views:
            seen = (lasts.get(v, number) for v in task.operator.outputs)
            lasts[task.inputs[0]] = max(lasts[task.inputs[0]], *seen)
    return lasts
