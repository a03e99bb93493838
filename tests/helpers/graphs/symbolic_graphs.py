"""Random graphs that are built for names or for numbers alike: choices never look at a length.

`build(choose, dims)` with names gives the template, with numbers the concrete graph; the same choices, the same
operators. Tensors are of three kinds, by rank: images [b, c, h, w], tokens [b, s, c], rows [b, c]; `c` is a number.
Two with the same `size` (a text that tells how lengths came about) have the same shape but for `c`.
"""

from collections.abc import Callable, Mapping

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from engine.stages.bind import input_shapes
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import Choose

NAMES = ("b", "h", "w", "s")
LENGTHS: st.SearchStrategy[dict[str, int]] = st.fixed_dictionaries({n: st.integers(1, 7) for n in NAMES})


@frozen(eq=False)
class Known:
    """A tensor, and how its lengths came about; `channels` along `axis`; `grown` times as large as the inputs."""

    var: Var
    size: str
    channels: int
    grown: int = 1

    @property
    def axis(self) -> int:
        """Returns the axis of the channels."""
        return 1 if self.var.ndim == 4 else -1

    def like(self, var: Var) -> "Known":
        """Returns another one of this shape."""
        return Known(var, self.size, self.channels, self.grown)


Pool = list[Known]
Move = Callable[[Pool, Choose], "tuple[Known, ...]"]


def symbolic(choose: Choose, most: int = 8) -> Graph:
    """Returns the graph with names."""
    return build(choose, {n: n for n in NAMES}, most)


def build(choose: Choose, dims: Mapping[str, int | str], most: int = 8) -> Graph:
    """Builds a graph of at most `most` moves, some of which are several operators."""
    graph = Graph("open")
    b, h, w, s = (dims[n] for n in NAMES)
    pool = [
        Known(graph.input("image", (b, 3, h, w)), "image", 3),
        Known(graph.input("tokens", (b, s, 4)), "tokens", 4),
    ]
    if choose(2):
        pool.append(Known(graph.input("more", (b, s, 4)), "tokens", 4))
    for _ in range(1 + choose(most)):
        pool.extend(_MOVES[choose(len(_MOVES))](pool, choose))
    for i, value in enumerate(pool[-1 - choose(3) :]):
        graph.output(value.var, f"y{i}")
    if choose(3) == 0:
        graph.output(_pick(pool, choose).var, "early")
    return graph


def weights(*shape: int) -> Array:
    """Returns weights, the same ones for the same shape."""
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * 0.5).astype(np.float32)


def _pick(pool: Pool, choose: Choose, rank: int = 0) -> Known:
    fitting = [k for k in pool if not rank or k.var.ndim == rank]
    return fitting[-1 - choose(min(3, len(fitting)))] if choose(3) else fitting[choose(len(fitting))]


def _unary(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    return (x.like((ops.relu, ops.neg, ops.tanh, ops.sigmoid)[choose(4)](x.var)),)


def _binary(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    same = [k for k in pool if (k.size, k.channels) == (x.size, x.channels)]
    return (x.like((ops.add, ops.sub, ops.max)[choose(3)](x.var, same[choose(len(same))].var)),)


def _bias(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    shape = (x.channels, 1, 1) if x.var.ndim == 4 else (x.channels,)
    return (x.like(x.var * weights(*shape)),)


def _convolution(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x, filters = _pick(pool, choose, 4), 1 + choose(4)
    convolved = ops.conv2d(x.var, weights(filters, x.channels, 3, 3), weights(filters), pads=1)
    return (Known(convolved, x.size, filters, x.grown),)


def _pool(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x, ceil = _pick(pool, choose, 4), bool(choose(2))
    function = (ops.max_pool, ops.average_pool)[choose(2)]
    pads = 1 if ceil else 0
    size = f"{x.size}/p{pads}"
    return (Known(function(x.var, 2, strides=2, pads=pads), size, x.channels, x.grown),)


def _global(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose, 4)
    return (Known(ops.flatten(ops.global_average_pool(x.var)), "rows", x.channels),)


def _as_tokens(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Turns an image into tokens, by a reshape with -1 and a transpose."""
    x = _pick(pool, choose, 4)
    flat = ops.reshape(x.var, (x.var.shape[0], x.channels, -1))
    return (Known(ops.transpose(flat, (0, 2, 1)), f"tokens of {x.size}", x.channels, x.grown),)


def _linear(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x, width = _pick(pool, choose, 3), 1 + choose(5)
    return (Known(x.var @ weights(x.channels, width), x.size, width, x.grown),)


def _attention(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose, 3)
    scores = ops.softmax(x.var @ ops.transpose(x.var, (0, 2, 1)) * 0.5)
    return (x.like(scores @ x.var),)


def _heads(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Reshapes through a shape with dimensions in it, and back."""
    x = _pick(pool, choose, 3)
    b, s, _ = x.var.shape
    split = ops.transpose(ops.reshape(x.var, (b, s, x.channels, 1)), (0, 2, 1, 3))
    return (x.like(ops.reshape(ops.transpose(ops.exp(split * 0.1), (0, 2, 1, 3)), (b, s, x.channels))),)


def _mean(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose, 3)
    return (Known(ops.reduce_mean(x.var, (1,), keepdims=False), "rows", x.channels),)


def _normal(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose, 3)
    return (x.like(ops.layer_norm(x.var, weights(x.channels))),)


def _softmax(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    return (x.like(ops.softmax(x.var, axis=choose(x.var.ndim))),)


def _flip(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    return (x.like(ops.slice(x.var, [-1], [-(2**31)], [choose(x.var.ndim)], [-1])),)


def _tail(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Takes all but the first of an axis that may have but one."""
    x = _pick(pool, choose)
    axis = choose(x.var.ndim)
    if axis == x.axis % x.var.ndim or axis == 0:
        return (x.like(ops.identity(x.var)),)
    return (Known(ops.slice(x.var, [1], [2**31], [axis]), f"{x.size}[1:,{axis}]", x.channels, x.grown),)


def _join(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Joins two along the channels, or along an axis whose length is a dimension."""
    x = _pick(pool, choose)
    same = [k for k in pool if (k.size, k.channels) == (x.size, x.channels)]
    other = same[choose(len(same))]
    if choose(2) or x.var.ndim == 2:
        joined: Var = ops.concat([x.var, other.var], x.axis % x.var.ndim)
        return (Known(joined, x.size, 2 * x.channels, x.grown),) if x.channels < 16 else ()
    if x.grown > 2:
        return ()
    return (Known(ops.concat([x.var, other.var], 2 if x.var.ndim == 4 else 1), f"2 {x.size}", x.channels, 2 * x.grown),)


def _by_length(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Computes something from a length while shapes are bound."""
    x = _pick(pool, choose)
    graph = x.var.graph
    assert isinstance(graph, Graph)
    length = graph.constant(x.var.shape[choose(x.var.ndim)])
    return (x.like(x.var * ops.cast(length, "float32")),)


def _loop(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x, trips = _pick(pool, choose), choose(4)
    return (x.like(engine.fori_loop(trips, lambda i, h: h * 0.5 + ops.cast(i, "float32") + x.var, x.var)),)


def _cond(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    x = _pick(pool, choose)
    total = ops.reduce_sum(x.var, axes=list(range(x.var.ndim)), keepdims=False)
    is_so = ops.less(total, np.asarray(0, np.float32))
    return (x.like(engine.cond(is_so, lambda: ops.relu(x.var) + 1.0, lambda: x.var * 3.0)),)


def _scan(pool: Pool, choose: Choose) -> tuple[Known, ...]:
    """Scans along the batch."""
    x = _pick(pool, choose)
    start = ops.reduce_max(x.var, (0,), keepdims=False)
    last, rows = engine.scan(lambda h, row: (h * 0.5 + row, h - row), start, x.var)
    return (x.like(rows), x.like(rows + last))


_MOVES: tuple[Move, ...] = (
    _unary,
    _unary,
    _binary,
    _binary,
    _bias,
    _convolution,
    _pool,
    _global,
    _as_tokens,
    _linear,
    _attention,
    _heads,
    _mean,
    _normal,
    _softmax,
    _flip,
    _tail,
    _join,
    _by_length,
    _loop,
    _cond,
    _scan,
)


def feeds_of(graph: Graph, lengths: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Returns numbers for all inputs of a graph with names."""
    rng = np.random.default_rng(seed)
    shapes = input_shapes(graph, lengths)
    return {n: rng.standard_normal(shapes[n]).astype(v.dtype) for n, v in graph.inputs.items()}
