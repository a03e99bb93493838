"""Compiled gather and scatter against numpy's: any layout of any operand, any parts, indices that are refused."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
import ops
from engine import Graph
from engine.text.errors import KernelError
from ops.common.indices import IndexRangeError
from ops.index.gather import GATHER, GATHER_ELEMENTS, GATHER_ND
from ops.index.scatter import SCATTER_ELEMENTS, SCATTER_ND
from ops.schema.backends import NUMPY
from ops.schema.schema import OpSchema
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import placed, run_native
from tests.helpers.ops.kernel_checks import run, sign

PARTS = st.integers(1, 3)
DTYPES = st.sampled_from(["bool", "int8", "uint16", "float16", "float32", "int64", "float64"])
NUMBERS = st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "float32", "int64", "float64"])
INTS = st.sampled_from(["int32", "int64"])
SIDES = st.integers(0, 5)


@st.composite
def stored(draw: Any, array: Array) -> Array:
    """Returns the same elements stored with permuted axes, gaps, or backwards, and not at the start of a cache line."""
    if not array.ndim:
        return array
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in array.shape]
    lengths = [array.shape[a] * abs(steps[a]) for a in order]
    room = np.zeros(int(np.prod(lengths)) + 1, array.dtype)[1:].reshape(lengths).transpose(np.argsort(order))
    view: Array = room[tuple(slice(None, None, s) for s in steps)]
    view[...] = array
    return view


def numbers(draw: Any, shape: tuple[int, ...], dtype: str) -> Array:
    """Draws numbers, some of them NaN or infinite where the type has such."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    array = rng.integers(0, 200, shape).astype(dtype)
    if np.dtype(dtype).kind == "f" and array.size:
        array.reshape(-1)[rng.integers(0, array.size, 2)] = [np.nan, -np.inf]
        array += array.dtype.type(0.1)
    return array


def places(draw: Any, shape: tuple[int, ...], dim: int, ints: str) -> Array:
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return rng.integers(-dim, max(dim, 1), shape).astype(ints)


def check(schema: OpSchema, arrays: list[Array], parts: int, draw: Any, **attrs: Any) -> None:
    """Checks for the bits of numpy's kernel in any layout, and for an error where numpy's kernel has one."""
    signature = sign(schema, arrays, attrs)
    native, plain = schema.kernels
    assert plain.backend == NUMPY
    assert native.supports(signature)
    operands = [draw(stored(a)) for a in arrays]
    try:
        (wanted,) = run(plain, signature, arrays)
    except IndexRangeError as error:
        with pytest.raises(IndexRangeError, match=str(error).replace("[", r"\[").replace(")", r"\)")):
            run_native(native, signature, operands, parts)
        return
    (got,) = run_native(native, signature, operands, parts)
    assert got.tobytes() == wanted.tobytes()


def shapes(draw: Any, least: int = 1) -> tuple[int, ...]:
    return tuple(draw(st.lists(SIDES, min_size=least, max_size=3)))


@settings(max_examples=50, deadline=None)
@given(DTYPES, INTS, PARTS, st.data())
def test_compiled_gather_takes_any_strides(dtype: str, ints: str, parts: int, data: st.DataObject) -> None:
    shape, where = shapes(data.draw), shapes(data.draw, 0)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    indices = places(data.draw, where, shape[axis], ints)
    check(GATHER, [numbers(data.draw, shape, dtype), indices], parts, data.draw, axis=axis)


@settings(max_examples=50, deadline=None)
@given(DTYPES, NUMBERS, INTS, PARTS, st.data())
def test_compiled_gather_and_scatter_elements_equal_numpy(
    dtype: str, kind: str, ints: str, parts: int, data: st.DataObject
) -> None:
    shape = shapes(data.draw)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    where = [data.draw(st.integers(0, n)) for n in shape]
    where[axis] = data.draw(SIDES)
    indices = places(data.draw, tuple(where), shape[axis], ints)
    check(GATHER_ELEMENTS, [numbers(data.draw, shape, dtype), indices], parts, data.draw, axis=axis)
    reduction = data.draw(st.sampled_from(["none", "add"]))
    kind = kind if reduction == "add" else dtype
    both = numbers(data.draw, shape, kind), numbers(data.draw, tuple(where), kind)
    check(SCATTER_ELEMENTS, [both[0], indices, both[1]], parts, data.draw, axis=axis, reduction=reduction)


@settings(max_examples=50, deadline=None)
@given(DTYPES, NUMBERS, INTS, PARTS, st.data())
def test_compiled_gather_nd_and_scatter_nd_equal_numpy(
    dtype: str, kind: str, ints: str, parts: int, data: st.DataObject
) -> None:
    shape, lead = shapes(data.draw), shapes(data.draw, 0)
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(0, len(shape) - batch))
    picks = [places(data.draw, (*shape[:batch], *lead), n, ints) for n in shape[batch : batch + depth]]
    empty = np.empty((*shape[:batch], *lead, 0), ints)
    indices = np.stack(picks, -1) if picks else empty
    check(GATHER_ND, [numbers(data.draw, shape, dtype), indices], parts, data.draw, batch_dims=batch)
    if batch:
        return
    reduction = data.draw(st.sampled_from(["none", "add"]))
    kind = kind if reduction == "add" else dtype
    updates = numbers(data.draw, (*lead, *shape[depth:]), kind)
    check(SCATTER_ND, [numbers(data.draw, shape, kind), indices, updates], parts, data.draw, reduction=reduction)


@pytest.mark.parametrize("width", [1, 15, 16, 17, 100])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_compiled_scatter_writes_repeated_indices_in_turn_on_any_threads(width: int, reduction: str) -> None:
    rng = np.random.default_rng(0)
    data, updates = (rng.standard_normal(s).astype(np.float32) for s in ((7, width), (300, width)))
    operands: list[Array] = [data, rng.integers(-7, 7, (300, 1)), updates]
    signature = sign(SCATTER_ND, operands, {"reduction": reduction})
    native, plain = SCATTER_ND.kernels
    (wanted,) = run(plain, signature, operands)
    for parts in (1, 2, 3, 8):
        assert run_native(native, signature, operands, parts)[0].tobytes() == wanted.tobytes()


def test_compiled_scatter_may_overwrite_its_data() -> None:
    data, updates = placed(np.arange(12, dtype=np.float32).reshape(4, 3)), np.full((1, 3), 9, np.float32)
    operands = [data, np.array([[-1]]), updates]
    (y,) = run_native(SCATTER_ND.kernels[0], sign(SCATTER_ND, operands, {}), operands, 2, over=0)
    assert y.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 9, 9]]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_a_program_stops_at_an_index_out_of_range_and_names_it(threads: int, mode: str) -> None:
    graph = Graph("words")
    ids, table = graph.input("ids", (8, 50), "int64"), graph.input("table", (30, 400))
    rows = ops.relu(ops.gather(ops.neg(table), ids))
    graph.output(ops.relu(rows), "y")
    model = engine.compile(graph, threads=threads, mode=mode, optimise=0)
    feeds = {"ids": np.full((8, 50), -30), "table": -np.ones((30, 400), np.float32)}
    assert (model(**feeds)["y"] == 1).all()
    for wrong in (30, -31):
        feeds["ids"][3, 7] = wrong
        with pytest.raises(
            KernelError, match=rf"^operator 'gather_0' failed on [^:]*: index {wrong} is outside \[-30, 30\)$"
        ):
            model(**feeds)
    feeds["ids"][3, 7] = 29
    assert (model(**feeds)["y"] == 1).all()
