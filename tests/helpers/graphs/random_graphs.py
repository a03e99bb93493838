"""Random graphs, valid by construction: views of views, overwrites at an offset, fan-out, copies, odd outputs.

Every choice goes through one function, `choose(n)`, a number below n: Hypothesis gives one that shrinks, `seeded` one
for long runs.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from hypothesis import strategies as st

import ops
from engine import Graph, Var
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk

Choose = Callable[[int], int]
Move = Callable[[Graph, list[Var], Choose], tuple[Var, ...]]
_SHAPES: tuple[tuple[int, ...], ...] = ((4, 6), (2, 3, 4), (6,), (), (0, 3), (4, 1, 3))
_LARGEST = 240


def seeded(seed: int) -> Choose:
    """Returns choices from a seed."""
    rng = np.random.default_rng(seed)
    return lambda n: int(rng.integers(n))


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> Graph:
    """Draws a graph of at most `most` operators."""
    return build(lambda n: draw(st.integers(0, n - 1)), most)


def build(choose: Choose, most: int = 12) -> Graph:
    """Builds a graph from choices."""
    graph = Graph("random")
    pool = [graph.input(f"x{i}", _SHAPES[choose(len(_SHAPES))]) for i in range(1 + choose(3))]
    if choose(2):
        pool.append(graph.constant(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)))
    grow(graph, pool, choose, most)
    for i in range(1 + choose(4)):
        recent = choose(2)
        var = pool[-1 - choose(min(4, len(pool)))] if recent else pool[choose(len(pool))]
        graph.output(var, f"y{i}")
    return graph


def grow(graph: Graph, pool: list[Var], choose: Choose, most: int) -> None:
    """Adds one to `most` operators, and what they give to the pool."""
    for _ in range(1 + choose(most)):
        pool.extend(_MOVES[choose(len(_MOVES))](graph, pool, choose))


def _pick(pool: list[Var], choose: Choose) -> Var:
    """Returns a var; recent ones are taken more often, so that chains grow long."""
    return pool[-1 - choose(min(3, len(pool)))] if choose(3) else pool[choose(len(pool))]


def _unary(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    return ((ops.relu, ops.neg, ops.abs, ops.tanh)[choose(4)](_pick(pool, choose)),)


def _binary(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    same = [v for v in pool if v.shape == x.shape]
    return ((ops.add, ops.max, ops.sub)[choose(3)](x, same[choose(len(same))]),)


def _twice(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    """Reads the same var twice, or next to another view of its bytes."""
    x = _pick(pool, choose)
    if x.ndim < 1 or choose(2):
        return (x + x,)
    return (x + ops.slice(x, [-1], [-(2**31)], [0], [-1]),)


def _softmax(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    return (ops.softmax(x, axis=choose(x.ndim)),) if x.ndim and x.spec.size else (ops.neg(x),)


def _transpose(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    order = list(range(x.ndim))
    for i in range(x.ndim - 1):
        j = i + choose(x.ndim - i)
        order[i], order[j] = order[j], order[i]
    return (ops.transpose(x, order),)


def _slice(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    if not x.ndim or not x.spec.size:
        return (ops.identity(x),)
    axis = choose(x.ndim)
    length = x.shape[axis]
    start = choose(length)
    if choose(3) == 0:
        return (ops.slice(x, [start], [-(2**31)], [axis], [-1]),)
    return (ops.slice(x, [start], [start + 1 + choose(length - start)], [axis], [1 + choose(2)]),)


def _reshape(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    size = x.spec.size
    if not size:
        return (ops.reshape(x, (3, 0)),)
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    first = divisors[choose(len(divisors))]
    return (ops.reshape(x, (first, size // first)),)


def _expand(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    times = 1 + choose(2) if x.spec.size * 2 <= _LARGEST else 1
    return (ops.expand(x, (times, *x.shape)),)


def _split(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    axes = [a for a, n in enumerate(x.shape) if n > 1]
    if not axes:
        return (ops.neg(x),)
    axis = axes[choose(len(axes))]
    first = 1 + choose(x.shape[axis] - 1)
    return tuple(ops.split(x, [first, x.shape[axis] - first], axis=axis))


def _concat(_: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    same = [v for v in pool if v.shape == x.shape]
    if not x.ndim or 2 * x.spec.size > _LARGEST:
        return (ops.relu(x),)
    return (ops.concat([x, same[choose(len(same))]], axis=choose(x.ndim)),)


def _custom(schema: OpSchema, graph: Graph, pool: list[Var], choose: Choose) -> tuple[Var, ...]:
    x = _pick(pool, choose)
    return graph.add(schema, [x]) if x.spec.size > 1 else (ops.neg(x),)


def _flat(size: int, signature_specs: Specs) -> Specs:
    return (signature_specs[0].with_shape((size,)),)


def _skipped(signature: Signature) -> int:
    return signature.x.size - signature.y.size


def _overwrite_tail(signature: Signature) -> tuple[Overwrite, ...]:
    return (Overwrite(0, 0, _skipped(signature) * signature.x.dtype.itemsize),)


def _infer_tail(specs: Specs, _: Attrs) -> Specs:
    return _flat(specs[0].size - specs[0].size // 3, specs)


def _infer_head(specs: Specs, _: Attrs) -> Specs:
    return _flat(specs[0].size - specs[0].size // 2, specs)


def _bind_tail(call: Binding) -> Thunk:
    return partial(np.negative, call.x.reshape(-1)[_skipped(call.signature) :], call.y)


def _bind_head(call: Binding) -> Thunk:
    return partial(np.negative, call.x.reshape(-1)[: call.y.size], call.y)


def _bind_through(call: Binding) -> Thunk:
    """Copies by way of the workspace, so that a workspace on top of the input shows."""
    (scratch,) = call.temporaries

    def run() -> None:
        np.add(call.x, call.x, out=scratch)
        np.subtract(scratch, call.x, out=call.y)

    return run


def _dense(_: Signature) -> tuple[int, ...]:
    return (0,)


def _scratch(signature: Signature) -> Specs:
    return (signature.x,)


def _same(specs: Specs, _: Attrs) -> Specs:
    return specs


TAIL = OpSchema("tail", _infer_tail, (Kernel("numpy", _bind_tail, contiguous=_dense),), overwrites=_overwrite_tail)
"""-x without its first third, flat; may overwrite x at an offset."""
HEAD = OpSchema(
    "head", _infer_head, (Kernel("numpy", _bind_head, contiguous=_dense),), overwrites=lambda _: (Overwrite(0, 0),)
)
"""-x without its second half, flat; may overwrite the beginning of x."""
THROUGH = OpSchema("through", _same, (Kernel("numpy", _bind_through, _scratch),))
"""x + x - x, through a workspace."""

_MOVES: tuple[Move, ...] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _twice,
    _softmax,
    _transpose,
    _slice,
    _slice,
    _reshape,
    _expand,
    _split,
    _concat,
    partial(_custom, TAIL),
    partial(_custom, HEAD),
    partial(_custom, THROUGH),
)
