"""The tensors that live out of a stage: those that later stages use, how to view them, and the data that they need."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.lower.calls import Lowered, Storage
from engine.stages.partial_graph import PartialGraph
from engine.stages.state import RunState, SignedOperator
from engine.stages.task import DeferredControl, Task, data_outside
from engine.text.errors import GraphError
from ops.schema.schema import no_views


@frozen(eq=False)
class LiveOut:
    """The tensors that live out of a stage. `vars` maps each to the number of the last task that uses it.

    Outputs of the network have the number behind the last task. `views` has the operators that make the views that
    later stages read. `reads` are the vars whose data later stages need, by key.
    """

    vars: Mapping[Var, int]
    views: Mapping[Var, SignedOperator]
    reads: Mapping[str, Var]


def live_out(graph: Graph, part: PartialGraph, lowered: Lowered, state: RunState) -> LiveOut:
    """Finds the tensors that the rest of a graph uses. After the last stage there are none. Raises GraphError."""
    if not part.rest:
        return LiveOut({}, {}, {})
    missing_data = {key for task in part.rest for key in data_outside(task)} - part.bindings.data.keys()
    reads = {key: part.keyed[key] for key in sorted(missing_data) if part.keyed.get(key) in part.vars}
    unknown = sorted(part.rest[0].data - part.bindings.data.keys() - reads.keys())
    if unknown:
        raise GraphError(f"sizes depend on the data of {unknown[0]!r}, which nothing computes before they are needed")
    computed = state.alive.keys() | state.views.keys() | part.makers.keys()
    needed = dict.fromkeys(reads.values(), 0) | _last_uses(part.rest, graph.outputs.values())
    owners = {v.name for v in lowered.values if not v.is_view and v.storage is Storage.ARENA}
    makers = {**state.views, **part.makers}
    last_use: dict[Var, int] = {}
    views: dict[Var, SignedOperator] = {}
    for var in sorted(needed.keys() & computed, key=lambda v: v.name):
        source = var
        while source.name not in owners and source in makers:  # a view: its bytes are those of its maker's first input
            views[source] = makers[source]
            source = makers[source].inputs[0]
        if source.name in owners:
            last_use[source] = max(last_use.get(source, 0), needed[var])
    return LiveOut(last_use, views, reads)


def _last_uses(rest: Sequence[Task | DeferredControl], outputs: Iterable[Var]) -> dict[Var, int]:
    """Returns the number of the last task that uses each var, itself or as a view; outputs have the next number."""
    lasts = dict.fromkeys(outputs, len(rest))
    for number, task in reversed(list(enumerate(rest))):
        for var in task.inputs:
            lasts.setdefault(var, number)
        if isinstance(task, Task) and task.operator.schema.views is not no_views:
            of_views = (lasts.get(v, number) for v in task.operator.outputs)
            lasts[task.inputs[0]] = max(lasts[task.inputs[0]], *of_views)
    return lasts
