"""Every Layout method against the strides that numpy gives to real arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ops.tensor.layout import Layout, dense_strides
from ops.tensor.spec import Array, TensorSpec
from tests.helpers.ops.sample_arrays import numbered

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
POSITIVE = st.lists(st.integers(1, 4), max_size=4).map(tuple)
DTYPES = st.sampled_from(["int8", "float16", "float32", "float64"])


def address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def layout_in(view: Array, base: Array) -> Layout:
    return Layout(address(view) - address(base), view.shape, view.strides, view.itemsize)


def seen(layout: Layout, base: Array) -> Array:
    """Returns the elements that a layout selects of a dense array."""
    return np.ndarray(layout.shape, base.dtype, base.tobytes() or b"\0" * 8, layout.offset, layout.strides)


@st.composite
def views(draw: st.DrawFn, shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES) -> tuple[Array, Array, Layout]:
    """Draws a dense array, a view of it by numpy, and the layout that our methods derive by the same steps."""
    base = numbered(draw(shapes), draw(DTYPES))
    view, layout = base, Layout.dense(TensorSpec(base.shape, base.dtype))
    for axis, n in enumerate(base.shape):
        step = draw(st.sampled_from([-2, -1, 1, 1, 2]))
        start = draw(st.integers(0, n - 1)) if n else 0
        part = range(start, n if step > 0 else -1, step) if n else range(0)
        whole = slice(start, None, step) if n else slice(0, 0)
        view = view[(slice(None),) * axis + (whole,)]
        layout = layout.slice(axis, start, len(part), step)
    perm = tuple(draw(st.permutations(range(base.ndim))))
    return base, view.transpose(perm), layout.transpose(perm)


@given(views())
def test_slices_and_transpositions_show_what_numpy_shows(drawn: tuple[Array, Array, Layout]) -> None:
    base, view, layout = drawn
    assert layout.shape == view.shape
    if view.size:
        assert np.array_equal(seen(layout, base), view)


@given(views(POSITIVE))
def test_offsets_and_strides_are_those_of_numpy(drawn: tuple[Array, Array, Layout]) -> None:
    base, view, layout = drawn
    assert layout == layout_in(view, base)


@given(views(), st.integers(-9, 9))
def test_a_layout_is_all_of_a_spec_where_it_equals_the_dense_one(
    drawn: tuple[Array, Array, Layout], first: int
) -> None:
    base, view, layout = drawn
    for spec in (TensorSpec(base.shape, base.dtype), TensorSpec(view.shape, view.dtype), TensorSpec((4,), "int8")):
        assert layout.is_all_of(spec) == (layout == Layout.dense(spec, layout.offset))
        assert Layout.dense(spec, first).is_all_of(spec)


@given(views(), st.integers(-9, 9))
def test_a_layout_can_start_at_any_byte(drawn: tuple[Array, Array, Layout], first: int) -> None:
    _, _, layout = drawn
    moved = layout.starting_at(first)
    low, high = layout.extent
    assert moved.extent == (first, first + high - low)
    assert (moved.shape, moved.strides, moved.itemsize) == (layout.shape, layout.strides, layout.itemsize)
    assert moved.offset - layout.offset == first - low


@given(views())
def test_the_extent_is_the_bytes_that_elements_touch(drawn: tuple[Array, Array, Layout]) -> None:
    base, view, layout = drawn
    low, high = layout.extent
    places = np.arange(base.size).reshape(base.shape)
    if not view.size:
        assert low == high
        return
    touched = seen(Layout(layout.offset * 8 // base.itemsize, layout.shape, _words(layout), 8), places)
    assert (low, high) == (touched.min() * base.itemsize, (touched.max() + 1) * base.itemsize)


def _words(layout: Layout) -> tuple[int, ...]:
    return tuple(s * 8 // layout.itemsize for s in layout.strides)


@given(views())
def test_a_dense_layout_is_c_contiguous_in_numpy(drawn: tuple[Array, Array, Layout]) -> None:
    _, view, layout = drawn
    assert layout.is_dense == view.flags.c_contiguous


@given(SHAPES, DTYPES)
def test_dense_strides_are_those_of_a_new_array(shape: tuple[int, ...], dtype: str) -> None:
    array = np.zeros(shape, dtype)
    assert Layout.dense(TensorSpec(shape, array.dtype)).is_dense
    if array.size:
        assert dense_strides(shape, array.itemsize) == array.strides


@given(views(POSITIVE), st.data())
def test_reshape_returns_none_exactly_where_numpy_copies(
    drawn: tuple[Array, Array, Layout], data: st.DataObject
) -> None:
    base, view, layout = drawn
    shape = data.draw(factorings(view.size))
    reshaped, new_layout = view.reshape(shape), layout.reshape(shape)
    assert (new_layout is not None) == np.shares_memory(reshaped, base)
    if new_layout is not None:
        assert new_layout.shape == shape
        assert np.array_equal(seen(new_layout, base), reshaped)


@st.composite
def factorings(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Draws a shape of that many elements."""
    dims: list[int] = []
    while size > 1 and len(dims) < 5:
        dims.append(draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0])))
        size //= dims[-1]
    return tuple(draw(st.permutations([*dims, size])))


@given(POSITIVE, POSITIVE, st.data())
def test_expanded_layouts_repeat_and_reshape_as_numpy_does(
    shape: tuple[int, ...], lead: tuple[int, ...], data: st.DataObject
) -> None:
    base = numbered(shape)
    target = (*lead[:2], *(data.draw(st.integers(1, 3)) if n == 1 else n for n in shape))
    layout = Layout.of(base).expand(target)
    wanted = np.broadcast_to(base, target)
    assert np.array_equal(seen(layout, base), wanted)
    flat = layout.reshape((wanted.size,))
    assert flat is None or np.array_equal(seen(flat, base), wanted.reshape(-1))


def test_empty_tensors_reshape_to_any_empty_shape() -> None:
    empty = Layout.of(np.zeros((3, 0, 2), np.float32)).reshape((0, 7))
    assert empty == Layout(0, (0, 7), (28, 4), 4)


def test_heads_split_off_a_transposed_matrix_need_no_copy_but_merging_them_does() -> None:
    rows = Layout.of(np.zeros((128, 384), np.float32))
    split = rows.reshape((128, 12, 32))
    assert split is not None
    heads = split.transpose((1, 0, 2))
    assert heads.strides == (128, 1536, 4)
    assert heads.reshape((12 * 128, 32)) is None


def test_a_step_to_the_next_row_may_go_on_with_a_run() -> None:
    """Elements lie at the bytes 3, 1, 2 and 0: the second row begins behind the end of the first one."""
    assert Layout(3, (2, 2), (-1, -2), 1).runs == 3


@given(views())
def test_runs_of_bytes_are_counted_in_the_order_of_elements(drawn: tuple[Array, Array, Layout]) -> None:
    """A run ends where the next element does not begin behind the last one."""
    _, view, layout = drawn
    places = np.zeros(view.shape, np.int64)
    for axis, (n, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        places += np.arange(n).reshape(-1, *(1,) * (view.ndim - axis - 1)) * stride
    jumps = np.diff(places.reshape(-1)) != view.itemsize
    assert layout.runs == (1 + jumps.sum() if view.size else 0)
