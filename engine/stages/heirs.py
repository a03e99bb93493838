"""What later stages need of this one: tensors with bytes of their own, how to look at them, and data."""

from collections.abc import Mapping

from attrs import frozen

from engine.calls import Lowered, Storage
from engine.graph import Operator
from engine.stages.draft import Draft
from engine.stages.template import Template


@frozen(eq=False)
class Heirs:
    """`tensors` stay alive. `views` are the operators that make what later stages read of them. `reads` are data."""

    tensors: tuple[str, ...]
    views: Mapping[str, Operator]
    reads: tuple[str, ...]


def heirs(template: Template, draft: Draft, lowered: Lowered) -> Heirs:
    """Finds them; nothing where the stage is the last."""
    if not draft.rest:
        return Heirs((), {}, ())
    graph, known = template.graph, draft.facts.shapes
    reads = tuple(sorted(n for n in _wanted(draft) if n in known))
    needed = {v for task in draft.rest for v in task.operator.inputs} | set(graph.outputs.values())
    needed.update(graph.vars[n] for n in reads)
    needed -= graph.constants.keys() | graph.derived.keys()
    own = {v.name for v in lowered.values if not v.is_view and v.storage is Storage.ARENA}
    makers = {v: op for op in graph.operators for v in op.outputs}
    tensors: dict[str, None] = {}
    views: dict[str, Operator] = {}
    for var in sorted((v for v in needed if v.name in known), key=lambda v: v.name):
        source = var
        while source.name not in own and source in makers:  # what has no bytes looks at its maker's first input
            views[source.name] = makers[source]
            source = makers[source].inputs[0]
        if source.name in own:
            tensors[source.name] = None
    return Heirs(tuple(tensors), views, reads)


def _wanted(draft: Draft) -> set[str]:
    """Tensors whose elements are not known yet, and that somebody must know."""
    return {name for task in draft.rest for name in task.data} - draft.facts.data.keys()
