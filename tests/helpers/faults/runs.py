"""Faults of kernels and of executors: the plan is right, and what runs is not."""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import evolve

import engine
import ops
from engine import Graph
from engine.executor import binding, static
from engine.executor.arenas import Arena
from engine.executor.static import StaticExecutor
from engine.planning.placed import PlacedPlan
from ops.common import blocks
from ops.elementwise.unary import NEG
from ops.half import convert
from ops.half.args import FROM_BFLOAT, TO_HALF
from ops.half.ops import IN_SINGLE, Inner
from ops.schema.schema import Binding, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk
from ops.schema.workspace import carve
from ops.tensor.layout import address_of
from ops.tensor.spec import BFLOAT16, Array, TensorSpec, spec_of
from tests.helpers.faults.base import KERNELS, MODES, POISON, Fault, Plant, Work, after, constant, patched
from tests.helpers.faults.work import ran, random_graph, weights
from tests.helpers.graphs.unplanned_run import assert_same, random_feeds, run_unplanned
from tests.helpers.ops.kernel_checks import kernels, run, same

Bind = Callable[[Binding], Thunk]


class _Own:
    """The kernel of an operator of a user: right until a fault is put in."""

    @staticmethod
    def bind(call: Binding) -> Thunk:
        """Returns 2 x - x, by way of two temporaries."""
        one, other = call.temporaries

        def work() -> None:
            np.add(call.x, call.x, out=one)
            np.copyto(other, call.x)
            np.subtract(one, other, out=call.y)

        return work


def _rows(signature: Signature) -> Specs:
    return signature.x, signature.x


def _bind(call: Binding) -> Thunk:
    """Binds whichever kernel is there now."""
    return _Own.bind(call)


OWN = OpSchema(
    "own",
    lambda inputs, _: inputs[:1],
    (Kernel("numpy", _bind, _rows, contiguous=lambda _: (0,)),),
    (1, 2),
    overwrites=lambda _: (Overwrite(0, 0),),
)


def watched(**options: Any) -> Work:
    """Returns what runs the operator, with a constant behind its input, under the eyes of the watched run."""

    def work() -> None:
        graph = Graph("own")
        x = graph.input("x", (4, 4))
        h = x if options else ops.tanh(x)
        graph.output(graph.add(OWN, [h, graph.constant(weights(4, 4))], name="own")[0], "y")
        engine.compile(graph, debug="poison", optimise=0, **options).run({"x": weights(4, 4, seed=3)})

    return work


def own(bind: Bind) -> Plant:
    """Returns what puts another kernel in the place of the right one."""
    return patched(_Own, "bind", lambda _: staticmethod(bind))


def _beside(array: Array) -> Array:
    """Returns the array with one element more."""
    return np.lib.stride_tricks.as_strided(array, (array.size + 1,), (array.itemsize,))


def _all_but_the_last_row(call: Binding) -> Thunk:
    return partial(np.copyto, call.y[:-1], call.x[:-1])


def _reads_after_writing(call: Binding) -> Thunk:
    def work() -> None:
        call.y[0] = call.x[-1]
        call.y[1:] = call.x[:-1]

    return work


def _adds_to_what_is_there(call: Binding) -> Thunk:
    return partial(np.add, call.y, call.inputs[1], out=call.y)


def _reads_a_temporary_first(call: Binding) -> Thunk:
    return partial(np.add, call.inputs[1], call.temporaries[0], out=call.y)


def _one_element_too_many(call: Binding) -> Thunk:
    return partial(_beside(call.y).fill, 1)


def _one_temporary_too_long(call: Binding) -> Thunk:
    longer, right = _beside(call.temporaries[0]), _RIGHT(call)

    def work() -> None:
        right()
        longer.fill(1)

    return work


def _writes_into_the_constant(call: Binding) -> Thunk:
    at, right = (ctypes.c_float * 16).from_address(address_of(call.inputs[1])), _RIGHT(call)

    def work() -> None:
        right()
        at[3] = 7.0

    return work


def _writes_into_its_input(call: Binding) -> Thunk:
    right = _RIGHT(call)

    def work() -> None:
        right()
        call.x.fill(0)

    return work


_RIGHT: Bind = _Own.bind


def _one_place(whole: Array, *specs: TensorSpec) -> tuple[Array, ...]:
    return tuple(array for spec in specs for array in carve(whole, spec))


def smooth() -> Work:
    """Returns what runs an operator of numpy on several blocks under the eyes of the watched run."""

    def work() -> None:
        graph = Graph("smooth")
        graph.output(ops.gelu(graph.input("x", (40_000,))), "y")
        engine.compile(graph, debug="poison", optimise=0, backend="numpy").run({"x": weights(40_000)})

    return work


def _views_late(right: Any) -> Callable[..., Array]:
    def place_array(plan: PlacedPlan, value: int, arena: Arena, callers: Any) -> Array:
        record, place = plan.lowered.values[value], plan.places[value]
        step = place.layout.itemsize
        if record.is_view and place.layout.extent[1] + step <= plan.arena_bytes:
            place = evolve(place, layout=evolve(place.layout, offset=place.layout.offset + step))
            plan = evolve(plan, places=(*plan.places[:value], place, *plan.places[value + 1 :]))
        array: Array = right(plan, value, arena, callers)
        return array

    return place_array


def _backwards(pair: tuple[Any, Any], *_: object) -> tuple[Any, Any]:
    return pair[0][::-1], pair[1][::-1]


def bound() -> None:
    """Runs random graphs whose inputs and outputs lie in arrays of the caller, which are others each time."""
    for seed in range(6):
        graph = random_graph(seed)
        exe = engine.compile(graph, optimise=0, caller_buffers=(*graph.inputs, *graph.outputs))
        for number in range(2):
            feeds = random_feeds(graph, number)
            assert_same(exe.run(feeds), run_unplanned(graph, feeds))


def fed_back() -> None:
    """Feeds outputs that lie in the arena back, each to the input in whose place the other lies."""
    graph = Graph("fed back")
    a, b = graph.input("a", (8,)), graph.input("b", (8,))
    graph.output(a + 1.0, "y")
    graph.output(b * 3.0, "z")
    exe = engine.compile(graph, optimise=0)
    first = exe.run({"a": np.ones(8, np.float32), "b": np.full(8, 5, np.float32)}, copy=False)
    feeds = {"a": first["z"].copy(), "b": first["y"].copy()}
    assert_same(exe.run({"a": first["z"], "b": first["y"]}, copy=False), run_unplanned(graph, feeds))


def stored(dtype: Any, *, turned: bool = False) -> Work:
    """Returns what computes in float32 on numbers of 16 bits by all kernels, and compares them with numpy's."""

    def work() -> None:
        x = weights(6, 6).astype(dtype)
        x = x.T if turned else x
        attrs = {"operator": Inner(NEG, {}), "to": np.dtype(dtype)}
        signature = IN_SINGLE.sign([spec_of(x)], attrs)
        *others, numpy = kernels(IN_SINGLE, signature)
        (wanted,) = run(numpy, signature, [x])
        for kernel in others:
            (y,) = run(kernel, signature, [x])
            same(np.asarray(y, np.float32), np.asarray(wanted, np.float32), 0.02, 0.02)

    return work


def _strides_of_the_target(merged: Any, *_: object) -> Any:
    shape, (_source, target) = merged
    return shape, (target, target)


def _entry(table: Any, key: Any, value: Any) -> Plant:
    return lambda patch: patch.setitem(table, key, value)


_HALF, _SINGLE = np.dtype("float16"), np.dtype("float32")
_KERNEL = "a kernel of a user"
_BINDING, _STATIC, _CONVERT = "engine/executor/binding.py", "engine/executor/static.py", "ops/half/convert.py"

RUNS = (
    Fault("a kernel leaves the last row unwritten", _KERNEL, POISON, own(_all_but_the_last_row), watched()),
    Fault(
        "a loop over blocks ends one block early",
        "ops/common/blocks.py",
        POISON,
        patched(blocks, "blocks", after(lambda all, *_: list(all)[:-1])),
        smooth(),
    ),
    Fault(
        "a kernel reads its input after it has begun to write over it",
        _KERNEL,
        POISON,
        own(_reads_after_writing),
        watched(),
    ),
    Fault(
        "a sum begins with what the output held before",
        _KERNEL,
        POISON,
        own(_adds_to_what_is_there),
        watched(caller_buffers=("x",)),
    ),
    Fault(
        "a kernel reads a temporary that it has not written", _KERNEL, POISON, own(_reads_a_temporary_first), watched()
    ),
    Fault("a kernel writes one element too many", _KERNEL, POISON, own(_one_element_too_many), watched()),
    Fault("a kernel runs from one temporary into the next", _KERNEL, POISON, own(_one_temporary_too_long), watched()),
    Fault("a kernel writes into a constant", _KERNEL, POISON, own(_writes_into_the_constant), watched()),
    Fault(
        "a kernel writes into an array of the caller",
        _KERNEL,
        POISON,
        own(_writes_into_its_input),
        watched(caller_buffers=("x",)),
    ),
    Fault(
        "temporaries lie on each other", _BINDING, POISON, patched(binding, "carve", lambda _: _one_place), watched()
    ),
    Fault(
        "an executor binds views one element late", _STATIC, MODES, patched(static, "place_array", _views_late), ran()
    ),
    Fault(
        "calls that were joined run backwards", _STATIC, MODES, patched(static, "join_calls", after(_backwards)), ran()
    ),
    Fault(
        "calls stay bound to the arrays of the run before",
        _STATIC,
        MODES,
        patched(static, "address_of", constant(1)),
        bound,
    ),
    Fault(
        "feeds that lie in the arena are written over before they are read",
        _STATIC,
        MODES,
        patched(StaticExecutor, "_out_of_the_arena", lambda _: lambda _self, arrays: dict(arrays)),
        fed_back,
    ),
    Fault(
        "float16 is widened as bfloat16 is",
        _CONVERT,
        KERNELS,
        _entry(convert._KINDS, (_HALF, _SINGLE), FROM_BFLOAT),
        stored("float16"),
    ),
    Fault(
        "bfloat16 is stored as float16 is",
        _CONVERT,
        KERNELS,
        _entry(convert._KINDS, (_SINGLE, BFLOAT16), TO_HALF),
        stored(BFLOAT16),
    ),
    Fault(
        "tensors of 16 bits are read with the strides of what they are copied to",
        _CONVERT,
        KERNELS,
        patched(convert, "_merged", after(_strides_of_the_target)),
        stored("float16", turned=True),
    ),
)
