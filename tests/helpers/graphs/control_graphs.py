"""Random graphs with control flow in them, nested: bodies that swap what they carry, give it back, capture, count."""

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from tests.helpers.graphs.random_graphs import Choose, grow

_SHAPES: tuple[tuple[int, ...], ...] = ((4, 6), (6,), (), (2, 3, 4))
Pool = list[Var]


@st.composite
def control_graphs(draw: st.DrawFn, depth: int = 2) -> Graph:
    """Draws a graph of some operators, with control flow in at most `depth` levels."""
    return build_control(lambda n: draw(st.integers(0, n - 1)), depth)


def build_control(choose: Choose, depth: int = 2) -> Graph:
    """Builds the same from choices."""
    graph = Graph("random")
    pool = [graph.input(f"x{i}", _SHAPES[choose(len(_SHAPES))]) for i in range(1 + choose(2))]
    pool.append(graph.constant(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)))
    for _ in range(1 + choose(2)):
        grow(graph, pool, choose, 2)
        pool.extend(_CONTROL[choose(len(_CONTROL))](graph, pool, choose, depth - 1))
    for i, var in enumerate(pool[-1 - choose(3) :]):
        graph.output(var, f"y{i}")
    return graph


def _pick(pool: Pool, choose: Choose) -> Var:
    return pool[-1 - choose(len(pool))]


def _several(pool: Pool, choose: Choose) -> tuple[Var, ...]:
    return tuple(_pick(pool, choose) for _ in range(1 + choose(3)))


def _inside(arguments: tuple[Var, ...], around: Pool, choose: Choose, depth: int) -> Pool:
    """Returns the vars of a body: its arguments first, then what it computes from them and from vars around it."""
    pool, graph = list(arguments), arguments[0].graph
    assert isinstance(graph, Graph)
    if choose(2):
        pool.append(_pick(around, choose))
    grow(graph, pool, choose, 3)
    if depth and not choose(3):
        pool.extend(_CONTROL[choose(len(_CONTROL))](graph, pool, choose, depth - 1))
    return pool


def _alike(pool: Pool, wanted: tuple[Var, ...], choose: Choose) -> tuple[Var, ...]:
    """Returns vars of these specs, late ones more often: new ones, the same ones or in another order."""
    alike = []
    for var in wanted:
        same = [v for v in pool if v.spec == var.spec]
        alike.append(same[-1 - choose(min(2, len(same)))])
    return tuple(alike)


def _positive(var: Var) -> Var:
    total = ops.reduce_sum(var, axes=list(range(var.ndim)), keepdims=False) if var.ndim else var
    return ops.less(total, np.asarray(3, np.float32))


def _cond(_: Graph, pool: Pool, choose: Choose, depth: int) -> tuple[Var, ...]:
    operands = _several(pool, choose)

    def branch(*vs: Var) -> tuple[Var, ...]:
        return _alike(_inside(vs, pool, choose, depth), vs, choose)

    outputs: tuple[Var, ...] = engine.cond(_positive(operands[0]), branch, branch, *operands)
    return outputs


def _fori(_: Graph, pool: Pool, choose: Choose, depth: int) -> tuple[Var, ...]:
    init, trips = _several(pool, choose), choose(5)
    counted = ops.reshape(ops.cast(_positive(init[0]), "int64") * np.asarray(trips), ())

    def body(i: Var, vs: tuple[Var, ...]) -> tuple[Var, ...]:
        inside = _inside(vs, pool, choose, depth)
        return _alike([*inside, inside[0] + ops.cast(i, "float32")], vs, choose)

    outputs: tuple[Var, ...] = engine.fori_loop(counted if choose(2) else trips, body, init)
    return outputs


def _while(_: Graph, pool: Pool, choose: Choose, depth: int) -> tuple[Var, ...]:
    init, limit = _several(pool, choose), np.asarray(choose(5))

    def body(vs: tuple[Var, ...]) -> tuple[Var, ...]:
        return vs[0] + 1, *_alike(_inside(vs[1:], pool, choose, depth), vs[1:], choose)

    def goes_on(vs: tuple[Var, ...]) -> Var:
        return ops.less(vs[0], limit)

    outputs: tuple[Var, ...] = engine.while_loop(goes_on, body, (_zero(init[0]), *init))
    return outputs[1:]


def _unfold(_: Graph, pool: Pool, choose: Choose, depth: int) -> tuple[Var, ...]:
    init, most, limit = _several(pool, choose), 1 + choose(4), np.asarray(choose(5))

    def body(vs: tuple[Var, ...]) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
        inside = _inside(vs[1:], pool, choose, depth)
        return (vs[0] + 1, *_alike(inside, vs[1:], choose)), (_pick(inside, choose),) * choose(3)

    (_, *states), ys, count = engine.unfold(body, lambda vs: ops.less(vs[0], limit), (_zero(init[0]), *init), most)
    return *states, *ys, ops.cast(count, "float32")


def _zero(like: Var) -> Var:
    graph = like.graph
    assert isinstance(graph, Graph)
    return graph.constant(np.int64(0))


def _scan(_: Graph, pool: Pool, choose: Choose, depth: int) -> tuple[Var, ...]:
    init = _several(pool, choose) if choose(3) else ()
    tensors = [v for v in pool if v.ndim and v.spec.size]
    if not tensors:
        return ()
    first = _pick(tensors, choose)
    xs = tuple(v for v in tensors if v.shape[0] == first.shape[0])[: 1 + choose(2)]

    def step(vs: tuple[Var, ...], rows: tuple[Var, ...]) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
        inside = _inside((*vs, *rows), pool, choose, depth)
        return _alike(inside, vs, choose), (_pick(inside, choose),) * (choose(3) + (not init))

    states, ys = engine.scan(step, init, xs, reverse=bool(choose(2)))
    return *states, *ys


Move = Callable[[Graph, Pool, Choose, int], tuple[Var, ...]]
_CONTROL: tuple[Move, ...] = (_cond, _fori, _while, _unfold, _scan)
