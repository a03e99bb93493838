"""What later stages need of this one: tensors with bytes of their own, how to look at them, and data."""

from collections.abc import Mapping

from attrs import frozen

from engine.calls import Lowered, Storage
from engine.errors import GraphError
from engine.graph import Graph
from engine.stages.draft import Draft
from engine.stages.progress import Made, Progress
from engine.var import Var


@frozen(eq=False)
class Heirs:
    """`vars` stay alive. `views` make what later stages read of them. `reads` are the data that are wanted, by key."""

    vars: tuple[Var, ...]
    views: Mapping[Var, Made]
    reads: Mapping[str, Var]


def heirs(graph: Graph, draft: Draft, lowered: Lowered, progress: Progress) -> Heirs:
    """Finds what the rest of a graph needs; nothing where the stage is the last."""
    if not draft.rest:
        return Heirs((), {}, {})
    wanted = {key for task in draft.rest for key in task.data} - draft.facts.data.keys()
    reads = {key: draft.keyed[key] for key in sorted(wanted) if key in draft.keyed}
    unknown = sorted(draft.rest[0].data - draft.facts.data.keys() - reads.keys())
    if unknown:
        raise GraphError(f"sizes depend on the data of {unknown[0]!r}, which nothing computes before they are needed")
    known = progress.alive.keys() | progress.views.keys() | draft.made.keys()
    needed = {v for task in draft.rest for v in task.inputs} | set(graph.outputs.values()) | set(reads.values())
    own = {v.name for v in lowered.values if not v.is_view and v.storage is Storage.ARENA}
    makers = {**progress.views, **draft.made}
    held: dict[Var, None] = {}
    views: dict[Var, Made] = {}
    for var in sorted(needed & known, key=lambda v: v.name):
        source = var
        while source.name not in own and source in makers:  # what has no bytes looks at its maker's first input
            views[source] = makers[source]
            source = makers[source].inputs[0]
        if source.name in own:
            held[source] = None
    return Heirs(tuple(held), views, reads)
