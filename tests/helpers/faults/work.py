"""What planted faults run into: graphs that use everything that can go wrong, planned, run and compared."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from attrs import frozen

import engine
import ops
from allocator.problem import DEFAULT_ALIGNMENT
from engine import Graph
from engine.lower.lowering import lower
from engine.nesting import hole_filling, rewrite, search
from engine.nesting.choose import measure
from engine.planning.options import Options
from engine.planning.planner import plan_lowered
from ops.schema.backends import NUMPY
from tests.helpers.faults.base import Work
from tests.helpers.graphs.random_graphs import build, seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

SEEDS = 24
"""Random graphs that each fault runs into, at most."""


@cache
def random_graph(seed: int) -> Graph:
    """Returns a graph with views, overwrites, workspaces and values with several readers."""
    return build(seeded(seed), 14)


@frozen
class Planned:
    """What plans random graphs."""

    options: Mapping[str, Any]

    def __call__(self) -> None:
        """Plans them."""
        for seed in range(SEEDS):
            engine.make_plan(random_graph(seed), optimise=0, **self.options)


def planned(**options: Any) -> Planned:
    """Returns what plans random graphs with these options."""
    return Planned(options)


def planning(graph: Callable[[], Graph], **options: Any) -> Work:
    """Returns what plans one graph."""
    return partial(_planned, graph, options)


def _planned(graph: Callable[[], Graph], options: Mapping[str, Any]) -> None:
    engine.make_plan(graph(), **{"optimise": 0, **options})


def compared(graph: Callable[[], Graph], **options: Any) -> Work:
    """Returns what runs a graph twice, with other inputs, and compares with a run without a plan."""
    return partial(_compared, graph, options)


def _compared(graph: Callable[[], Graph], options: Mapping[str, Any]) -> None:
    built = graph()
    exe = engine.compile(built, **{"optimise": 0, **options})
    for seed in range(2):
        feeds = random_feeds(built, seed)
        assert_same(exe.run(feeds), run_unplanned(built, feeds))


def ran(**options: Any) -> Work:
    """Returns what runs random graphs, and compares with runs without a plan."""

    def work() -> None:
        for seed in range(SEEDS):
            _compared(partial(random_graph, seed), options)

    return work


def weights(*shape: int, seed: int = 0) -> Any:
    """Returns seeded numbers of a layer."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float32)


def branches() -> Graph:
    """Returns four branches of one input, summed up: much may run at once, and bytes are used again."""
    graph = Graph("branches")
    x = graph.input("x", (16, 16))
    ends = []
    for number in range(4):
        y = x @ weights(16, 16, seed=number)
        for _ in range(3):
            y = ops.tanh(y) @ weights(16, 16, seed=number + 7)
        ends.append(ops.relu(y))
    graph.output(ends[0] + ends[1] + (ends[2] + ends[3]), "y")
    return graph


def joined() -> Graph:
    """Returns a concatenation of computed rows, whose parts are computed inside it, and a reader of each part."""
    graph = Graph("joined")
    x = graph.input("x", (8, 16))
    parts = [ops.tanh(x @ weights(16, 16, seed=n)) for n in range(3)]
    whole = ops.concat(parts, axis=0)
    graph.output(whole @ weights(16, 4), "y")
    graph.output(ops.reduce_sum(parts[1], (1,)), "z")
    return graph


def training() -> Graph:
    """Returns a step of training of two layers."""
    graph = Graph("training")
    x = graph.input("x", (8, 16))
    w, v = (graph.parameter(weights(16, 16, seed=n), name) for n, name in enumerate("wv"))
    loss = ops.reduce_mean(ops.pow(ops.tanh(x @ w) @ v - x, 2.0), None, keepdims=False)
    graph.output(loss, "loss")
    engine.train_step(graph, loss, engine.Adam(0.01))
    return graph


def shared() -> Graph:
    """Returns a tensor that a later call may overwrite in sequence, while an earlier one may still read it at once."""
    graph = Graph("shared")
    x = graph.input("x", (16, 16))
    h = x @ weights(16, 16)
    graph.output(ops.reduce_sum(h @ weights(16, 16, seed=1), (0,)), "y")
    graph.output(ops.reduce_sum(ops.tanh(h), (0,)), "z")
    return graph


def block(axis: int) -> Graph:
    """Returns a block as in DenseNet: what each layer adds is put behind all that it reads."""
    graph = Graph("block")
    x = ops.tanh(graph.input("x", (8, 8)))
    for number in range(4):
        part = ops.slice(x, [0], [8], [axis])
        y = part @ weights(8, 8, seed=number) if axis else weights(8, 8, seed=number) @ part
        x = ops.concat([x, ops.neg(y)], axis=axis)
    graph.output(ops.cum_sum(x, axis), "y")
    return graph


def nested(graph: Callable[[], Graph], *, filled: bool = False) -> Work:
    """Returns what plans a graph with all values nested that can be, whatever it costs."""

    def work() -> None:
        lowered = lower(graph(), backends=(NUMPY,))
        nesting = search.find_sub_buffers(lowered, lambda _: True, in_place=True)
        calls = rewrite.join(lowered, nesting)
        if filled:
            before = measure(calls, overwrite=True, reuse=True)
            holes = hole_filling.fill_holes(nesting, calls, before.chunks, before.problem, DEFAULT_ALIGNMENT)
            calls = rewrite.join(lowered, holes)
        plan_lowered(calls, Options())

    return work


def copied() -> Graph:
    """Returns a concatenation of an input and of a tensor twice: parts that must be copied."""
    graph = Graph("copied")
    x = graph.input("x", (4, 8))
    h = ops.tanh(x)
    graph.output(ops.concat([h, h, x], axis=0) @ weights(8, 8), "y")
    return graph


def kept() -> Graph:
    """Returns a concatenation of functions of one tensor, which something else reads afterwards."""
    graph = Graph("kept")
    h = weights(4, 4) @ graph.input("x", (4, 8))
    graph.output(ops.neg(ops.concat([ops.neg(h), ops.tanh(ops.neg(h))], axis=0)), "y")
    graph.output(ops.cum_sum(h, 0), "z")
    return graph


def gathered() -> Graph:
    """Returns columns side by side, and rows picked of one of them."""
    graph = Graph("gathered")
    h = ops.tanh(graph.input("x", (4, 8)))
    graph.output(ops.neg(ops.concat([h, ops.neg(h)], axis=1)), "y")
    graph.output(ops.gather(h, np.array([2, 0]), axis=0), "z")
    return graph
