"""Elements that decide in bodies: guards behind the last operator, counters, constants; and how they are noticed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine.graph.graph import Graph
from engine.graph.var import Var
from engine.stages.template import template
from engine.text.errors import FeedError, GraphError, KernelError, OptionError
from ops.tensor.spec import Array

FOURS = np.full(3, 4, np.float32)


def _run(build: Callable[[Graph, Var], Var], fed: Array = FOURS) -> Array:
    graph = Graph()
    graph.output(build(graph, graph.input("x", ("n",))), "y")
    return engine.compile(graph)(x=fed)["y"]


def _grown(x: Var) -> Callable[[Var, Any], Any]:
    return lambda _, h: ops.concat([h, x], axis=0)


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (lambda g, x: engine.fori_loop(g.constant(np.int64(2)), _grown(x), x), np.tile(FOURS, 3)),
        (lambda g, x: engine.fori_loop(g.constant(x.shape[0]), _grown(x), x), np.tile(FOURS, 4)),
        (
            lambda g, x: engine.cond(g.constant(np.array(True)), lambda: ops.concat([x, x], axis=0), lambda: x),
            np.tile(FOURS, 2),
        ),
        (
            lambda _, x: engine.fori_loop(3, lambda i, h: ops.concat([h, ops.slice(x, [0], [i], [0])], axis=0), x),
            np.full(6, 4, np.float32),
        ),
    ],
)
def test_constants_lengths_and_counters_decide_with_no_run(build: Callable[[Graph, Var], Var], wanted: Array) -> None:
    assert np.array_equal(_run(build), wanted)


def test_a_turn_waits_for_its_own_counts() -> None:
    def turn(h: Var) -> Var:
        return ops.top_k(h, ops.count_nonzero(ops.greater(h, 0.0)))[0] - 1.0

    def goes_on(h: Var) -> Var:
        return ops.greater(ops.reduce_sum(h, keepdims=False), 5.0)

    assert _run(lambda _, x: engine.while_loop(goes_on, turn, x)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", [np.int64(3), 3.0, np.float32(3)])
def test_numbers_of_any_type_decide(number: Any) -> None:
    graph = Graph()
    x = graph.input("x", ("n",))
    graph.output(ops.relu(x) if x.shape[0] == number else ops.exp(x), "y")
    exe = engine.compile(graph)
    assert exe(x=FOURS[:2])["y"] == pytest.approx(np.exp(FOURS[:2]))
    with pytest.raises(FeedError, match=r"n must differ from 3(\.0)?, but n is 3"):
        exe(x=FOURS)


def test_guards_behind_the_last_operator_of_a_body_hold() -> None:
    def turn(_: Var, h: Var) -> Var:
        kept, cut = ops.relu(h), ops.slice(h, [1], [99], [0])
        return cut if h.shape[0] > 4 else kept

    graph = Graph()
    graph.output(engine.fori_loop(5, turn, graph.input("x", ("n", 2))), "y")
    with pytest.raises(FeedError, match="is 4"):
        engine.compile(graph)(x=np.ones((6, 2), np.float32))


def test_guards_behind_the_last_operator_of_a_branch_hold() -> None:
    def then(x: Var) -> Var:
        some = ops.compress(x, ops.greater(x, 0.0), axis=0)
        one, other = ops.relu(some), ops.exp(some)
        return one if some.shape[0] > 4 else other

    graph = Graph()
    x, c = graph.input("x", ("n",)), graph.input("c", (), "bool")
    graph.output(engine.cond(c, then, lambda x: x * 2.0, x), "y")
    exe = engine.compile(graph)
    assert exe(x=np.ones(5, np.float32), c=np.array(True))["y"].tolist() == [1.0] * 5
    with pytest.raises(KernelError, match="count_nonzero_0 must be greater than 4, but count_nonzero_0 is 1"):
        exe(x=np.array([1, -1], np.float32), c=np.array(True))


def test_sizes_that_data_decide_in_a_body_are_seen_from_outside() -> None:
    graph = Graph()
    x = graph.input("x", ("n",))
    graph.output(engine.fori_loop(2, lambda _, h: ops.compress(h, ops.greater(h, 0.3), axis=0), x), "y")
    assert template(graph).is_staged
    with pytest.raises(GraphError, match="depend on the data of"):
        engine.bind(graph, {"n": 3})
    with pytest.raises(OptionError, match="decide some"):
        engine.compile(graph, length_ranges={"n": (1, 8)})
    with pytest.raises(OptionError, match="cannot keep live tensors"):
        engine.compile(graph, strategy="shared_equality")
    assert engine.compile(graph)(x=FOURS)["y"].tolist() == [4, 4, 4]


def _some(x: Var) -> Var:
    return ops.reduce_sum(x, axes=[0], keepdims=False)


def _is_great(x: Var) -> Var:
    return ops.greater(_some(x), 2.5)


def _above(x: Var, limit: float) -> Var:
    return ops.count_nonzero(ops.greater(x, limit))


def _cut_in_a_branch(x: Var) -> Any:
    count = ops.count_nonzero(x)
    return engine.cond(_is_great(x), lambda v: v[:count], lambda v: v, x)


def _cut_in_a_loop(x: Var) -> Any:
    count = ops.count_nonzero(x)
    return engine.fori_loop(_above(x, 1.0), lambda _, v: ops.concat([v[:count], v], axis=0), x)


def _unlike_counts(x: Var) -> Any:
    positive = ops.compress(x, ops.greater(x, 0.0))
    other = ops.gather(x, ops.reshape(ops.nonzero(x), (-1,)))
    return engine.cond(_is_great(x), lambda _: positive, lambda _: other, x)


def _counted_outside(x: Var) -> Any:
    count = _above(x, 1.0)
    return engine.cond(
        _is_great(x), lambda v: ops.expand(_some(v), (count,)), lambda v: ops.expand(_some(v) * 2.0, (count,)), x
    )


def _counted_outside_of_a_scan(x: Var) -> Any:
    count = _above(x, 1.0)
    return engine.scan(lambda h, v: (h, ops.expand(h + v, (count,))), np.zeros((), np.float32), x)[1]


@pytest.mark.parametrize(
    ("build", "fed", "wanted"),
    [
        (_cut_in_a_branch, [1, 2, 0], [1, 2]),
        (_cut_in_a_branch, [1, 0, 0], [1, 0, 0]),
        (_cut_in_a_loop, [1, 2, 0], [1, 2, 1, 2, 0]),
        (_unlike_counts, [1, 2, 3], [1, 2, 3]),
        (_unlike_counts, [0, -1], [-1]),
        (_counted_outside, [1, 2, 3], [6, 6]),
        (_counted_outside, [-5, 2], [-6]),
        (_counted_outside_of_a_scan, [1, 2, 3], [[1, 1], [2, 2], [3, 3]]),
    ],
)
def test_counts_from_outside_decide_in_bodies(build: Callable[[Var], Var], fed: Any, wanted: Any) -> None:
    assert _run(lambda _, x: build(x), np.array(fed, np.float32)).tolist() == wanted


def test_keys_and_values_that_grow_together_are_used_together() -> None:
    graph = Graph("decoder")
    x, stop = graph.input("x", (1, 4)), graph.input("stop", (), "int64")

    def turn(state: tuple[Var, Var, Var, Var, Var]) -> tuple[Var, ...]:
        h, keys, values, past, number = state
        keys, values = ops.concat([keys, h * 2.0], axis=0), ops.concat([values, h * 3.0], axis=0)
        past = ops.concat([past, h, h], axis=0)  # begins as they do, and grows twice as fast
        scores = ops.softmax(h @ ops.transpose(keys, (1, 0)), axis=-1)
        return ops.tanh(scores @ values), keys, values, past, number + 1

    start = (x, x * 1.0, x * 1.0, x * 1.0, graph.constant(np.int64(0)))
    h, keys, _, past, _ = engine.while_loop(lambda s: ops.less(s[4], stop), turn, start)
    for name, var in (("h", h), ("keys", keys), ("past", past)):
        graph.output(var, name)
    exe = engine.compile(graph)
    for turns in (0, 1, 5):
        fed = np.random.default_rng(turns).standard_normal((1, 4)).astype(np.float32)
        now = k = v = fed
        for _ in range(turns):
            k, v = np.concatenate([k, now * 2]), np.concatenate([v, now * 3])
            scores = np.exp(now @ k.T - (now @ k.T).max())
            now = np.tanh(scores / scores.sum() @ v)
        outputs = exe(x=fed, stop=np.int64(turns))
        assert outputs["h"] == pytest.approx(now, abs=1e-5)
        assert outputs["keys"].shape == (turns + 1, 4) and outputs["past"].shape == (2 * turns + 1, 4)
