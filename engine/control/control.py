"""Control flow: Python functions that build what runs inside an operator. The words are those of JAX.

A function is called once, with vars that stand for what the operator reads at run time. It may use vars of the graph
around it as well. What it computes from those alone is an operator of the graph around: it runs once, in front.
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
"""A var, or a tuple of them. Where vars are given to us, arrays may stand for them."""
Build = Callable[[tuple[Var, ...]], Sequence[Vars]]


def cond(condition: Var, then: Callable[..., Vars], otherwise: Callable[..., Vars], *operands: Vars) -> Vars:
    """`then(*operands)` if the condition (one bool) is true when the network runs, else `otherwise(*operands)`.

    What only one of them needs shares bytes with what only the other one needs. Where they give other shapes, or data
    decide sizes in them, the network runs in stages: the one that is chosen runs in place of the operator. Raises
    GraphError, OpError.
    """
    outer = _outer(condition, *operands)
    given = _vars(outer, operands)
    one, other = (_inner(outer, name, [v.spec for v in given]) for name in ("then", "otherwise"))
    shapes = []
    for graph, function, before in ((one, then, other), (other, otherwise, one)):
        shapes.append(_fill(graph, lambda vs, f=function: f(*vs)))  # type: ignore[misc] # a default is no annotation
        for var in graph.inputs_behind(len(given)):
            before.own(var)
    operands = (condition, *given, *one.inputs_behind(len(given)))
    return _like(shapes[0], add_branch(outer, operands, _closed(one), _closed(other)))


def fori_loop(trips: int | Var, body: Callable[[Var, Vars], Vars], init: Vars) -> Vars:
    """`carried = body(i, carried)` for i from 0 (int64) to `trips`, a number or one int64; starts with `init`.

    What is carried keeps its element type. Where its shape changes from turn to turn, or data decide sizes in the body,
    the network runs in stages, and the turns are operators of their own. Raises GraphError, OpError.
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
    """`carried = body(carried)` as long as `goes_on(carried)`, one bool, is true; starts with `init`.

    What is carried may change its shape, as in `fori_loop`. Raises GraphError, OpError.
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
    """`carried, y = f(carried)` as long as `goes_on(carried)`, one bool, is true, but at most `most` times.

    Gives what was carried last, the rows y one behind the other, and how many there are (int64). There is room for
    `most` rows, and those that no turn made are 0; `ops.slice(ys, [0], [graph.data_dim(count)], [0])` cuts them off.
    What is carried may change its shape, as in `fori_loop`; then all rows were made. Raises GraphError, OpError.
    """
    outer = _outer(*_flat(init))
    carried = _vars(outer, _flat(init))

    def turn(vs: tuple[Var, ...]) -> tuple[Vars, ...]:
        after, y = f(_like(init, vs[1:]))
        return goes_on(after), _as_many(carried, after), y

    graph, (*_, y) = _body(outer, carried, turn, 1)
    ahead = (goes_on(_like(init, carried)),)
    attrs = {"cond_given": True, "conditional": True, "trips": most, "most": most}
    *found, count = _loop(outer, graph, ahead, carried, attrs)
    return _like(init, found[: len(carried)]), _like(y, found[len(carried) :]), count


def scan(f: Callable[[Vars, Vars], tuple[Vars, Vars]], init: Vars, xs: Vars, *, reverse: bool = False) -> Any:
    """`carried, y = f(carried, x)` for each row x of `xs` (along its first axis); starts with `init`.

    Gives what was carried last, and the rows y one behind the other. Either may be (), a tuple of none. `reverse` goes
    from the last row to the first one. What is carried keeps its shape and element type, and what is computed in f
    decides no size in it: a scan never runs in stages, as a loop may. Raises GraphError, OpError.
    """
    outer = _outer(*_flat(init), *_flat(xs))
    states, tensors = _vars(outer, _flat(init)), _vars(outer, _flat(xs))
    if not tensors or not all(v.ndim for v in tensors):
        raise GraphError("scan: there is nothing to take rows of; each of xs must have at least one axis")
    graph = _inner(outer, "body", [v.spec for v in states] + [TensorSpec(v.shape[1:], v.dtype) for v in tensors])

    def turn(vs: tuple[Var, ...]) -> tuple[Vars, Vars]:
        after, y = f(_like(init, vs[: len(states)]), _like(xs, vs[len(states) :]))
        return _as_many(states, after), y

    _, y = _fill(graph, turn)
    body, given = _closed(graph), (*states, *tensors)
    _check_scan(body, len(states))
    ways = {"input_directions": [int(reverse)] * len(tensors), "output_directions": [int(reverse)] * len(_flat(y))}
    attrs = {"states": len(states), "scan_inputs": len(tensors), **ways}
    operands = (*given, *graph.inputs_behind(len(given)))
    found = outer.add(SCAN, operands, {"body": body, **attrs})
    return _like(init, found[: len(states)]), _like(y, found[len(states) :])


def _check_scan(body: PlannedBody, states: int) -> None:
    """Raises GraphError, ShapeError for a body that cannot be planned beforehand."""
    other = "engine.fori_loop and engine.unfold run such a body in stages"
    if body.needs_data:
        raise GraphError(f"scan: what the body computes decides sizes in it, and a scan is planned beforehand; {other}")
    unlike = unlike_axes(body.inputs[:states], body.outputs[:states], body.graph.samples)
    if unlike:
        told = ", ".join(f"{body.inputs[i]} becomes {body.outputs[i]}" for i in sorted({i for i, _ in unlike}))
        raise ShapeError(f"scan: what is carried keeps its shape, but {told}; {other}")


def _loop(
    outer: Graph, graph: InnerGraph, ahead: Sequence[Var], carried: Sequence[Var], attrs: dict[str, Any]
) -> tuple[Var, ...]:
    operands = (*ahead, *carried, *graph.inputs_behind(1 + len(carried)))
    return add_loop(outer, operands, _closed(graph), {"carried": len(carried), **attrs})


def _body(
    outer: Graph, carried: Sequence[Var], turn: Callable[[tuple[Var, ...]], Any], first: int
) -> tuple[InnerGraph, Any]:
    """The body of a loop, and what the function gave; what is carried are its outputs from number `first` on.

    Where a length changes from turn to turn, the function is called again, with vars of which it is not known.
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
    """The innermost of the graphs that are being built and of those that the vars belong to."""
    known = [v.graph for v in values if isinstance(v, Var) and isinstance(v.graph, Graph)]
    graphs: list[Graph] = [*BUILDING.get(), *known]
    if not graphs:
        raise GraphError("at least one of the operands must be a var of a graph")
    return max(graphs, key=lambda g: len(g.around))


def _inner(outer: Graph, name: str, specs: Specs | Sequence[TensorSpec], growth: Growth | None = None) -> InnerGraph:
    """A graph for a body, with an input of each spec; lengths of those behind the first may grow."""
    graph = InnerGraph(name, outer)
    for i, spec in enumerate(specs):
        graph.input_like(f"{name}:{i}", spec, growth.of(i - 1) if growth else {})
    return graph


def _fill(graph: InnerGraph, function: Callable[[tuple[Var, ...]], Any]) -> Any:
    """Calls a function with the declared inputs of a graph, and makes what it gives the outputs; gives it back."""
    with _inside(graph):
        result = function(tuple(v for v in graph.inputs.values() if v not in graph.captured.values()))
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
    """What a body carries on. Raises GraphError where it is more or less than what it was given."""
    if len(_flat(after)) != len(carried):
        raise GraphError(f"the body carries on {len(_flat(after))} values, and was given {len(carried)}")
    return _flat(after)


def _like(shape: Vars, found: Sequence[Var]) -> Vars:
    return tuple(found) if isinstance(shape, (tuple, list)) else found[0]
