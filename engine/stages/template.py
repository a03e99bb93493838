"""A graph whose dimensions are no numbers yet, prepared for being given numbers again and again."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from engine.graph import Graph, Operator
from engine.stages.late import LateBranch, LateLoop
from engine.stages.task import Late, Promise, Task, Template
from engine.symbols import Datum, Derived, Element, Extent, Recipe
from engine.var import Var
from ops.dims import Dim, Guard, dims_in
from ops.late import IF_LATE, LOOP_LATE


def template(graph: Graph) -> Template:
    """Prepares a graph."""
    guards: dict[int, list[Guard]] = {}
    count = len(graph.operators)
    for guard in graph.samples.guards.values():
        guards.setdefault(min(guard.position, count), []).append(guard)
    tasks = [_task(op, graph, tuple(guards.get(i, ()))) for i, op in enumerate(graph.operators)]
    last = tuple(guards.get(count, ()))
    return Template(graph, (*tasks, *(Promise(last, _data(_leaves(last), ())) for _ in last[:1])))


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
    known, decisive = _decisive(operator.inputs[:1], graph)
    bodies = template(operator.attrs["then_body"]), template(operator.attrs["else_body"])
    data = _data(_leaves(guards), _arrays(operator, graph)) | decisive
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
    data = _data(_leaves(guards), _arrays(operator, graph)) | decisive
    carried = operator.inputs[ahead : ahead + attrs["carried"]]
    keys, body = _keys(operator, graph), template(attrs["body"])
    return LateLoop(operator, keys, guards, data, known, trips, condition, body, carried)


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
