"""A graph with symbolic dimensions, prepared so that its dimensions can be bound to numbers many times."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.symbols import Derived, data_behind
from engine.graph.var import Var
from engine.stages.deferred import DeferredBranch, DeferredLoop
from engine.stages.task import DeferredControl, FinalGuards, Task, Template
from ops.control.deferred import IF_LATE, LOOP_LATE
from ops.tensor.dims import Dim, Guard, dims_in


def template(graph: Graph, decisive: Collection[str] = ()) -> Template:
    """Prepares a graph; `decisive` has names of tensors whose data decide what runs behind it."""
    guards: dict[int, list[Guard]] = {}
    count = len(graph.operators)
    for guard in graph.guards:
        guards.setdefault(min(guard.position, count), []).append(guard)
    tasks = [_task(op, graph, tuple(guards.get(i, ()))) for i, op in enumerate(graph.operators)]
    last = tuple(guards.get(count, ()))
    if last:
        tasks.append(FinalGuards(last, _keys_of(_leaves(last, ()))))
    return Template(graph, tuple(tasks), frozenset(map(graph.key, decisive)))


def _task(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> Task | DeferredControl:
    if operator.schema is IF_LATE:
        return _branch(operator, graph, guards)
    if operator.schema is LOOP_LATE:
        return _loop(operator, graph, guards)
    dims = [d for value in operator.attrs.values() for d in dims_in(value)]
    data = _data(operator, graph, guards, dims)
    specs = operator.signature.inputs + operator.signature.outputs
    is_fixed = not dims and not any(s.is_symbolic for s in specs)
    return Task(operator, _keys(operator, graph), guards, data, bool(dims), is_fixed)


def _branch(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> DeferredBranch:
    constants, decisive = _decisive(operator.inputs[:1], graph)
    bodies = template(operator.attrs["then_body"]), template(operator.attrs["else_body"])
    data = _data(operator, graph, guards) | decisive
    condition = graph.key(operator.inputs[0].name)
    return DeferredBranch(operator, _keys(operator, graph), guards, data, constants, condition, bodies)


def _decisive(operands: Sequence[Var], graph: Graph) -> tuple[Mapping[str, Var], frozenset[str]]:
    """Returns the operands that are constants, by key, and the keys of those that only a run computes."""
    keys = {graph.key(v.name): v for v in operands}
    constants = {key: v for key, v in keys.items() if v in graph.constants or v in graph.derived}
    return constants, frozenset(keys.keys() - constants.keys())


def _loop(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> DeferredLoop:
    attrs = operator.attrs
    ahead = attrs["trips_given"] + attrs["cond_given"]
    names = [graph.key(v.name) for v in operator.inputs[:ahead]]
    trips = names[0] if attrs["trips_given"] else ""
    condition = names[-1] if attrs["cond_given"] else ""
    constants, decisive = _decisive(operator.inputs[:ahead], graph)
    data = _data(operator, graph, guards) | decisive
    carried = operator.inputs[ahead : ahead + attrs["carried"]]
    goes_on = [v.name for v in attrs["body"].outputs.values()][: attrs["conditional"]]
    keys, body = _keys(operator, graph), template(attrs["body"], goes_on)
    return DeferredLoop(operator, keys, guards, data, constants, trips, condition, body, carried)


def _keys(operator: Operator, graph: Graph) -> tuple[str, ...]:
    return tuple(graph.key(v.name) for v in operator.outputs)


def _data(operator: Operator, graph: Graph, guards: Iterable[Guard], dims: Iterable[Dim] = ()) -> frozenset[str]:
    """Returns the keys of the tensors whose elements decide guards, dimensions, or an array that an operator reads."""
    arrays = [graph.derived[v] for v in operator.inputs if v in graph.derived]
    return _keys_of(_leaves(guards, dims), arrays)


def _leaves(guards: Iterable[Guard], dims: Iterable[Dim]) -> frozenset[Hashable]:
    return frozenset[Hashable]().union(*(g.leaves for g in guards), *(d.leaves for d in dims))


def _keys_of(leaves: Iterable[Hashable], arrays: Iterable[Derived] = ()) -> frozenset[str]:
    return frozenset(datum.var for datum in data_behind(leaves, arrays))
