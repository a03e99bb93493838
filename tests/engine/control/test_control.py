"""Control flow in the engine: every way to run gives what plain Python gives; what bodies share, capture and cost."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import engine
import ops
from engine import Graph, Var
from engine.control.body import PlannedBody
from engine.executor.static import StaticExecutor
from engine.text.errors import GraphError, KernelError
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.allocations import check_allocates_nothing
from tests.helpers.graphs.control_graphs import build_control, control_graphs
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.graphs.plain_control_flow import run_model
from tests.helpers.graphs.random_graphs import seeded
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned

TENSOR = 64 * 64 * 4


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(control_graphs())
def test_control_flow_graphs_equal_plain_python_in_every_mode(graph: Graph) -> None:
    _check(graph)


@pytest.mark.slow
def test_many_control_flow_graphs_equal_plain_python() -> None:
    for seed in range(300):
        _check(build_control(seeded(seed), 3))


def _check(graph: Graph) -> None:
    feeds = random_feeds(graph)
    wanted = run_model(graph, feeds)
    assert_same(run_unplanned(graph, feeds), wanted)
    for options in ({}, {"mode": "dynamic"}, {"debug": "poison"}, {"views": False, "overwrite": False}):
        exe = engine.compile(graph, optimise=0, **options)
        for _ in range(2):
            assert_same(exe.run(feeds), wanted)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(control_graphs())
def test_control_flow_bodies_run_under_poison_too(graph: Graph) -> None:
    for body in _bodies(graph):
        feeds = random_feeds(body.graph)
        assert_same(engine.compile(body.graph, debug="poison", optimise=0).run(feeds), run_model(body.graph, feeds))


def _bodies(graph: Graph) -> list[PlannedBody]:
    """Returns all bodies in a graph, those in bodies included."""
    bodies = [a for op in graph.operators for a in op.attrs.values() if isinstance(a, PlannedBody)]
    return bodies + [inner for body in bodies for inner in _bodies(body.graph)]


def _net(build: Callable[[Var, Var], Any]) -> Graph:
    """Returns a graph of a matrix `x` and a bool `c`."""
    graph = Graph("net")
    graph.output(build(graph.input("x", (64, 64)), graph.input("c", (), "bool")), "y")
    return graph


def _products(count: int, x: Var) -> Var:
    for _ in range(count):
        x = x @ x
    return x


def _arena(build: Callable[[Var, Var], Any]) -> float:
    """Returns how many tensors the arena holds."""
    return engine.make_plan(_net(build), optimise=0).arena_bytes / TENSOR


def test_branches_share_what_only_one_of_them_needs() -> None:
    def chosen(then: int, otherwise: int) -> float:
        return _arena(lambda x, c: engine.cond(c, partial(_products, then), partial(_products, otherwise), x))

    inside, small = 2, 1 / 16  # x @ x, and the next one; the first and the last lie outside
    assert chosen(4, 1) < 2 + inside + small
    assert chosen(4, 4) == chosen(4, 1) == chosen(1, 4) > chosen(1, 1)


def test_a_loop_of_a_hundred_turns_has_the_arena_of_one_of_two() -> None:
    def looped(trips: int) -> float:
        return _arena(lambda x, _: engine.fori_loop(trips, lambda _, h: ops.relu(h @ x), x))

    assert looped(100) == looped(2)
    assert looped(1) < looped(100) < 4.1


def test_a_loop_may_begin_in_the_bytes_that_it_ends_in() -> None:
    def looped(trips: int) -> float:
        return _arena(lambda x, _: engine.fori_loop(trips, lambda _, h: h @ h, ops.relu(x)))

    assert looped(8) < 2.1
    assert looped(7) > 2.9


def test_scan_writes_rows_where_rows_were_read() -> None:
    def scanned(reverse: bool) -> float:
        def build(x: Var, _: Var) -> Var:
            _, ys = engine.scan(lambda s, row: (s, ops.relu(row)), (), ops.neg(x), reverse=reverse)
            assert isinstance(ys, Var)
            return ys

        return _arena(build)

    assert scanned(False) < 1.1 and scanned(True) < 1.1


def _counting(packs: list[int], binds: list[int]) -> OpSchema:
    """Returns a schema of x + w, with a kernel that packs w."""

    def pack(_: Any, constants: Any) -> tuple[Array, ...]:
        packs.append(len(constants))
        return (constants[1] * 1,)

    def bind(call: Binding) -> Thunk:
        binds.append(len(call.packed))
        return partial(np.add, call.x, call.packed[0], call.y)

    def infer(specs: Specs, _: Attrs) -> Specs:
        return specs[:1]

    return OpSchema(
        "packing", infer, (Kernel("packs", bind, pack=pack, packed_specs=lambda s: s.inputs[1:]),), arity=(2, 2)
    )


def test_a_captured_weight_is_a_constant_of_the_body_and_is_packed_once() -> None:
    packs, binds = list[int](), list[int]()
    graph, w = Graph(), np.full((64, 64), 2, np.float32)
    w.flags.writeable = False
    x, weight = graph.input("x", (64, 64)), graph.constant(w, "w")
    graph.output(engine.fori_loop(7, lambda _, h: h.graph.add(_counting(packs, binds), [h, weight])[0], x), "y")
    (body,) = _bodies(graph)
    assert packs == [] and next(iter(body.graph.constants.values())) is w
    exe = engine.compile(graph, optimise=0)
    for _ in range(2):
        assert (exe.run({"x": np.zeros((64, 64), np.float32)})["y"] == 14).all()
    assert packs == [1] and binds == [1, 1, 1]
    assert exe.prepacked_bytes == exe.plan.prepacked_bytes == exe.plan.weights_bytes == w.nbytes


def test_control_flow_runs_allocate_nothing() -> None:
    def turn(_: Var, h: Var) -> Var:
        small = ops.less(ops.reduce_max(h, axes=[0, 1], keepdims=False), 2.0)
        activated: Var = engine.cond(small, ops.relu, ops.neg, h)
        return activated

    graph = _net(lambda x, _: engine.scan(lambda h, r: (h + r, h), x, engine.fori_loop(9, turn, x))[1])
    exe = engine.compile(graph, optimise=0)
    assert isinstance(exe.executor, StaticExecutor)
    exe.run({"x": np.ones((64, 64), np.float32), "c": np.asarray(True)})
    check_allocates_nothing(exe.executor.execute, most_bytes=TENSOR // 2)


def test_a_recurrent_layer_as_a_scan() -> None:
    rng = np.random.default_rng(0)
    w, r = rng.normal(size=(4, 8)).astype(np.float32), rng.normal(size=(8, 8)).astype(np.float32) / 4
    graph = Graph("layer")
    x, h = graph.input("x", (7, 2, 4)), graph.input("h", (2, 8))

    def step(state: Var, row: Var) -> tuple[Var, Var]:
        after = ops.tanh(row @ w + state @ r)
        return after, after

    last, ys = engine.scan(step, h, x)
    graph.output(last, "last")
    graph.output(ys, "ys")
    feeds = {"x": rng.normal(size=(7, 2, 4)).astype(np.float32), "h": np.zeros((2, 8), np.float32)}
    outputs, state = engine.compile(graph, optimise=0).run(feeds), feeds["h"]
    for row, y in zip(feeds["x"], outputs["ys"], strict=True):
        state = np.tanh(row @ w + state @ r)
        np.testing.assert_allclose(y, state, rtol=1e-5)
    np.testing.assert_array_equal(outputs["last"], outputs["ys"][-1])


def test_dimensions_that_are_names_stand_in_bodies_too() -> None:
    graph = Graph("named")
    x, c = graph.input("x", ("time", "batch", 4)), graph.input("c", (), "bool")

    def step(total: Var, row: Var) -> tuple[Var, Var]:
        after = engine.cond(c, lambda t, r: t + r, lambda t, r: t - r, total, row)
        return after, engine.fori_loop(2, lambda _, h: h * 2.0, after)

    last, ys = engine.scan(step, ops.reduce_sum(x, axes=[0], keepdims=False), x)
    graph.output(last, "last")
    graph.output(ys, "ys")
    exe, rng = engine.compile(graph, optimise=0), np.random.default_rng(0)
    for time, batch, sign in ((3, 2, True), (5, 1, False), (3, 2, False), (1, 7, True)):
        fed = rng.normal(size=(time, batch, 4)).astype(np.float32)
        outputs = exe.run({"x": fed, "c": np.asarray(sign)})
        totals = fed.sum(axis=0) + np.cumsum(fed if sign else -fed, axis=0)
        np.testing.assert_allclose(outputs["ys"], 4 * totals, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs["last"], totals[-1], rtol=1e-4, atol=1e-5)


def test_newtons_method_runs_as_long_as_it_must() -> None:
    graph = Graph("root")
    x = graph.input("x", ())

    def goes_on(y: Var) -> Var:
        return ops.greater(abs(y * y - x), 1e-4)

    graph.output(engine.while_loop(goes_on, lambda y: (y + x / y) * 0.5, x), "y")
    exe = engine.compile(graph, optimise=0)
    for number in (1.0, 2.0, 9.0, 81.0):
        assert exe(x=number)["y"] == pytest.approx(number**0.5, rel=1e-3)


def test_a_greedy_decoder_ends_when_it_likes_and_its_rows_are_cut_in_a_stage_of_their_own() -> None:
    rng = np.random.default_rng(3)
    table, w = rng.normal(size=(16, 8)).astype(np.float32), rng.normal(size=(8, 16)).astype(np.float32)
    graph, end = Graph("decoder"), np.asarray(5)
    first, state = graph.input("first", (), "int64"), graph.input("state", (8,))

    def step(carried: tuple[Var, Var]) -> tuple[tuple[Var, Var], Var]:
        token, h = carried
        after = ops.tanh(h + ops.gather(graph.constant(table), token))
        word = ops.arg_max(after @ w, axis=0, keepdims=False)
        return (word, after), word

    def goes_on(carried: tuple[Var, Var]) -> Var:
        return ops.logical_not(ops.equal(carried[0], end))

    _, words, count = engine.unfold(step, goes_on, (first, state), most=40)
    cut: Any = [graph.data_dim(count)]
    graph.output(ops.slice(words, [0], cut, [0]), "words")
    exe, lengths = engine.compile(graph, optimise=0), set[int]()
    for start in range(8):
        feeds = {"first": np.asarray(start), "state": rng.normal(size=8).astype(np.float32)}
        token, h, wanted = start, feeds["state"], list[int]()
        while token != 5 and len(wanted) < 40:
            h = np.tanh(h + table[token])
            token = int(np.argmax(h @ w))
            wanted.append(token)
        assert exe.run(feeds)["words"].tolist() == wanted
        lengths.add(len(wanted))
    assert len(lengths) > 2


def test_bodies_capture_outer_vars_through_all_levels() -> None:
    def build(x: Var, c: Var) -> Any:
        return engine.fori_loop(3, lambda _, h: engine.cond(c, lambda: h + x, lambda: h - x), x * 1.0)

    exe = engine.compile(_net(build), optimise=0)
    for c, wanted in ((True, 4), (False, -2)):
        assert (exe(x=np.ones((64, 64), np.float32), c=np.asarray(c))["y"] == wanted).all()


def test_values_of_outer_vars_alone_are_computed_once_outside_a_body() -> None:
    graph = _net(lambda x, _: engine.fori_loop(5, lambda _, h: h + ops.relu(x), x))
    assert schema_names(graph) == ["relu", "loop"]


def test_a_kernel_that_fails_in_a_body_is_named_with_the_loop_around_it() -> None:
    graph = Graph()
    table, i = graph.input("table", (4,)), graph.input("i", (1,), "int64")
    graph.output(engine.fori_loop(3, lambda k, _: ops.gather(table, i + k), ops.gather(table, i)), "y")
    exe, feeds = engine.compile(graph, optimise=0), {"table": np.arange(4, dtype=np.float32), "i": np.asarray([1])}
    assert exe.run(feeds)["y"] == 3
    with pytest.raises(KernelError, match=r"operator 'loop_0' failed on .* operator 'gather_0' failed on .*"):
        exe.run({**feeds, "i": np.asarray([2])})
    assert exe.run(feeds)["y"] == 3


def test_body_functions_that_make_no_sense_are_refused() -> None:
    kept: list[Var] = []

    def leak(_: Var, h: Var) -> Var:
        kept.append(h)
        return h

    graph = Graph()
    x, c = graph.input("x", (4,)), graph.input("c", (), "bool")
    with pytest.raises(OpError, match=r"the branches give float32\[4\] and int32\[4\]"):
        engine.cond(c, lambda v: v, lambda v: ops.cast(v, "int32"), x)
    with pytest.raises(OpError, match=r"float32\[4\] before a turn and int32\[4\] after it"):
        engine.fori_loop(2, lambda _, h: ops.cast(h, "int32"), x)
    with pytest.raises(GraphError, match="the body returns 2 carried values, but has 1 as inputs"):
        engine.while_loop(lambda _: c, lambda h: (h, h), x)
    with pytest.raises(GraphError, match="each of xs must have at least one axis"):
        engine.scan(lambda s, r: (s, r), x, ())
    with pytest.raises(GraphError, match="must be a var of a graph"):
        engine.fori_loop(2, lambda _, h: h, np.zeros(3, np.float32))
    engine.fori_loop(2, leak, x)
    with pytest.raises(GraphError, match="cannot be used outside of it"):
        ops.neg(kept[0])
    with pytest.raises(GraphError, match="is not a var of graph"):
        graph.output(kept[0])
