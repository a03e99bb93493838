"""Reshape, transpose, slice, expand, split, identity, copy: as views and as copies, against numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.movement.copy import COPY
from ops.movement.reshape import RESHAPE, resolve_shape
from ops.movement.slicing import SLICE
from ops.movement.views import EXPAND, IDENTITY, SPLIT, TRANSPOSE
from ops.schema.schema import OpSchema, evaluate
from ops.tensor.errors import AttributeValueError, OpError, ShapeError
from ops.tensor.layout import Layout
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_overwrites, check_results, sign
from tests.helpers.ops.sample_arrays import numbered

SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "float16", "float32", "int64"])


def check(schema: OpSchema, x: Array, wanted: list[Array], **attrs: Any) -> None:
    """Checks the copying kernels and, where there are any, the views, of a dense and of a transposed x."""
    check_kernels(schema, [x], wanted, **attrs)
    for stored in (x, np.array(x.T, order="C").T):
        layouts = schema.views(Layout.of(stored), sign(schema, [stored], attrs))
        memory = stored.tobytes("A") or bytes(8)
        for layout, want in zip(layouts, wanted, strict=True):
            if layout is not None and want.size:
                shown = np.ndarray(layout.shape, x.dtype, memory, layout.offset, layout.strides)
                assert np.array_equal(shown, want)


@given(SHAPES, DTYPES, st.data())
def test_transpose_permutes_axes(shape: tuple[int, ...], dtype: str, data: st.DataObject) -> None:
    x, perm = numbered(shape, dtype), data.draw(st.permutations(range(len(shape))))
    check(TRANSPOSE, x, [x.transpose(perm)], perm=perm)


def test_transpose_reverses_axes_by_default() -> None:
    x = numbered((2, 3, 4))
    check(TRANSPOSE, x, [x.T])


@pytest.mark.parametrize("schema", [TRANSPOSE, IDENTITY, COPY])
def test_views_take_scalars(schema: OpSchema) -> None:
    check_results(schema, [np.array(3.0)], [np.array(3.0)])
    check_overwrites(schema, [np.array(3.0)])


@given(SHAPES, st.data())
def test_slice_takes_what_python_takes_from_inside_the_axis_on(shape: tuple[int, ...], data: st.DataObject) -> None:
    bounds = st.sampled_from([-(2**63) + 1, -5, -2, -1, 0, 1, 2, 5, 2**63 - 1])
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    starts, ends = ([data.draw(bounds) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([-3, -1, 1, 2])) for _ in axes]
    x, key = numbered(shape), [slice(None)] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        key[axis] = slice(max(start, -shape[axis]), end, step)
    check(SLICE, x, [x[tuple(key)]], starts=starts, ends=ends, axes=axes, steps=steps)


def test_slice_begins_at_the_first_element_where_the_start_is_in_front_of_it() -> None:
    """onnxruntime and the text of ONNX say so; a slice of Python that goes backwards from there is empty."""
    check(SLICE, numbered((3,)), [numbered((3,))[:1]], starts=[-9], ends=[-9], steps=[-1])


def test_slice_takes_leading_axes_and_steps_of_one_by_default() -> None:
    x = numbered((4, 3))
    check(SLICE, x, [x[1:3, :2]], starts=[1, 0], ends=[3, 2])
    check(SLICE, x, [x[:, -2:]], starts=[-2], ends=[9], axes=[-1])


@given(SHAPES, st.data())
def test_expand_broadcasts_both_ways(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(tuple(data.draw(st.sampled_from([1, n])) for n in shape))
    target = (2, *(n if m == 1 else data.draw(st.sampled_from([1, n])) for n, m in zip(shape, x.shape, strict=True)))
    check(EXPAND, x, [np.broadcast_to(x, np.broadcast_shapes(x.shape, target))], shape=target)


@given(SHAPES, st.data())
def test_split_gives_consecutive_parts(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    x, sizes = numbered(shape), np.diff([0, *cuts, shape[axis]]).tolist()
    check(SPLIT, x, np.split(x, cuts, axis), axis=axis, sizes=sizes)


@given(SHAPES, DTYPES)
def test_identity_and_copy_change_nothing(shape: tuple[int, ...], dtype: str) -> None:
    x = numbered(shape, dtype)
    check(IDENTITY, x, [x])
    check(COPY, x, [x])


@given(SHAPES, st.data())
def test_reshape_keeps_the_order_of_elements(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = numbered(tuple(data.draw(st.permutations(shape))))
    check(RESHAPE, x, [x.reshape(shape)], shape=shape)
    check(RESHAPE, x, [x.reshape(-1)], shape=(x.size,))


def test_reshape_of_strides_that_cannot_say_it_is_no_view() -> None:
    x = numbered((3, 4)).T
    signature = sign(RESHAPE, [x], {"shape": (12,)})
    assert RESHAPE.views(Layout.of(x), signature) == (None,)
    (y,) = evaluate(RESHAPE, x, shape=(12,))
    assert y.tolist() == x.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("shape", "source", "zero_copies", "wanted"),
    [
        ((2, -1), (4, 3), False, (2, 6)),
        ((0, -1), (4, 3), True, (4, 3)),
        ((0, 5), (0, 3), False, (0, 5)),
        ((-1,), (), False, (1,)),
        ((-1, 2), (0, 2), False, (0, 2)),
    ],
)
def test_reshape_resolves_shapes(
    shape: tuple[int, ...], source: tuple[int, ...], zero_copies: bool, wanted: tuple[int, ...]
) -> None:
    assert resolve_shape(shape, source, zero_copies) == wanted


@pytest.mark.parametrize("shape", [(-1, -1), (-2, 6), (5, -1), (0, -1)])
def test_reshape_refuses_shapes_that_mean_nothing(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError):
        resolve_shape(shape, (3, 4), False)
    with pytest.raises(ShapeError, match="does not have"):
        resolve_shape((1, 1, 0), (3, 4), zero_copies=True)


@pytest.mark.parametrize(
    ("schema", "attrs", "message"),
    [
        (RESHAPE, {"shape": (5,)}, "6 elements"),
        (TRANSPOSE, {"perm": (0,)}, "does not name all 2 axes"),
        (TRANSPOSE, {"perm": (0, 0)}, "twice"),
        (EXPAND, {"shape": (4,)}, "do not broadcast"),
        (SPLIT, {"sizes": (1, 1), "axis": 1}, "do not add up to the 3 elements of axis 1"),
        (SPLIT, {"sizes": (), "axis": 1}, "do not add up"),
        (SLICE, {"starts": [0], "ends": [1, 2]}, "differ in length"),
        (SLICE, {"starts": [0], "ends": [1], "axes": [2]}, "axis 2 does not exist"),
    ],
)
def test_views_refuse_operands_that_do_not_fit(schema: OpSchema, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(schema, numbered((2, 3)), **attrs)


def test_slice_refuses_a_step_of_zero() -> None:
    with pytest.raises(AttributeValueError, match="step along axis 0 is 0"):
        evaluate(SLICE, numbered((2, 3)), starts=[0], ends=[1], steps=[0])


def test_dense_parts_may_stay_where_they_lie() -> None:
    x = numbered((4, 6))
    assert check_overwrites(SPLIT, [x], sizes=(1, 3), axis=0) == 2
    assert check_overwrites(SPLIT, [x], sizes=(1, 5), axis=1) == 0
    assert check_overwrites(SLICE, [x], starts=[1], ends=[3]) == 1
    assert check_overwrites(SLICE, [x], starts=[-1], ends=[-5], steps=[-1]) == 0
    assert check_overwrites(TRANSPOSE, [x.reshape(1, 24)]) == 1
    assert check_overwrites(RESHAPE, [x], shape=(24,)) == 1
    assert check_overwrites(EXPAND, [x], shape=(2, 4, 6)) == 0


@pytest.mark.parametrize(
    ("schema", "attrs"),
    [
        (RESHAPE, {"shape": (300, 200)}),
        (TRANSPOSE, {}),
        (SLICE, {"starts": [-1], "ends": [-300], "axes": [1], "steps": [-1]}),
        (EXPAND, {"shape": (2, 200, 300)}),
        (SPLIT, {"sizes": (100, 200), "axis": 1}),
        (IDENTITY, {}),
        (COPY, {}),
    ],
)
def test_copies_allocate_nothing(schema: OpSchema, attrs: dict[str, Any]) -> None:
    check_no_allocation(schema, [numbered((200, 300))], **attrs)
    check_no_allocation(schema, [numbered((300, 200)).T], **attrs)
