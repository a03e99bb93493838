"""The watched run refuses kernels that write where they must not, leave out a part of an output, or read garbage."""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.executor import binding
from engine.text.errors import PoisonError
from ops.schema.schema import Attrs, Binding, Kernel, OpSchema, Overwrite, Signature, Specs, Thunk
from ops.schema.workspace import carve
from ops.tensor.layout import address_of
from ops.tensor.spec import DTYPES, Array, TensorSpec

Bind = Callable[[Binding], Thunk]


def _same(specs: Specs, _: Attrs) -> Specs:
    return specs[:1]


def _two_rows(signature: Signature) -> Specs:
    return signature.x, signature.x


def _watched(
    bind: Bind,
    *,
    dtype: npt.DTypeLike = np.float32,
    shape: tuple[int, ...] = (4, 5),
    in_place: bool = False,
    temporaries: Callable[[Signature], Specs] = lambda _: (),
    **options: Any,
) -> Array:
    """Runs an operator of one input under poison, behind a negation; returns its output."""
    kernels = (Kernel("numpy", bind, temporaries, contiguous=lambda _: (0,)),)
    overwrites = (Overwrite(0, 0),) if in_place else ()
    schema = OpSchema("own", _same, kernels, overwrites=lambda _: overwrites)
    graph = Graph()
    x = graph.input("x", shape, dtype)
    graph.output(graph.add(schema, [ops.identity(x) if in_place else x], name="op")[0], "y")
    feeds = {"x": np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)}
    return engine.compile(graph, debug="poison", optimise=0, views=False, **options).run(feeds)["y"]


def test_a_write_behind_the_output_is_told_with_its_byte() -> None:
    def bind(call: Binding) -> Thunk:
        longer = np.lib.stride_tricks.as_strided(call.y, (call.y.size + 1,), (4,))
        return partial(longer.fill, 1)

    with pytest.raises(PoisonError, match="operator 'op' wrote byte"):
        _watched(bind)


def test_a_kernel_that_is_wrong_in_place_is_told() -> None:
    def bind(call: Binding) -> Thunk:
        def run() -> None:
            for i in range(call.y.size):
                call.y[i] = call.x[call.y.size - 1 - i]

        return run

    with pytest.raises(PoisonError, match="'op' gives other numbers where it overwrites its input"):
        _watched(bind, shape=(8,), in_place=True)


def test_a_kernel_that_uses_its_input_as_scratch_is_told_even_where_it_may_overwrite_it() -> None:
    def bind(call: Binding) -> Thunk:
        def run() -> None:
            np.negative(call.x, call.x)
            np.negative(call.x, call.y)

        return run

    with pytest.raises(PoisonError, match=r"'op' (wrote into its input|gives other numbers where it overwrites)"):
        _watched(bind, in_place=True)


@pytest.mark.parametrize("dtype", sorted(DTYPES, key=str), ids=str)
@pytest.mark.parametrize("in_place", [False, True])
def test_an_output_that_is_left_unwritten_in_part_is_told_with_the_element(dtype: Any, in_place: bool) -> None:
    def bind(call: Binding) -> Thunk:
        return partial(np.copyto, call.y[:, :-1], call.x[:, :-1])

    with pytest.raises(PoisonError, match=r"operator 'op' leaves element \(0, 4\) of its output 'op' unwritten"):
        _watched(bind, dtype=dtype, in_place=in_place)


@given(st.sampled_from([np.float32, np.int64, np.uint8]), st.integers(0, 19))
def test_a_single_element_that_is_left_unwritten_is_found(dtype: Any, hole: int) -> None:
    def bind(call: Binding) -> Thunk:
        def run() -> None:
            for i in range(20):
                if i != hole:
                    call.y.reshape(-1)[i] = call.x.reshape(-1)[i]

        return run

    place = rf"\({hole // 5}, {hole % 5}\)"
    with pytest.raises(PoisonError, match=f"leaves element {place} of its output 'op' unwritten"):
        _watched(bind, dtype=dtype)


def test_a_sum_that_begins_with_what_was_there_is_told() -> None:
    def bind(call: Binding) -> Thunk:
        return partial(np.add, call.y, call.x, out=call.y)

    with pytest.raises(PoisonError, match="'op' gives other numbers if other bytes are there before it runs"):
        _watched(bind)


def test_a_temporary_that_is_read_before_it_is_written_is_told() -> None:
    def bind(call: Binding) -> Thunk:
        return partial(np.add, call.x, call.temporaries[0], out=call.y)

    with pytest.raises(PoisonError, match="'op' gives other numbers"):
        _watched(bind, temporaries=_two_rows)


def _through_two(call: Binding) -> Thunk:
    """Returns 2 x + 3 by way of two temporaries."""
    one, other = call.temporaries

    def run() -> None:
        one[...] = 3
        np.add(call.x, call.x, out=other)
        np.add(one, other, out=call.y)

    return run


def test_temporaries_that_overlap_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _watched(_through_two, temporaries=_two_rows)[0, 1] == 5

    def overlapping(whole: Array, *specs: TensorSpec) -> tuple[Array, ...]:
        return tuple(array for spec in specs for array in carve(whole, spec))

    monkeypatch.setattr(binding, "carve", overlapping)
    with pytest.raises(PoisonError, match="'op' gives other numbers"):
        _watched(_through_two, temporaries=_two_rows)


def test_a_kernel_that_runs_from_one_temporary_into_the_next_is_told() -> None:
    def bind(call: Binding) -> Thunk:
        one, _ = call.temporaries
        longer = np.lib.stride_tricks.as_strided(one, (17,), (4,))

        def run() -> None:
            longer.fill(1)
            np.copyto(call.y, call.x)

        return run

    with pytest.raises(PoisonError, match=r"operator 'op' wrote beside its temporary 0, float32\[4,4\]"):
        _watched(bind, shape=(4, 4), temporaries=_two_rows)


def test_a_kernel_that_writes_into_a_constant_is_told() -> None:
    def bind(call: Binding) -> Thunk:
        at = (ctypes.c_float * 8).from_address(address_of(call.inputs[1]))

        def run() -> None:
            np.add(call.x, call.inputs[1], out=call.y)
            at[3] = 7.0

        return run

    schema = OpSchema("own", _same, (Kernel("numpy", bind),), (2, 2))
    graph = Graph()
    weights = graph.constant(np.ones(8, np.float32), "weights")
    graph.output(graph.add(schema, [graph.input("x", (8,)), weights], name="op")[0], "y")
    with pytest.raises(PoisonError, match="operator 'op' wrote into the constant 'weights'"):
        engine.compile(graph, debug="poison", optimise=0).run({"x": np.ones(8, np.float32)})


@pytest.mark.parametrize("bound", ["x", "y"])
def test_the_arrays_of_the_caller_are_watched(bound: str) -> None:
    def spoil(call: Binding) -> Thunk:
        return partial(call.x.fill, 0)

    def half(call: Binding) -> Thunk:
        return partial(call.y[:2].fill, 1)

    message = {"x": "wrote into the caller's array bound to 'x'", "y": r"leaves element \(2, 0\) of its output 'op'"}
    with pytest.raises(PoisonError, match=message[bound]):
        _watched(spoil if bound == "x" else half, caller_buffers=(bound,))


def test_numbers_that_are_not_numbers_are_no_fault_of_a_kernel() -> None:
    def bind(call: Binding) -> Thunk:
        return partial(call.y.fill, np.nan)

    assert np.isnan(_watched(bind, temporaries=lambda _: (TensorSpec((3,), np.dtype("int64")),))).all()
