"""Compiled copies between arrays of any strides against numpy's assignment."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.movement.copies import move_all
from ops.tensor.spec import Array
from tests.helpers.ops.compiled_kernel_checks import run_parts

DTYPES = ["int8", "float16", "float32", "float64", "bool"]


@st.composite
def views(draw: Any, shape: tuple[int, ...], dtype: str) -> Array:
    """Draws an array of that shape with permuted axes, gaps, or backwards, not at the start of a cache line."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -2])) for _ in shape]
    lengths = [shape[a] * abs(steps[a]) + draw(st.integers(0, 2)) for a in order]
    first = draw(st.integers(0, 3))
    room = np.random.default_rng(draw(st.integers(0, 9))).integers(0, 100, first + int(np.prod(lengths)))
    stored = room.astype(dtype)[first:].reshape(lengths).transpose(np.argsort(order))
    parts = [slice(None, n * s, s) if s > 0 else slice(n * -s - 1, None, s) for n, s in zip(shape, steps, strict=True)]
    view: Array = stored[(*parts, ...)][(*(slice(0, n) for n in shape), ...)]
    assert view.shape == shape
    return view


@st.composite
def moves(draw: Any, longest: int = 40) -> tuple[Array, Array]:
    """Draws a source, perhaps to be broadcast, and a target."""
    ndim = draw(st.integers(0, 4))
    most = (1, longest, longest, 8, 5)[ndim]
    shape = tuple(draw(st.lists(st.integers(0 if draw(st.booleans()) else 1, most), min_size=ndim, max_size=ndim)))
    dtype = draw(st.sampled_from(DTYPES))
    once = tuple(1 if n and draw(st.integers(0, 4)) == 0 else n for n in shape)
    return draw(views(once, dtype)), draw(views(shape, dtype))


def check_moves(pairs: list[tuple[Array, Array]], parts: int) -> None:
    """Checks that targets hold what numpy writes, and that bytes between their elements keep their values."""
    bases = [target.base if target.base is not None else target for _, target in pairs]
    before = [np.copy(base) for base in bases]
    after = [target.copy() for _, target in pairs]
    for wanted, (source, _) in zip(after, pairs, strict=True):
        wanted[...] = source
    run_parts(move_all(pairs), parts)
    for (_, target), wanted, base, old in zip(pairs, after, bases, before, strict=True):
        np.testing.assert_array_equal(target, wanted)
        target[...] = 0
        changed = base.copy()
        base[...] = old
        target[...] = 0
        np.testing.assert_array_equal(base, changed)


@settings(max_examples=60, deadline=None)
@given(st.lists(moves(), min_size=0, max_size=3), st.integers(1, 4))
def test_compiled_copies_equal_numpy(pairs: list[tuple[Array, Array]], parts: int) -> None:
    check_moves(pairs, parts)


@pytest.mark.slow
@settings(max_examples=1200, deadline=None)
@given(st.lists(moves(90), min_size=1, max_size=2), st.integers(1, 5))
def test_compiled_copies_equal_numpy_in_many_shapes(pairs: list[tuple[Array, Array]], parts: int) -> None:
    check_moves(pairs, parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("parts", [1, 2])
def test_compiled_copies_transpose_matrices(dtype: str, parts: int) -> None:
    x = np.random.default_rng(0).integers(0, 100, (2, 37, 5, 19)).astype(dtype)
    for order in ((0, 2, 3, 1), (0, 3, 1, 2), (3, 2, 1, 0)):
        source = x.transpose(order)
        check_moves([(source, np.zeros(source.shape, dtype))], parts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 16])
def test_compiled_copies_shuffle_channels(groups: int, dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (3, 2, groups, 37)).astype(dtype)
    for source in (x.transpose(0, 1, 3, 2), x.reshape(3, 2, 37, groups).transpose(0, 1, 3, 2)):
        check_moves([(source, np.zeros(source.shape, dtype))], 2)


@pytest.mark.parametrize("length", [32767, 32768, 100_001])
def test_compiled_copies_cut_a_long_run_into_parts(length: int) -> None:
    source = np.random.default_rng(0).integers(0, 100, length).astype(np.uint8)
    check_moves([(source, np.zeros(length + 3, np.uint8)[2:-1])], 3)


def test_compiled_copies_keep_payloads_of_nan() -> None:
    source = np.array([[0x7FC01234, 0x7F812345, 0xFFC00001]], np.uint32).view(np.float32)
    target = np.zeros((3, 1), np.float32)
    move_all([(source.T, target)])()
    assert target.tobytes() == source.tobytes()
