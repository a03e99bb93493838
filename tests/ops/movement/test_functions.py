"""Functions that view, move and multiply elements, against numpy, on a graph that computes at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ops
from ops.movement.indexing import Key
from ops.tensor.errors import ArityError, OpError, ShapeError
from tests.helpers.ops.eager_graph import EagerVar


def value(*shape: int) -> EagerVar:
    return EagerVar(np.arange(np.prod(shape, dtype=int)).astype(np.float32).reshape(shape))


def same(got: EagerVar, wanted: Any) -> None:
    assert got.array.shape == np.shape(wanted)
    assert np.array_equal(got.array, wanted)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Key, ...]:
    """Draws any key that numpy takes for this shape: integers, slices, an ellipsis and new axes."""
    bounds = st.none() | st.integers(-6, 6)
    steps = st.none() | st.sampled_from([-2, -1, 1, 2])
    key: list[Key] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        picks = st.builds(slice, bounds, bounds, steps)
        key.append(draw(picks | st.integers(-n, n - 1) if n else picks))
    for new in draw(st.lists(st.sampled_from([None, None, ...]), max_size=2)):
        if new is None or ... not in key:
            key.insert(draw(st.integers(0, len(key))), new)
    return tuple(key)


@given(st.lists(st.integers(0, 4), max_size=3).map(tuple), st.data())
def test_indexing_brackets_equal_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    x = value(*shape)
    key = data.draw(keys(shape))
    try:
        wanted = x.array[key]
    except IndexError:
        with pytest.raises(ShapeError):
            ops.getitem(x, key)
    else:
        same(ops.getitem(x, key), wanted)


def test_brackets_take_one_key_too_and_add_at_most_two_operators() -> None:
    x = value(4, 3, 2)
    same(ops.getitem(x, 0), x.array[0])
    same(ops.getitem(x, slice(None, None, -1)), x.array[::-1])
    same(ops.getitem(x, ...), x.array)
    assert x.graph.names == ["slice", "reshape", "slice", "identity"]


@pytest.mark.parametrize("key", [4, -5, (0, 0, 0, 0), (..., ...), slice(None, None, 0), "a", 1.5, True])
def test_brackets_refuse_what_numpy_refuses_and_masks(key: Any) -> None:
    with pytest.raises(OpError):
        ops.getitem(value(4, 3, 2), key)


X = value(2, 1, 3)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda: ops.reshape(X, (3, -1)), X.array.reshape(3, 2)),
        (lambda: ops.reshape(X, (0, -1), zero_copies=True), X.array.reshape(2, 3)),
        (lambda: ops.flatten(X), X.array.reshape(2, 3)),
        (lambda: ops.flatten(X, 0), X.array.reshape(1, 6)),
        (lambda: ops.flatten(X, 3), X.array.reshape(6, 1)),
        (lambda: ops.flatten(X, -1), X.array.reshape(2, 3)),
        (lambda: ops.squeeze(X), X.array.squeeze()),
        (lambda: ops.squeeze(X, [-2]), X.array.squeeze(1)),
        (lambda: ops.unsqueeze(X, [0, -1]), X.array[None, ..., None]),
        (lambda: ops.transpose(X), X.array.T),
        (lambda: ops.transpose(X, [1, 0, 2]), X.array.transpose(1, 0, 2)),
        (lambda: ops.expand(X, (4, 1)), np.broadcast_to(X.array, (2, 4, 3))),
        (lambda: ops.slice(X, [1], [3], [-1]), X.array[..., 1:3]),
        (lambda: ops.identity(X), X.array),
        (lambda: ops.dropout(X), X.array),
        (lambda: ops.concat([X, X.array], -1), np.concatenate([X.array, X.array], -1)),
        (lambda: ops.stack([X, X], 1), np.stack([X.array, X.array], 1)),
        (lambda: ops.stack([X, X], -1), np.stack([X.array, X.array], -1)),
        (lambda: ops.tile(X, (2, 1, 2)), np.tile(X.array, (2, 1, 2))),
        (
            lambda: ops.pad(X, [1, 2], axes=[-1], value=9),
            np.pad(X.array, [(0, 0)] * 2 + [(1, 2)], constant_values=9),
        ),
        (lambda: ops.pad(X, [1, 0, 0, 0, 0, 2], "edge"), np.pad(X.array, [(1, 0), (0, 0), (0, 2)], "edge")),
        (lambda: ops.gather(X, np.array([2, -3]), 2), X.array[..., [2, 0]]),
        (lambda: ops.gather(np.arange(9), EagerVar(np.array([2, 3]))), [2, 3]),
        (lambda: ops.gather_elements(X, np.array([[[2]], [[0]]]), 2), [[[2]], [[3]]]),
        (lambda: ops.gather_nd(X, np.array([[1, 0]])), X.array[[1], [0]]),
        (
            lambda: ops.scatter_elements(X, np.array([[[2]]]), np.full((1, 1, 1), 7, np.float32), 2),
            [[[0, 1, 7]], [[3, 4, 5]]],
        ),
        (
            lambda: ops.scatter_nd(X, np.array([[1, 0, 0]]), np.full(1, 7, np.float32), "add"),
            [[[0, 1, 2]], [[10, 4, 5]]],
        ),
        (lambda: ops.trilu(value(3, 3), upper=False), np.tril(value(3, 3).array)),
        (lambda: ops.eye_like(value(2, 3), "int8", 1), np.eye(2, 3, 1)),
        (lambda: ops.one_hot(EagerVar(np.array([1, -1])), np.array([0, 5]), 3), [[0, 5, 0], [0, 0, 5]]),
        (lambda: ops.hardmax(X), [[[0, 0, 1]], [[0, 0, 1]]]),
        (lambda: ops.cum_sum(X, -1, exclusive=True), [[[0, 0, 1]], [[0, 3, 7]]]),
        (lambda: ops.reverse_sequence(value(2, 2), np.array([2, 1])), [[2, 1], [0, 3]]),
        (lambda: ops.top_k(X, 2)[1], [[[2, 1]], [[2, 1]]]),
        (lambda: ops.matmul(value(2, 3), value(3, 2)), value(2, 3).array @ value(3, 2).array),
        (lambda: ops.matmul(value(2, 3).array, value(3)), value(2, 3).array @ value(3).array),
        (lambda: ops.gemm(value(2, 3), value(4, 3), 1, trans_b=True), value(2, 3).array @ value(4, 3).array.T + 1),
        (
            lambda: ops.gemm(value(3, 2), value(3, 4), alpha=2, trans_a=True),
            2 * value(3, 2).array.T @ value(3, 4).array,
        ),
    ],
)
def test_movement_functions_equal_numpy(function: Callable[[], EagerVar], wanted: Any) -> None:
    same(function(), wanted)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)])
def test_linear_maps_the_last_axis(shape: tuple[int, ...]) -> None:
    x, weight, bias = value(*shape), value(4, 3).array, value(4).array
    same(ops.linear(x, weight, bias), x.array @ weight.T + bias)
    same(ops.linear(x, weight), x.array @ weight.T)


def test_split_takes_lengths_or_a_number_of_parts() -> None:
    x = value(2, 5)
    for part, wanted in zip(ops.split(x, 3, 1), np.split(x.array, [2, 4], 1), strict=True):
        same(part, wanted)
    assert [p.spec.shape for p in ops.split(x, (1, 4), -1)] == [(2, 1), (2, 4)]
    assert [p.spec.shape[0] for p in ops.split(x, 3)] == [1, 1, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ops.flatten(X, 4),
        lambda: ops.squeeze(X, [0]),
        lambda: ops.unsqueeze(X, [0, 0]),
        lambda: ops.split(X, 0),
        lambda: ops.pad(X, [1], axes=[0]),
    ],
)
def test_movement_functions_refuse_operands_that_do_not_fit(wrong: Callable[[], object]) -> None:
    with pytest.raises(ShapeError):
        wrong()


def test_a_var_is_wanted_among_the_operands() -> None:
    with pytest.raises(ArityError, match="at least one operand must be a var"):
        ops.concat([np.zeros(2), np.zeros(2)])
    with pytest.raises(ArityError, match="at least one"):
        ops.stack([])
