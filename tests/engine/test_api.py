"""Compiling and running: options, budgets, what callers may feed, what a run allocates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
import ops
from engine import Graph, Var
from engine.api import MODES
from engine.executor.static import StaticExecutor
from engine.text.errors import BudgetError, FeedError, GraphError, KernelError, OptionError
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Specs, Thunk
from tests.helpers.allocations import check_allocates_nothing


def _net(width: int = 64) -> Graph:
    graph = Graph("net")
    x = graph.input("x", (4, width))
    w = np.eye(width, dtype=np.float32)
    graph.output(ops.softmax(ops.relu(x @ w) + 1), "y")
    return graph


def _feed(width: int = 64) -> dict[str, np.ndarray[Any, Any]]:
    return {"x": np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)}


def test_run_takes_feeds_or_keywords() -> None:
    exe = engine.compile(_net())
    np.testing.assert_array_equal(exe(**_feed())["y"], exe.run(_feed())["y"])


def test_a_budget_that_is_too_small_fails_with_three_numbers_and_the_tensors_at_the_peak() -> None:
    with pytest.raises(BudgetError, match="bytes too much") as caught:
        engine.compile(_net(), budget="1 KiB", optimise=0)
    error = caught.value
    assert error.available == 1024 and error.excess == error.required - 1024 > 0
    assert "matmul_0" in str(error) and str(error.required) in str(error)


def test_a_budget_that_fits_is_no_error() -> None:
    plan = engine.make_plan(_net())
    assert engine.compile(_net(), budget=plan.arena_bytes).arena_bytes == plan.arena_bytes


def test_out_arrays_are_written_in_place() -> None:
    out = np.zeros((4, 64), np.float32)
    outputs = engine.compile(_net()).run(_feed(), out={"y": out})
    assert outputs["y"] is out and out.sum() == pytest.approx(4)


def test_without_copy_the_result_is_a_view_of_the_arena() -> None:
    exe = engine.compile(_net())
    assert isinstance(exe.executor, StaticExecutor)
    outputs = exe.run(_feed(), copy=False)["y"]
    assert exe.executor.arena.has(outputs)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((4, 64), np.float32), "z": 1}, "no input 'z'; there are: 'x'"),
        ({"x": np.zeros((4, 63), np.float32)}, r"shape \(4, 63\), but \(4, 64\) is expected"),
        ({"x": np.zeros((4, 64))}, "element type float64, but float32 is expected"),
        ({"x": "a word"}, "a str is not an array of float32"),
    ],
)
def test_a_wrong_feed_is_one_clear_error(feeds: dict[str, Any], message: str) -> None:
    with pytest.raises(FeedError, match=message):
        engine.compile(_net()).run(feeds)


def test_run_refuses_out_arrays_that_do_not_fit() -> None:
    exe = engine.compile(_net())
    frozen = np.zeros((4, 64), np.float32)
    frozen.flags.writeable = False
    for out, message in [
        ({"z": 1}, "no output 'z'"),
        ({"y": [1]}, "must be a numpy array"),
        ({"y": frozen}, "read-only"),
    ]:
        with pytest.raises(FeedError, match=message):
            exe.run(_feed(), out=out)  # type: ignore[arg-type]


def test_feeds_may_have_dlpack_or_array_and_out_dlpack() -> None:
    class Tensor:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.held = array

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
            return self.held

    class Capsule:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.held = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.held.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.held.__dlpack_device__()

    exe, x = engine.compile(_net()), _feed()["x"]
    wanted = exe.run({"x": x})["y"]
    for fed in (Tensor(x), Capsule(x), x.tolist()):
        np.testing.assert_array_equal(exe.run({"x": fed})["y"], wanted)
    for mode in ("static", "dynamic"):
        y = np.zeros_like(wanted)
        (returned,) = engine.compile(_net(), mode=mode).run({"x": x}, out={"y": Capsule(y)}).values()
        np.testing.assert_array_equal(y, wanted)
        assert np.shares_memory(returned, y)


def test_compile_names_wrong_options() -> None:
    with pytest.raises(OptionError, match="no power of two"):
        engine.compile(_net(), alignment=48)
    with pytest.raises(OptionError, match="mode 'fast' is unknown"):
        engine.compile(_net(), mode="fast")
    with pytest.raises(OptionError, match="tuple of names"):
        engine.compile(_net(), caller_buffers="x")  # type: ignore[arg-type]
    for wrong, least in (({"alignment": 2**63}, 1), ({"padding": -1}, 0), ({"padding": 1.5}, 0)):
        with pytest.raises(OptionError, match=f"is no integer from {least} to"):
            engine.compile(_net(), **wrong)
    with pytest.raises(OptionError, match="no input or output 'q'"):
        engine.compile(_net(), caller_buffers=("q",))
    with pytest.raises(OptionError, match="is no size"):
        engine.compile(_net(), budget="much")
    for flag in ("no", 1):
        with pytest.raises(OptionError, match=f"recompute {flag!r} is neither True nor False"):
            engine.compile(_net(), recompute=flag)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="has no outputs"):
        engine.compile(Graph("empty"))


def test_an_option_that_does_not_exist_is_told_with_the_one_that_was_meant() -> None:
    for build in (engine.compile, engine.make_plan):
        for kind in (TypeError, OptionError):
            with pytest.raises(
                kind, match=f"arenaplan.{build.__name__.split('_')[0]}.* no option 'bugdet'; did you mean"
            ):
                build(_net(), bugdet=1)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=r"no option 'zzz'; there are budget, recompute, embedded, .* nest, order"):
        engine.make_plan(_net(), zzz=1)  # type: ignore[call-arg]


def test_budgets_may_be_integers_of_numpy() -> None:
    arena = engine.make_plan(_net()).arena_bytes
    integers: tuple[Any, ...] = (np.int64, np.uint32)
    for integer in integers:
        assert engine.make_plan(_net(), budget=integer(arena)).arena_bytes == arena
        with pytest.raises(engine.BudgetError) as caught:
            engine.make_plan(_net(), budget=integer(1))
        assert type(caught.value.available) is int and isinstance(caught.value, engine.EngineError)
    with pytest.raises(OptionError, match="is no size"):
        engine.make_plan(_net(), budget=True)


def test_a_bound_output_that_shares_bytes_with_a_bound_input_is_refused() -> None:
    feed = _feed()
    with pytest.raises(FeedError, match="shares bytes with 'x'"):
        engine.compile(_net(), caller_buffers=("x", "y")).run(feed, out={"y": feed["x"]})


def _square(build: Callable[[Var], Var]) -> Graph:
    graph = Graph()
    graph.output(build(graph.input("x", (64, 64))))
    return graph


def test_each_way_of_saving_memory_saves_some() -> None:
    viewed = _square(lambda x: x @ ops.transpose(x))
    overwritten = _square(lambda x: ops.neg(ops.relu(x)))
    reused = _square(lambda x: x @ x @ x @ x)
    tensor = 64 * 64 * 4
    assert [engine.make_plan(g, optimise=0).arena_bytes // tensor for g in (viewed, overwritten, reused)] == [2, 1, 3]
    assert engine.make_plan(viewed, views=False, optimise=0).arena_bytes == 3 * tensor
    assert engine.make_plan(overwritten, overwrite=False, optimise=0).arena_bytes == 2 * tensor
    assert engine.make_plan(reused, reuse=False, optimise=0).arena_bytes == 4 * tensor


def test_a_static_run_allocates_no_array() -> None:
    exe, feed = engine.compile(_net(512)), _feed(512)
    out = {"y": np.empty((4, 512), np.float32)}
    exe.run(feed, out=out)
    check_allocates_nothing(lambda: exe.run(feed, out=out))


def _schema(name: str, bind: Any) -> OpSchema:
    def infer(specs: Specs, _: Attrs) -> Specs:
        return specs

    return OpSchema(name, infer, (Kernel("numpy", bind),))


def test_a_kernel_that_fails_is_named() -> None:
    def bind(_: Binding) -> Thunk:
        def run() -> None:
            raise IndexError("row 7 of 4")

        return run

    graph = Graph()
    graph.output(graph.add(_schema("bad", bind), [ops.neg(graph.input("x", (4,)))], name="gather_7")[0])
    for mode in MODES:
        with pytest.raises(KernelError, match=r"operator 'gather_7' failed on .*: row 7 of 4"):
            engine.compile(graph, mode=mode).run({"x": np.zeros(4, np.float32)})


def test_poison_is_for_static_runs() -> None:
    with pytest.raises(OptionError, match="watches a static run"):
        engine.compile(_net(), mode="dynamic", debug="poison")


def test_outputs_of_the_last_run_may_be_fed_even_where_they_lie_in_the_arena() -> None:
    graph = Graph()
    x, y = graph.input("x", (4,)), graph.input("y", (4,))
    graph.output(x + 1.0, "a")
    graph.output(y + 10.0, "b")
    exe = engine.compile(graph)
    last = exe.run({"x": np.zeros(4, np.float32), "y": np.full(4, 100, np.float32)}, copy=False)
    outputs = exe.run({"x": last["b"], "y": last["a"]})
    assert outputs["a"].tolist() == [111] * 4 and outputs["b"].tolist() == [11] * 4


def test_output_arrays_that_share_bytes_are_refused_in_every_mode() -> None:
    graph = Graph()
    x = graph.input("x", (4,))
    graph.output(x + 1.0, "a")
    graph.output(x * 2.0, "b")
    buffer, feeds = np.zeros(6, np.float32), {"x": np.ones(4, np.float32)}
    for mode in MODES:
        with pytest.raises(FeedError, match="out='b' shares bytes with 'a'"):
            engine.compile(graph, mode=mode).run(feeds, out={"a": buffer[:4], "b": buffer[2:]})
    exe = engine.compile(graph)
    last = exe.run(feeds, copy=False)
    with pytest.raises(FeedError, match="lies in the arena"):
        exe.run(feeds, out={"a": last["b"]})
    with pytest.raises(FeedError, match="lies in the arena"):
        _feed_own_view(graph)


def _feed_own_view(graph: Graph) -> None:
    exe = engine.compile(graph, caller_buffers=("x",))
    last = exe.run({"x": np.ones(4, np.float32)}, copy=False)
    exe.run({"x": last["a"]})


def test_without_packing_there_are_no_copies_of_constants_and_the_same_numbers() -> None:
    graph = Graph()
    x = graph.input("x", (1, 32, 7, 7))
    rng = np.random.default_rng(0)
    y = ops.conv2d(x, rng.normal(size=(64, 32, 3, 3)).astype(np.float32))
    scale, bias, mean = (rng.normal(size=64).astype(np.float32) for _ in range(3))
    y = ops.batch_norm(y, scale, bias, mean, np.ones(64, np.float32))
    graph.output(ops.conv2d(ops.relu(y), rng.normal(size=(64, 64, 3, 3)).astype(np.float32)), "y")
    feeds = {"x": rng.normal(size=(1, 32, 7, 7)).astype(np.float32)}
    packed, plain = engine.compile(graph), engine.compile(graph, prepack=False)
    assert packed.prepacked_bytes > 0 == plain.prepacked_bytes
    wanted = packed.run(feeds)["y"]
    np.testing.assert_allclose(plain.run(feeds)["y"], wanted, atol=1e-5 * np.abs(wanted).max())


def _convolutions(x: Var) -> list[Var]:
    ones = np.ones(32, np.float32)
    return [
        ops.conv2d(x, np.ones((32, 32, 3, 3), np.float32)),
        ops.conv2d(x, np.ones((32, 1, 3, 3), np.float32), group=32),
        ops.batch_norm(x, ones, ones, ones, ones),
    ]


def test_compiled_kernels_read_what_cannot_be_written() -> None:
    graph = Graph()
    x, data = graph.input("x", (1, 32, 7, 7)), np.random.default_rng(0).normal(size=(1, 32, 7, 7)).astype(np.float32)
    constant = graph.constant(data)
    for i, pair in enumerate(zip(_convolutions(x), _convolutions(constant), strict=True)):
        for name, var in zip(("fed", "constant"), pair, strict=True):
            graph.output(var, f"{name}{i}")
    data.flags.writeable = False
    exe = engine.compile(graph, caller_buffers=("x",))
    for _ in range(2):
        outputs = exe.run({"x": data})
        for i in range(3):
            np.testing.assert_array_equal(outputs[f"fed{i}"], outputs[f"constant{i}"])


def test_a_broadcast_over_a_reshaped_input_allocates_nothing_in_place() -> None:
    graph = Graph()
    h = ops.reshape(ops.exp(graph.input("x", (256, 512))), (1, 256, 512))
    graph.output(ops.softmax(h + np.ones(512, np.float32)), "y")
    exe = engine.compile(graph)
    assert isinstance(exe.executor, StaticExecutor) and len(exe.plan.chunks.src) == 3
    out = exe.run({"x": np.ones((256, 512), np.float32)})
    check_allocates_nothing(exe.executor.execute)
    assert out["y"].shape == (1, 256, 512)


def test_operators_on_empty_tensors_give_empty_tensors() -> None:
    graph = Graph()
    graph.output(ops.softmax(graph.input("x", (2, 0))), "s")
    graph.output(ops.log_softmax(graph.input("z", (2, 0, 3)), axis=1), "l")
    graph.output(ops.conv2d(graph.input("i", (2, 0, 6, 6)), np.ones((4, 0, 3, 3), np.float32)), "c")
    outputs = engine.compile(graph).run({n: np.zeros(v.shape, np.float32) for n, v in graph.inputs.items()})
    assert [outputs[n].shape for n in "slc"] == [(2, 0), (2, 0, 3), (2, 4, 4, 4)] and not outputs["c"].any()


def test_run_refuses_feeds_and_outs_that_are_no_dicts() -> None:
    exe = engine.compile(_net())
    with pytest.raises(FeedError, match="inputs are given as a dict"):
        exe.run([1])  # type: ignore[arg-type]
    with pytest.raises(FeedError, match="outputs are given as a dict"):
        exe.run(_feed(), out=[1])  # type: ignore[arg-type]


def test_a_small_alignment_misaligns_no_workspace() -> None:
    graph = Graph()
    odd = graph.input("odd", (3,), "uint8")
    x = graph.input("x", (1, 3, 12, 12))
    graph.output(ops.conv2d(x, np.ones((4, 3, 3, 3), np.float32)), "y")
    graph.output(odd, "z")
    plan = engine.make_plan(graph, alignment=1, padding=1)
    at = {v.name: p.layout.offset for v, p in zip(plan.lowered.values, plan.places, strict=True)}
    spaces = [offset for name, offset in at.items() if name.endswith("/workspace")]
    assert spaces and all(offset % 64 == 0 for offset in spaces)


@pytest.mark.slow
def test_a_long_chain_meets_no_recursion_limit() -> None:
    graph = Graph()
    x = graph.input("x", (4,))
    for _ in range(5000):
        x = ops.neg(x)
    graph.output(x, "y")
    exe = engine.compile(graph)
    assert exe.arena_bytes <= 128
    np.testing.assert_array_equal(exe.run({"x": np.arange(4, dtype=np.float32)})["y"], np.arange(4))


@pytest.mark.parametrize(
    ("error", "reason"), [(ValueError("one\n  two"), "one two"), (AssertionError(), "AssertionError")]
)
def test_a_failing_kernel_is_told_in_one_line(error: Exception, reason: str) -> None:
    def fail() -> None:
        raise error

    schema = OpSchema("failing", lambda specs, _: specs, (Kernel("fails", lambda _: fail),))
    graph = Graph("failing")
    graph.output(graph.add(schema, [graph.input("x", (2,))])[0], "y")
    with pytest.raises(KernelError) as caught:
        engine.compile(graph).run({"x": np.zeros(2, np.float32)})
    assert str(caught.value) == f"operator 'failing_0' failed on (float32[2]): {reason}"
