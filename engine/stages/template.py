"""A graph whose dimensions are no numbers yet, prepared for being given numbers again and again."""

from collections.abc import Hashable, Iterable, Mapping

from attrs import frozen

from engine.graph import Graph, Operator
from engine.symbols import Datum, Derived, Element, Extent, Recipe
from engine.var import Var
from ops.dims import Dim, Guard, dims_in


@frozen(eq=False)
class Task:
    """An operator, and what must be known before it can be signed with numbers.

    `attributes` names those that hold dimensions; `data` the vars whose elements it needs; `guards` what was decided
    about dimensions before it was added, and after the operator in front of it. `is_fixed`: its signature has numbers
    already.
    """

    operator: Operator
    attributes: tuple[str, ...]
    guards: tuple[Guard, ...]
    data: frozenset[str]
    is_fixed: bool


@frozen(eq=False)
class Template:
    """The tasks of a graph in a runnable order. `last` are guards that must hold in the end, and what they need."""

    graph: Graph
    tasks: tuple[Task, ...]
    last: tuple[Guard, ...]

    @property
    def data(self) -> frozenset[str]:
        """The vars that decide sizes."""
        return frozenset().union(*(t.data for t in self.tasks))

    @property
    def is_staged(self) -> bool:
        """Whether some size is known only when a part of the network has run."""
        return not self.data <= set(self.graph.inputs)


def template(graph: Graph) -> Template:
    """Prepares a graph."""
    guards: dict[int, list[Guard]] = {}
    for guard in graph.samples.guards.values():
        guards.setdefault(guard.position, []).append(guard)
    tasks = tuple(_task(op, graph.derived, guards.get(i, [])) for i, op in enumerate(graph.operators))
    return Template(graph, tasks, tuple(guards.get(len(tasks), ())))


def _task(operator: Operator, derived: Mapping[Var, Derived], guards: Iterable[Guard]) -> Task:
    kept = tuple(guards)
    names = tuple(n for n, v in operator.attrs.items() if dims_in(v))
    leaves: set[Hashable] = set()
    for name in names:
        leaves.update(*(d.leaves for d in dims_in(operator.attrs[name])))
    leaves.update(*(g.leaves for g in kept))
    data = _data(leaves, [derived[v] for v in operator.inputs if v in derived])
    specs = operator.signature.inputs + operator.signature.outputs
    return Task(operator, names, kept, data, not names and not any(s.is_symbolic for s in specs))


def _data(leaves: Iterable[Hashable], arrays: Iterable[Derived]) -> frozenset[str]:
    """The vars whose elements decide a dimension or an array."""
    found, seen, left = set[str](), set[Derived](), list(arrays)
    keys = list(leaves)
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
