"""A graph whose dimensions are no numbers yet, prepared for being given numbers again and again."""

from collections.abc import Hashable, Iterable

from engine.graph import Graph, Operator
from engine.stages.late import LateBranch, LateLoop
from engine.stages.task import Late, Task, Template
from engine.symbols import Datum, Derived, Element, Extent, Recipe
from ops.dims import Dim, Guard, dims_in
from ops.late import IF_LATE, LOOP_LATE


def template(graph: Graph) -> Template:
    """Prepares a graph."""
    guards: dict[int, list[Guard]] = {}
    for guard in graph.samples.guards.values():
        guards.setdefault(guard.position, []).append(guard)
    tasks = tuple(_task(op, graph, tuple(guards.get(i, ()))) for i, op in enumerate(graph.operators))
    return Template(graph, tasks, tuple(guards.get(len(tasks), ())))


def _task(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> Task | Late:
    if operator.schema is IF_LATE:
        return _branch(operator, graph, guards)
    if operator.schema is LOOP_LATE:
        return _loop(operator, graph, guards)
    dims = [d for value in operator.attrs.values() for d in dims_in(value)]
    data = _data((*_leaves(guards), *(leaf for d in dims for leaf in d.leaves)), _arrays(operator, graph))
    specs = operator.signature.inputs + operator.signature.outputs
    is_fixed = not dims and not any(s.is_symbolic for s in specs)
    return Task(operator, _keys(operator, graph), guards, data, bool(dims), is_fixed)


def _branch(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> LateBranch:
    condition = graph.key(operator.inputs[0].name)
    bodies = template(operator.attrs["then_body"]), template(operator.attrs["else_body"])
    data = _data(_leaves(guards), _arrays(operator, graph)) | {condition}
    return LateBranch(operator, _keys(operator, graph), guards, data, condition, bodies)


def _loop(operator: Operator, graph: Graph, guards: tuple[Guard, ...]) -> LateLoop:
    attrs, names = operator.attrs, [graph.key(v.name) for v in operator.inputs]
    trips = names[0] if attrs["trips_given"] else ""
    condition = names[attrs["trips_given"]] if attrs["cond_given"] else ""
    data = _data(_leaves(guards), _arrays(operator, graph)) | ({trips, condition} - {""})
    ahead = attrs["trips_given"] + attrs["cond_given"]
    carried = operator.inputs[ahead : ahead + attrs["carried"]]
    keys, body = _keys(operator, graph), template(attrs["body"])
    return LateLoop(operator, keys, guards, data, trips, condition, body, carried)


def _keys(operator: Operator, graph: Graph) -> tuple[str, ...]:
    return tuple(graph.key(v.name) for v in operator.outputs)


def _leaves(guards: Iterable[Guard]) -> frozenset[Hashable]:
    return frozenset[Hashable]().union(*(g.leaves for g in guards))


def _arrays(operator: Operator, graph: Graph) -> list[Derived]:
    return [graph.derived[v] for v in operator.inputs if v in graph.derived]


def _data(leaves: Iterable[Hashable], arrays: Iterable[Derived]) -> frozenset[str]:
    """The tensors whose elements decide a dimension or an array."""
    found, seen = set[str](), set[Derived]()
    keys, left = list(leaves), list(arrays)
    while keys or left:
        for key in keys:
            if isinstance(key, Datum):
                found.add(key.var)
            elif isinstance(key, (Element, Extent)):
                left.append(key.source)
        keys = []
        if left and (array := left.pop()) not in seen:
            seen.add(array)
            left += [o for o in _operands(array) if isinstance(o, Derived)]
            keys = [leaf for dim in _dims(array) for leaf in dim.leaves]
    return frozenset(found)


def _operands(array: Derived) -> tuple[object, ...]:
    return array.source.operands if isinstance(array.source, Recipe) else ()


def _dims(array: Derived) -> list[Dim]:
    return dims_in(tuple(array.source.attrs.values()) if isinstance(array.source, Recipe) else array.source)
