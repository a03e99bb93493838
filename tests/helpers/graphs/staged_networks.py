"""Random networks whose data decide sizes, with what numpy makes of the same moves beside them.

All numbers are small integers in float32, so that every sum is exact and outputs equal numpy's to the last bit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field, frozen
from hypothesis import strategies as st

import engine
import ops
from engine import Graph, Var
from ops.registry import find
from ops.tensor.dims import SAMPLES, Dim, sample_of
from ops.tensor.spec import Array
from tests.helpers.graphs.random_graphs import Choose

WIDTH = 4
_MOST_ROWS = 60
Numpy = Callable[[list[Array]], Array]
"""What a tensor is, from all tensors before it."""


@frozen(eq=False)
class Rows:
    """A tensor [rows, WIDTH], at a position among all; those of one `length` have as many rows. `most` with 7 fed."""

    var: Var
    at: int
    length: int
    most: int


@define(eq=False)
class Net:
    """A graph, and step by step what numpy makes of it; `feeds` come first."""

    graph: Graph = field(factory=lambda: Graph("late"))
    steps: list[Numpy] = field(factory=list)
    pool: list[Rows] = field(factory=list)
    outputs: dict[str, int] = field(factory=dict)
    lengths: int = 0

    def keep(self, var: Var, compute: Numpy, like: Rows) -> Rows:
        """Adds a tensor of as many rows as another one."""
        return self._add(var, compute, like.length, like.most)

    def anew(self, var: Var, compute: Numpy, most: int) -> Rows:
        """Adds a tensor of rows of its own number."""
        self.lengths += 1
        return self._add(var, compute, self.lengths, most)

    def note(self, compute: Numpy) -> int:
        """Adds a tensor that is no rows; returns its position."""
        self.steps.append(compute)
        return len(self.steps) - 1

    def output(self, var: Var, at: int) -> None:
        """Adds an output, both for the graph and for numpy."""
        name = f"y{len(self.outputs)}"
        self.graph.output(var, name)
        self.outputs[name] = at

    def wanted(self, feeds: dict[str, Array]) -> dict[str, Array]:
        """Returns the outputs by numpy."""
        arrays: list[Array] = []
        for step in (*(lambda _, a=a: a for a in feeds.values()), *self.steps[len(feeds) :]):
            arrays.append(step(arrays))
        return {name: arrays[at] for name, at in self.outputs.items()}

    def _add(self, var: Var, compute: Numpy, length: int, most: int) -> Rows:
        self.pool.append(Rows(var, self.note(compute), length, most))
        return self.pool[-1]


@st.composite
def nets(draw: st.DrawFn, most: int = 8) -> Net:
    """Draws a net of at most `most` moves."""
    return build_net(lambda n: draw(st.integers(0, n - 1)), most)


def build_net(choose: Choose, most: int = 8) -> Net:
    """Builds a net from choices: inputs "x" [n, WIDTH], "late" [m, WIDTH], often used only in the end, and "k"."""
    net = Net()
    x = net.graph.input("x", ("n", WIDTH))
    net.anew(x, _fed, 7)
    late = net.graph.input("late", ("m", WIDTH))
    second = net.anew(late, _fed, 7)
    number = net.graph.input("k", (), "int64")
    net.note(_fed)
    if choose(2):
        net.pool.remove(second)
    for _ in range(1 + choose(most)):
        _MOVES[choose(len(_MOVES))](net, choose, number)
        if choose(6) == 0:
            kept = pick(net, choose)
            net.output(kept.var, kept.at)
    net.pool.append(second)
    last = pick(net, choose)
    total = ops.reduce_sum(second.var, (0,), keepdims=True)
    result = net.keep(last.var + total, lambda a: a[last.at] + a[second.at].sum(0, keepdims=True), last)
    net.output(result.var, result.at)
    return net


def feeds_for(seed: int, most: int = 8) -> dict[str, Array]:
    """Returns small integers, many of them zero; now and then no rows at all."""
    rng = np.random.default_rng(seed)
    n, m = (int(rng.integers(0, most)) for _ in range(2))
    arrays = [(rng.integers(-3, 4, (r, WIDTH)) * rng.integers(0, 2, (r, WIDTH))).astype(np.float32) for r in (n, m)]
    return {"x": arrays[0], "late": arrays[1], "k": np.asarray(rng.integers(0, 6))}


def up_to(most: Dim | int) -> list[int]:
    """Returns samples for a number that is no greater than a dimension, one for each of its samples."""
    return [max(1, sample_of(most, j) * (SAMPLES - j) // (SAMPLES + 1)) for j in range(SAMPLES)]


def data_dim(net: Net, number: Var, most: Dim | int) -> Any:
    """Returns a computed number as a dimension."""
    return net.graph.data_dim(number, 0, up_to(most))


def pick(net: Net, choose: Choose) -> Rows:
    """Returns one of the tensors of rows, recent ones more often."""
    return net.pool[-1 - choose(min(3, len(net.pool)))] if choose(3) else net.pool[choose(len(net.pool))]


def _fed(_: list[Array]) -> Array:
    raise AssertionError("feeds are given")


def _unary(net: Net, choose: Choose, _: Var) -> None:
    x = pick(net, choose)
    function, compute = ((ops.relu, lambda a: np.maximum(a, 0)), (ops.neg, np.negative), (ops.abs, np.abs))[choose(3)]
    net.keep(function(x.var), lambda a: compute(a[x.at]), x)


def _binary(net: Net, choose: Choose, _: Var) -> None:
    x = pick(net, choose)
    same = [r for r in net.pool if r.length == x.length]
    y = same[choose(len(same))]
    net.keep(ops.max(x.var, y.var - 1.0), lambda a: np.maximum(a[x.at], a[y.at] - 1.0), x)


def _product(net: Net, choose: Choose, _: Var) -> None:
    """Multiplies by small integers; then brings values near zero again, so that no sum is ever rounded."""
    x, weight = pick(net, choose), (np.arange(WIDTH * WIDTH).reshape(WIDTH, WIDTH) * 7 % 3 - 1).astype(np.float32)
    low, high = -9.0, 9.0
    var = ops.max(ops.min(x.var @ weight, high), low)
    net.keep(var, lambda a: np.maximum(np.minimum(a[x.at] @ weight, high), low), x)


def _flip(net: Net, choose: Choose, _: Var) -> None:
    """Adds a view that runs backwards, along rows or columns."""
    x, axis = pick(net, choose), choose(2)
    net.keep(ops.slice(x.var, [-1], [-(2**31)], [axis], [-1]), lambda a: np.flip(a[x.at], axis), x)


def _turned(net: Net, choose: Choose, _: Var) -> None:
    """Adds a transposed view, calculated with or not, and turned back."""
    x, works = pick(net, choose), choose(2)
    turned = ops.transpose(x.var)
    back = ops.transpose(ops.neg(turned) if works else turned)
    net.keep(back, lambda a: -a[x.at] if works else a[x.at], x)


def _folded(net: Net, choose: Choose, _: Var) -> None:
    """Adds a view of another shape: flat, and rows again."""
    x = pick(net, choose)
    net.keep(ops.reshape(ops.reshape(x.var, (-1,)), (-1, WIDTH)), lambda a: a[x.at], x)


def _constant(net: Net, choose: Choose, _: Var) -> None:
    """Adds a view of a constant beside something else."""
    x, table = pick(net, choose), np.arange(24, dtype=np.float32).reshape(WIDTH, 6) % 5 - 2
    view = ops.slice(ops.transpose(net.graph.constant(table)), [1], [4], [0])
    if x.most + 3 <= _MOST_ROWS:
        net.anew(ops.concat([x.var, view]), lambda a: np.concatenate([a[x.at], table.T[1:4]]), x.most + 3)


def _joined(net: Net, choose: Choose, _: Var) -> None:
    x, y = pick(net, choose), pick(net, choose)
    if x.most + y.most <= _MOST_ROWS:
        var: Var = ops.concat([x.var, y.var])
        net.anew(var, lambda a: np.concatenate([a[x.at], a[y.at]]), x.most + y.most)


def _column(x: Rows, column: int) -> Var:
    return ops.reshape(ops.slice(x.var, (column,), (column + 1,), (1,)), (-1,))


def _sieve(net: Net, choose: Choose, _: Var) -> None:
    """Keeps the rows that are not zero in a column, by `nonzero`; now and then their number is an output too."""
    x, column = pick(net, choose), choose(WIDTH)
    one = _column(x, column)
    (number,) = net.graph.add(find("count_nonzero"), [one])
    (places,) = net.graph.add(find("nonzero"), [one], {"count": data_dim(net, number, x.var.shape[0])})
    var = ops.gather(x.var, ops.reshape(places, (-1,)))
    net.anew(var, lambda a: a[x.at][np.nonzero(a[x.at][:, column])[0]], x.most)
    if choose(3) == 0:
        net.output(number, net.note(lambda a: np.asarray(np.count_nonzero(a[x.at][:, column]))))


def _compress(net: Net, choose: Choose, _: Var) -> None:
    x, column = pick(net, choose), choose(WIDTH)
    wanted = ops.less(0.0, _column(x, column))
    (number,) = net.graph.add(find("count_nonzero"), [wanted])
    attrs = {"count": data_dim(net, number, x.var.shape[0]), "axis": 0}
    (var,) = net.graph.add(find("compress"), [x.var, wanted], attrs)
    net.anew(var, lambda a: a[x.at][a[x.at][:, column] > 0], x.most)


def _unique(net: Net, choose: Choose, _: Var) -> None:
    """Makes as many as there can be, then cuts: the end of a view is what data decide."""
    x = pick(net, choose)
    values, _, _, _, number = net.graph.add(find("unique"), [x.var], {"axis": 0})
    var = ops.slice(values, [0], [data_dim(net, number, x.var.shape[0])], [0])
    net.anew(var, lambda a: np.unique(a[x.at] + 0.0, axis=0).reshape(-1, WIDTH), x.most)


def _top(net: Net, choose: Choose, _: Var) -> None:
    """Takes the greatest elements of each column, as many as a column has that are not zero."""
    x, column = pick(net, choose), choose(WIDTH)
    (number,) = net.graph.add(find("count_nonzero"), [_column(x, column)])
    best, _ = ops.top_k(x.var, data_dim(net, number, x.var.shape[0]), axis=0)

    def by_numpy(a: list[Array]) -> Array:
        return -np.sort(-a[x.at], axis=0)[: np.count_nonzero(a[x.at][:, column])]

    net.anew(best, by_numpy, x.most)


def _first(net: Net, choose: Choose, number: Var) -> None:
    """Takes the first k rows; k is fed, so that no stage has to end."""
    x = pick(net, choose)
    net.anew(
        ops.slice(x.var, [0], [data_dim(net, number, x.var.shape[0])], [0]), lambda a: a[x.at][: int(a[2])], x.most
    )


def _spread(net: Net, choose: Choose, _: Var) -> None:
    """Expands to a computed shape: as many rows as a column has that are not zero."""
    x, column = pick(net, choose), choose(WIDTH)
    (number,) = net.graph.add(find("count_nonzero"), [_column(x, column)])
    top = ops.reduce_sum(x.var, (0,), keepdims=True)
    top = ops.max(ops.min(top, 9.0), -9.0)
    var = ops.neg(ops.expand(top, (data_dim(net, number, x.var.shape[0]), WIDTH)))

    def by_numpy(a: list[Array]) -> Array:
        clipped = np.clip(a[x.at].sum(0, keepdims=True), -9, 9)
        return -np.repeat(clipped, np.count_nonzero(a[x.at][:, column]), 0)

    net.anew(var, by_numpy, x.most)


def _branch(net: Net, choose: Choose, _: Var) -> None:
    """Adds branches of unlike shapes."""
    x = pick(net, choose)
    if 2 * x.most > _MOST_ROWS:
        return
    is_so = ops.less(0.0, ops.reduce_sum(x.var, (0, 1), keepdims=False))
    var = engine.cond(is_so, lambda: ops.concat([x.var, ops.neg(x.var)]), lambda: ops.relu(x.var))

    def by_numpy(a: list[Array]) -> Array:
        return np.concatenate([a[x.at], -a[x.at]]) if a[x.at].sum() > 0 else np.maximum(a[x.at], 0)

    net.anew(var, by_numpy, 2 * x.most)


def _growing(net: Net, choose: Choose, number: Var) -> None:
    """Adds a loop that carries one row more in each turn, as often as "k" says, which may be never."""
    x = pick(net, choose)
    if x.most + 5 > _MOST_ROWS:
        return
    limit = 9.0

    def turn(_: Var, h: Var) -> Var:
        row = ops.max(ops.min(ops.reduce_sum(h, (0,), keepdims=True), limit), -limit)
        return ops.concat([h, row + 1.0])

    def by_numpy(a: list[Array]) -> Array:
        h = a[x.at]
        for _ in range(int(a[2])):
            h = np.concatenate([h, np.clip(h.sum(0, keepdims=True), -9, 9) + 1.0])
        return h

    net.anew(engine.fori_loop(number, turn, x.var), by_numpy, x.most + 5)


def _shrinking(net: Net, choose: Choose, number: Var) -> None:
    """Adds a loop that carries a view of its argument, one row less in each turn, and counts rows by their number."""
    x, backwards, sifts = pick(net, choose), bool(choose(2)), bool(choose(2))

    def goes_on(carried: tuple[Var, Var]) -> Var:
        is_long: Var = ops.less(number, carried[0].graph.constant(carried[0].shape[0]))
        return is_long

    def turn(carried: tuple[Var, Var]) -> tuple[Var, Var]:
        h, total = carried
        after: Var = h[:0:-1] if backwards else h[1:]
        if sifts:
            after = ops.compress(after, ops.less(after[:, 0], 2.0), axis=0)
        return after, ops.mod(total * h.shape[0], np.asarray(7))

    def rest(a: list[Array]) -> tuple[Array, int]:
        h, total = a[x.at], 1
        while len(h) > a[2]:
            total, h = total * len(h) % 7, h[:0:-1] if backwards else h[1:]
            h = h[h[:, 0] < 2] if sifts else h
        return h, total

    last, total = engine.while_loop(goes_on, turn, (x.var, net.graph.constant(np.int64(1))))
    net.anew(last, lambda a: rest(a)[0], x.most)
    if choose(2):
        net.output(total, net.note(lambda a: np.asarray(rest(a)[1])))


def _nested(net: Net, choose: Choose, number: Var) -> None:
    """Nests a branch, a loop and a cut in a loop, with captured vars and lengths at every level."""
    x, y, turns = pick(net, choose), pick(net, choose), 1 + choose(3)
    if x.most + 2 * turns > _MOST_ROWS or y.most > _MOST_ROWS:
        return

    def longer(h: Var) -> Var:
        row = ops.reduce_sum(h, (0,), keepdims=True) * 0.0 + ops.cast(h.graph.constant(h.shape[0]), "float32")
        cut: Var = engine.fori_loop(number, lambda _, g: g[:-1], ops.concat([h, row, row]))
        return cut

    def shorter(h: Var) -> Var:
        kept: Var = ops.compress(h, ops.less(-2.0, h[:, 1]), axis=0)
        return ops.min(kept, ops.reduce_sum(y.var, (0,), keepdims=True))

    def turn(_: Var, h: Var) -> Var:
        is_so = ops.less(0.0, ops.reduce_sum(h, (0, 1), keepdims=False))
        chosen: Var = engine.cond(is_so, shorter, longer, h)
        return chosen

    def by_numpy(a: list[Array]) -> Array:
        h = a[x.at]
        for _ in range(turns):
            if h.sum() > 0:
                h = np.minimum(h[h[:, 1] > -2], a[y.at].sum(0, keepdims=True))
            else:
                h = np.concatenate([h, np.full((2, WIDTH), len(h), np.float32)])
                h = h[: max(len(h) - int(a[2]), 0)]
        return h

    net.anew(engine.fori_loop(turns, turn, x.var), by_numpy, x.most + 2 * turns)


Move = Callable[[Net, Choose, Var], None]
_MOVES: tuple[Move, ...] = (
    _unary,
    _unary,
    _binary,
    _product,
    _flip,
    _turned,
    _folded,
    _constant,
    _joined,
    _sieve,
    _sieve,
    _compress,
    _unique,
    _top,
    _first,
    _spread,
    _branch,
    _growing,
    _shrinking,
    _nested,
)
