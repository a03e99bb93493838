"""Padding, against numpy.pad; negative pads against slices."""

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.schema.schema import evaluate
from ops.spatial.pad import PAD
from ops.tensor.errors import OpError
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_kernels, check_no_allocation, check_results, check_strides
from tests.helpers.ops.sample_arrays import numbered

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
DTYPES = st.sampled_from(["bool", "int8", "float16", "float32"])
MODES = ["constant", "reflect", "edge", "wrap"]


def padded(x: Array, pads: list[int], mode: str, value: Array | None = None) -> Array:
    """Cuts first, then pads with numpy."""
    pairs = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
    kept = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pairs, strict=True))]
    more: dict[str, Any] = {"constant_values": 0 if value is None else value} if mode == "constant" else {}
    return np.pad(kept, [(max(b, 0), max(a, 0)) for b, a in pairs], cast(Any, mode), **more)


@given(SHAPES, DTYPES, st.sampled_from(MODES), st.data())
def test_pad_equals_numpy(shape: tuple[int, ...], dtype: str, mode: str, data: st.DataObject) -> None:
    x = numbered(shape, dtype, first=1)
    pads = [data.draw(st.integers(-((n - 1) // 2), 6)) for n in shape * 2]
    check_kernels(PAD, [x], [padded(x, pads, mode)], pads=pads, mode=mode)


@given(SHAPES, DTYPES, st.data())
def test_a_constant_border_takes_the_value_of_the_second_input(
    shape: tuple[int, ...], dtype: str, data: st.DataObject
) -> None:
    x, value = numbered(shape, dtype, first=1), np.array(7).astype(dtype)
    pads = [data.draw(st.integers(0, 2)) for _ in shape * 2]
    check_results(PAD, [x, value], [padded(x, pads, "constant", value)], pads=pads)
    check_results(PAD, [x, value.reshape(1)], [padded(x, pads, "constant", value)], pads=pads)


def test_pad_may_cut_all_away_or_write_border_alone() -> None:
    x = numbered((2, 3), first=1)
    check_results(PAD, [x], [np.zeros((0, 3), np.float32)], pads=[-2, 0, 0, 0])
    check_results(PAD, [x], [np.zeros((2, 2), np.float32)], pads=[0, -4, 0, 3])
    check_results(PAD, [x[:, :0]], [np.zeros((2, 2), np.float32)], pads=[0, 1, 0, 1])
    check_results(PAD, [np.array(5.0)], [np.array(5.0)], pads=[])


def test_pad_cuts_before_it_reflects() -> None:
    check_results(PAD, [numbered((4,), first=1)], [np.array([2, 3, 4, 3, 2], np.float32)], pads=[-1, 2], mode="reflect")


@pytest.mark.parametrize("mode", MODES)
def test_pad_allocates_nothing(mode: str) -> None:
    check_no_allocation(PAD, [numbered((2, 3, 150, 100), first=1)], pads=[0, 0, 3, 3, 0, 0, 3, 3], mode=mode)
    check_strides(PAD, [numbered((2, 3, 5, 4), first=1)], pads=[0, 0, 3, 3, 0, 0, 3, 3], mode=mode)


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ([np.zeros((2, 3))], {"pads": [1, 1]}, "2 pads for a tensor of 2 dimensions"),
        ([np.zeros((2,))], {"pads": [-2, -1]}, "more from shape"),
        ([np.zeros((2,)), np.zeros((), np.float32)], {"pads": [1, 1]}, "must be one float64"),
        ([np.zeros((2,)), np.zeros((2,))], {"pads": [1, 1]}, "must be one float64"),
        ([np.zeros((0,))], {"pads": [1, 1], "mode": "edge"}, "axis 0 has no element left"),
        ([np.zeros((2,))], {"pads": [1, 1], "mode": "corner"}, "constant, reflect, edge, wrap"),
    ],
)
def test_pad_refuses_operands_that_do_not_fit(operands: list[Array], attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(PAD, *operands, **attrs)
