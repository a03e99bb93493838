"""onnxruntime's products of quantised matrices and layers around them, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.contributed import check, contributed, factors

FEW = settings(max_examples=5, deadline=None)
TYPES = st.sampled_from((np.uint8, np.int8))
PAIRS = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
"""Element types of two factors that onnxruntime multiplies."""


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def integers(dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(shape).integers(limits.min, limits.max + 1, shape).astype(dtype)


def of_columns(dtype: Any, by_column: bool, columns: int) -> list[Array]:
    """Returns a scale and a zero point, or one of each for each column."""
    if not by_column:
        return [np.asarray(0.01, np.float32), np.asarray(4, dtype)]
    return [np.linspace(0.01, 0.05, columns).astype(np.float32), np.arange(columns).astype(dtype)]


@FEW
@given(st.sampled_from(PAIRS), st.booleans(), st.booleans(), st.booleans())
def test_products_to_real_numbers(types: tuple[Any, Any], by_column: bool, biased: bool, is_open: bool) -> None:
    left, right = types
    scale, zero = of_columns(right, by_column, 5)
    arrays = [
        integers(left, 2, 3, 6),
        factors(right, 6, 5),
        np.asarray(0.02, np.float32),
        scale,
        np.asarray(7, left),
        zero,
        normal(5) if biased else None,
    ]
    dims = {0: ("b", "s", 6)} if is_open else {}
    check(*contributed("MatMulIntegerToFloat", arrays, constants=(1, 2, 3, 4, 5, 6), dims=dims))


@FEW
@given(TYPES, st.booleans(), st.booleans(), st.booleans())
def test_products_of_what_is_quantised_in_the_run(dtype: Any, by_column: bool, biased: bool, has_zero: bool) -> None:
    scale, zero = of_columns(dtype, by_column, 5)
    arrays = [normal(2, 3, 6), factors(dtype, 6, 5), scale, zero if has_zero else None, normal(5) if biased else None]
    dims = {0: ("b", "s", 6)}
    check(*contributed("DynamicQuantizeMatMul", arrays, constants=(1, 2, 3, 4), dims=dims), atol=1e-4)


@FEW
@given(TYPES, st.booleans(), st.booleans(), st.sampled_from((0, 1)), st.sampled_from((0, 2)))
def test_quantised_attention(dtype: Any, by_column: bool, masked: bool, unidirectional: int, past: int) -> None:
    heads, width, hidden = 2, 4, 8
    scale, zero = of_columns(dtype, by_column, 3 * hidden)
    arrays = [
        integers(np.uint8, 2, 3, 6),
        factors(dtype, 6, 3 * hidden),
        normal(3 * hidden),
        np.asarray(0.01, np.float32),
        scale * np.float32(0.1),
        np.asarray([[1] * (3 + past), [1] + [0] * (2 + past)], np.int32) if masked else None,
        np.asarray(100, np.uint8),
        zero,
        normal(2, 2, heads, past, width) if past else None,
    ]
    proto, feeds = contributed(
        "QAttention",
        arrays,
        constants=(1, 2, 3, 4, 6, 7),
        outputs=("y", "present") if past else ("y",),
        num_heads=heads,
        unidirectional=unidirectional,
    )
    check(proto, feeds, rtol=2e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("by_column", [False, True])
def test_dynamic_lstm_is_near(direction: str, by_column: bool) -> None:
    """onnxruntime rounds inputs and states to 8 bits before each product; here they are not rounded."""
    turns, hidden = 1 + (direction == "bidirectional"), 4
    shape = (turns, 4 * hidden) if by_column else (turns,)
    arrays = [
        normal(5, 2, 3),
        factors(np.int8, turns, 3, 4 * hidden),
        factors(np.int8, turns, hidden, 4 * hidden),
        normal(turns, 8 * hidden) * np.float32(0.1),
        None,
        None,
        None,
        None,
        np.full(shape, 0.005, np.float32),
        np.zeros(shape, np.int8),
        np.full(shape, 0.004, np.float32),
        np.zeros(shape, np.int8),
    ]
    proto, feeds = contributed(
        "DynamicQuantizeLSTM",
        arrays,
        constants=(1, 2, 3, 8, 9, 10, 11),
        outputs=("y", "h", "c"),
        hidden_size=hidden,
        direction=direction,
    )
    check(proto, feeds, rtol=0.0, atol=0.02)


@FEW
@given(
    st.sampled_from((2, 4, 8)),
    st.sampled_from((32, 48, 40)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_weights_of_few_bits(bits: int, depth: int, has_zeros: bool, biased: bool, is_open: bool) -> None:
    columns, block = 6, 16
    blocks = -(-depth // block)
    arrays = [
        normal(2, 3, depth),
        integers(np.uint8, columns, blocks, block * bits // 8),
        np.abs(normal(columns, blocks)) * np.float32(0.1),
        integers(np.uint8, columns, -(-blocks * bits // 8)) if has_zeros else None,
        None,
        normal(columns) if biased else None,
    ]
    attrs = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    dims = {0: ("b", "s", depth)} if is_open else {}
    check(*contributed("MatMulNBits", arrays, constants=(1, 2, 3, 5), dims=dims, attrs=attrs), rtol=1e-3, atol=1e-3)


def test_weights_that_cannot_be_unpacked_are_refused() -> None:
    attrs = {"K": 32, "N": 6, "block_size": 16}
    arrays = [normal(2, 32), integers(np.uint8, 6, 2, 8), normal(6, 2)]
    proto, _ = contributed("MatMulNBits", arrays, constants=(1, 2), attrs=attrs, bits=3)
    with pytest.raises(UnsupportedError, match=r"\(MatMulNBits\): weights of 3 bits are not supported"):
        engine.load_onnx(proto)
    proto, _ = contributed("MatMulNBits", [arrays[0], arrays[1][:, :1], arrays[2]], constants=(1, 2), attrs=attrs)
    with pytest.raises(ModelError, match=r"B of shape \(6, 1, 8\) has not 6 rows of 2 blocks of 16 x 4 bits"):
        engine.load_onnx(proto)
    proto, _ = contributed("MatMulNBits", [*arrays, normal(6, 2)], constants=(1, 2, 3), attrs=attrs)
    with pytest.raises(UnsupportedError, match="zero points of float32 are not supported"):
        engine.load_onnx(proto)
