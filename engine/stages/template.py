"""A graph whose dimensions are no numbers yet, prepared for being given numbers again and again."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.symbols import Derived, data_behind
from engine.graph.var import Var
from engine.stages.deferred import LateBranch, LateLoop
from engine.stages.task import Late, Promise, Task, Template
from ops.control.deferred import IF_LATE, LOOP_LATE
from ops.tensor.dims import Dim, Guard, dims_in


def template(graph: Graph, decisive: Collection[str] = ()) -> Template:
    """Prepares a graph; `decisive` are names of tensors that decide what comes behind it."""
    guards: dict[int, list[Guard]] = {}
    count = len(graph.operators)
    for guard in graph.samples.guards.values():
        guards.setdefault(min(guard.position, count), []).append(guard)
    tasks = [_task(op, graph, tuple(guards.get(i, ()))) for i, op in enumerate(graph.operators)]
    last = tuple(guards.get(count, ()))
    if last:
        tasks.append(Promise(last, _keys_of(_leaves(last, ()))))
    return Template(graph, tuple(tasks), frozenset(map(graph.key, decisive)))


def _task(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> Task | Late:
    if operator.schema is IF_LATE:
        return _branch(operator, graph, guards)
    if operator.schema is LOOP_LATE:
        return _loop(operator, graph, guards)
    dims = [d for value in operator.attrs.values() for d in dims_in(value)]
    data = _data(operator, graph, guards, dims)
    specs = operator.signature.inputs + operator.signature.outputs
    is_fixed = not dims and not any(s.is_symbolic for s in specs)
    return Task(operator, _keys(operator, graph), guards, data, bool(dims), is_fixed)


def _branch(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> LateBranch:
    known, decisive = _decisive(operator.inputs[:1], graph)
    bodies = template(operator.attrs["then_body"]), template(operator.attrs["else_body"])
    data = _data(operator, graph, guards) | decisive
    condition = graph.key(operator.inputs[0].name)
    return LateBranch(operator, _keys(operator, graph), guards, data, known, condition, bodies)


def _decisive(operands: Sequence[Var], graph: Graph) -> tuple[Mapping[str, Var], frozenset[str]]:
    """What decides how control flow goes: vars that are known without a run, by key, and the keys of the others."""
    keys = {graph.key(v.name): v for v in operands}
    known = {key: v for key, v in keys.items() if v in graph.constants or v in graph.derived}
    return known, frozenset(keys.keys() - known.keys())


def _loop(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> LateLoop:
    attrs = operator.attrs
    ahead = attrs["trips_given"] + attrs["cond_given"]
    names = [graph.key(v.name) for v in operator.inputs[:ahead]]
    trips = names[0] if attrs["trips_given"] else ""
    condition = names[-1] if attrs["cond_given"] else ""
    known, decisive = _decisive(operator.inputs[:ahead], graph)
    data = _data(operator, graph, guards) | decisive
    carried = operator.inputs[ahead : ahead + attrs["carried"]]
    goes_on = [v.name for v in attrs["body"].outputs.values()][: attrs["conditional"]]
    keys, body = _keys(operator, graph), template(attrs["body"], goes_on)
    return LateLoop(operator, keys, guards, data, known, trips, condition, body, carried)


def _keys(operator: Operator, graph: Graph) -> tuple[str, ...]:
    return tuple(graph.key(v.name) for v in operator.outputs)


def _data(operator: Operator, graph: Graph, guards: Iterable[Guard], dims: Iterable[Dim] = ()) -> frozenset[str]:
    """The tensors whose elements decide guards and dimensions, or an array that an operator reads."""
    arrays = [graph.derived[v] for v in operator.inputs if v in graph.derived]
    return _keys_of(_leaves(guards, dims), arrays)


def _leaves(guards: Iterable[Guard], dims: Iterable[Dim]) -> frozenset[Hashable]:
    return frozenset[Hashable]().union(*(g.leaves for g in guards), *(d.leaves for d in dims))


def _keys_of(leaves: Iterable[Hashable], arrays: Iterable[Derived] = ()) -> frozenset[str]:
    return frozenset(datum.var for datum in data_behind(leaves, arrays))
