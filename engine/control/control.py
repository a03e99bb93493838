"""Control flow: Python functions that build the bodies of operators. The names are those of JAX.

A function is called once, with vars that stand for the inputs of the operator. It may use vars of the graph around it
as well. An operator that depends on those alone belongs to the graph around: it runs once, in front.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from engine.control.body import PlannedBody
from engine.control.deferred import Growth, add_branch, add_loop, unlike_axes
from engine.graph.building import BUILDING
from engine.graph.graph import Graph
from engine.graph.nested import InnerGraph
from engine.graph.var import Var
from engine.text.errors import GraphError
from ops.control.loop import COUNTER
from ops.control.scan import SCAN
from ops.schema.schema import Specs
from ops.tensor.errors import ShapeError
from ops.tensor.spec import TensorSpec

Vars = Any
"""A var, or a tuple of vars. Callers may pass arrays in place of vars."""
Build = Callable[[tuple[Var, ...]], Sequence[Vars]]


def cond(condition: Var, then: Callable[..., Vars], otherwise: Callable[..., Vars], *operands: Vars) -> Vars:
    """Returns `then(*operands)` if the condition (one bool) is true in the run, else `otherwise(*operands)`.

    The tensors of one branch share bytes with those of the other. Where branches return other shapes, or data decide
    sizes in them, the network runs in stages: the chosen branch replaces the operator. Raises GraphError, OpError.
    """
    outer = _outer(condition, *operands)
    inputs = _vars(outer, operands)
    one, other = (_inner(outer, name, [v.spec for v in inputs]) for name in ("then", "otherwise"))
    shapes = []
    for graph, function, before in ((one, then, other), (other, otherwise, one)):
        shapes.append(_fill(graph, lambda vs, f=function: f(*vs)))  # type: ignore[misc] # a default is no annotation
        for var in graph.inputs_behind(len(inputs)):
            before.own(var)
    operands = (condition, *inputs, *one.inputs_behind(len(inputs)))
    return _like(shapes[0], add_branch(outer, operands, _closed(one), _closed(other)))


def fori_loop(trips: int | Var, body: Callable[[Var, Vars], Vars], init: Vars) -> Vars:
    """Returns the last `carried = body(i, carried)`, for i from 0 (int64) to `trips`, a number or one int64.

    The first value is `init`; carried values keep their element type. Where their shapes change from turn to turn, or
    data decide sizes in the body, the network runs in stages, and each turn becomes operators. Raises GraphError,
    OpError.
    """
    outer = _outer(trips, *_flat(init))
    carried = _vars(outer, _flat(init))

    def turn(vs: tuple[Var, ...]) -> Vars:
        return _as_many(carried, body(vs[0], _like(init, vs[1:])))

    graph, _ = _body(outer, carried, turn, 0)
    ahead = (trips,) if isinstance(trips, Var) else ()
    attrs = {"trips_given": True} if ahead else {"trips": trips}
    return _like(init, _loop(outer, graph, ahead, carried, attrs)[:-1])


def while_loop(goes_on: Callable[[Vars], Var], body: Callable[[Vars], Vars], init: Vars) -> Vars:
    """Returns the last `carried = body(carried)`, repeated while `goes_on(carried)`, one bool, is true.

    Starts with `init`.

    Carried values may change their shapes, as in `fori_loop`. Raises GraphError, OpError.
    """
    outer = _outer(*_flat(init))
    carried = _vars(outer, _flat(init))

    def turn(vs: tuple[Var, ...]) -> Vars:
        after = body(_like(init, vs[1:]))
        return goes_on(after), *_as_many(carried, after)

    graph, _ = _body(outer, carried, turn, 1)
    ahead = (goes_on(_like(init, carried)),)
    return _like(init, _loop(outer, graph, ahead, carried, {"cond_given": True, "conditional": True})[:-1])


def unfold(
    f: Callable[[Vars], tuple[Vars, Vars]], goes_on: Callable[[Vars], Var], init: Vars, most: int
) -> tuple[Vars, Vars, Var]:
    """Repeats `carried, y = f(carried)` while `goes_on(carried)`, one bool, is true, but at most `most` times.

    Returns the last carried value, the rows y in one tensor, and their number (int64). The tensor has `most` rows;
    those that no turn computed are 0, and `ops.slice(ys, [0], [graph.data_dim(count)], [0])` cuts them off. Carried
    values may change their shapes, as in `fori_loop`; then the tensor has only computed rows. Raises GraphError,
    OpError.
    """
    outer = _outer(*_flat(init))
    carried = _vars(outer, _flat(init))

    def turn(vs: tuple[Var, ...]) -> tuple[Vars, ...]:
        after, y = f(_like(init, vs[1:]))
        return goes_on(after), _as_many(carried, after), y

    graph, (*_, y) = _body(outer, carried, turn, 1)
    ahead = (goes_on(_like(init, carried)),)
    attrs = {"cond_given": True, "conditional": True, "trips": most, "most": most}
    *results, count = _loop(outer, graph, ahead, carried, attrs)
    return _like(init, results[: len(carried)]), _like(y, results[len(carried) :]), count


def scan(f: Callable[[Vars, Vars], tuple[Vars, Vars]], init: Vars, xs: Vars, *, reverse: bool = False) -> Any:
    """Computes `carried, y = f(carried, x)` for each row x of `xs` (along its first axis); starts with `init`.

    Returns the last carried value and the rows y in one tensor. Either may be (), a tuple of none. `reverse` goes from
    the last row to the first one. Carried values keep shape and element type, and data computed in f decide no size in
    it: a scan never runs in stages, as a loop may. Raises GraphError, OpError.
    """
    outer = _outer(*_flat(init), *_flat(xs))
    states, tensors = _vars(outer, _flat(init)), _vars(outer, _flat(xs))
    if not tensors or not all(v.ndim for v in tensors):
        raise GraphError("scan: each of xs must have at least one axis")
    graph = _inner(outer, "body", [v.spec for v in states] + [TensorSpec(v.shape[1:], v.dtype) for v in tensors])

    def turn(vs: tuple[Var, ...]) -> tuple[Vars, Vars]:
        after, y = f(_like(init, vs[: len(states)]), _like(xs, vs[len(states) :]))
        return _as_many(states, after), y

    _, y = _fill(graph, turn)
    body, inputs = _closed(graph), (*states, *tensors)
    _check_scan(body, len(states))
    ways = {"input_directions": [int(reverse)] * len(tensors), "output_directions": [int(reverse)] * len(_flat(y))}
    attrs = {"states": len(states), "scan_inputs": len(tensors), **ways}
    operands = (*inputs, *graph.inputs_behind(len(inputs)))
    results = outer.add(SCAN, operands, {"body": body, **attrs})
    return _like(init, results[: len(states)]), _like(y, results[len(states) :])


def _check_scan(body: PlannedBody, states: int) -> None:
    """Raises GraphError, ShapeError for a body that cannot be planned beforehand."""
    other = "arenaplan.fori_loop and arenaplan.unfold run such a body in stages"
    if body.needs_data:
        raise GraphError(f"scan: data computed in the body decide its sizes, but scans are planned beforehand; {other}")
    unlike = unlike_axes(body.inputs[:states], body.outputs[:states], body.graph.samples)
    if unlike:
        changes = ", ".join(f"{body.inputs[i]} becomes {body.outputs[i]}" for i in sorted({i for i, _ in unlike}))
        raise ShapeError(f"scan: carried values keep their shapes, but {changes}; {other}")


def _loop(
    outer: Graph, graph: InnerGraph, ahead: Sequence[Var], carried: Sequence[Var], attrs: dict[str, Any]
) -> tuple[Var, ...]:
    operands = (*ahead, *carried, *graph.inputs_behind(1 + len(carried)))
    return add_loop(outer, operands, _closed(graph), {"carried": len(carried), **attrs})


def _body(
    outer: Graph, carried: Sequence[Var], turn: Callable[[tuple[Var, ...]], Any], first: int
) -> tuple[InnerGraph, Any]:
    """Builds the body of a loop; returns it and the result of the function. Carried outputs begin at number `first`.

    Where a length changes from turn to turn, the function is called again, with that length unknown.
    """
    growth = Growth(outer.samples)
    while True:
        extent = outer.extent()
        graph = _inner(outer, "body", (COUNTER, *(v.spec for v in carried)), growth)
        result = _fill(graph, turn)
        specs = [[v.spec for v in of.values()] for of in (graph.inputs, graph.outputs)]
        before, after = specs[0][1 : 1 + len(carried)], specs[1][first : first + len(carried)]
        if not growth.learn(before, after, graph.samples):
            return graph, result
        outer.cut(extent)


def _outer(*values: Any) -> Graph:
    """Returns the innermost of the graphs under construction and of those that the vars belong to."""
    of_vars = [v.graph for v in values if isinstance(v, Var) and isinstance(v.graph, Graph)]
    graphs: list[Graph] = [*BUILDING.get(), *of_vars]
    if not graphs:
        raise GraphError("at least one of the operands must be a var of a graph")
    return max(graphs, key=lambda g: len(g.around))


def _inner(outer: Graph, name: str, specs: Specs | Sequence[TensorSpec], growth: Growth | None = None) -> InnerGraph:
    """Returns a graph for a body, with an input of each spec; lengths of inputs behind the first may grow."""
    graph = InnerGraph(name, outer)
    for i, spec in enumerate(specs):
        graph.input_like(f"{name}:{i}", spec, growth.of(i - 1) if growth else {})
    return graph


def _fill(graph: InnerGraph, function: Callable[[tuple[Var, ...]], Any]) -> Any:
    """Calls a function with the declared inputs of a graph, and makes its results the outputs. Returns the results."""
    with _inside(graph):
        captured = set(graph.captured.values())
        result = function(tuple(v for v in graph.inputs.values() if v not in captured))
    for i, var in enumerate(_vars(graph, _leaves(result))):
        graph.output(var, f"{graph.name}:out{i}")
    return result


@contextmanager
def _inside(graph: Graph) -> Iterator[None]:
    token = BUILDING.set((*BUILDING.get(), graph))
    try:
        yield
    finally:
        BUILDING.reset(token)


def _closed(graph: InnerGraph) -> PlannedBody:
    graph.is_closed = True
    return PlannedBody(graph)


def _vars(graph: Graph, values: Sequence[Any]) -> tuple[Var, ...]:
    return tuple(v if isinstance(v, Var) else graph.constant(v) for v in values)


def _flat(value: Vars) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _leaves(value: Vars) -> tuple[Any, ...]:
    return tuple(leaf for part in _flat(value) for leaf in _flat(part))


def _as_many(carried: Sequence[Var], after: Vars) -> tuple[Any, ...]:
    """Returns the carried values. Raises GraphError where their number differs from the inputs."""
    if len(_flat(after)) != len(carried):
        raise GraphError(f"the body returns {len(_flat(after))} carried values, but has {len(carried)} as inputs")
    return _flat(after)


def _like(shape: Vars, vars: Sequence[Var]) -> Vars:
    return tuple(vars) if isinstance(shape, (tuple, list)) else vars[0]
