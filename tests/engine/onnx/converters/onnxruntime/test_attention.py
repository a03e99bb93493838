"""onnxruntime's Attention and MultiHeadAttention, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.contributed import check, contributed

FEW = settings(max_examples=5, deadline=None)
SIZES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.sampled_from((0, 3)))
"""Rows of a batch, tokens, tokens of the past."""
HEADS, WIDTH = 2, 4


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def masks(kind: str, batch: int, new: int, keys: int) -> tuple[Array | None, tuple[Any, ...]]:
    """Returns a mask that keeps at least one key of each row, and its dimensions."""
    rng = np.random.default_rng((batch, new, keys))
    ends = rng.integers(1, keys + 1, batch).astype(np.int32)
    if kind == "ends":
        return ends, ("b",)
    if kind == "both":
        return np.concatenate([ends, np.minimum(ends - 1, 1)]).astype(np.int32), (2 * batch,)
    raw = (np.arange(keys) < ends[:, None]).astype(np.int32)
    if kind == "keys":
        return raw, ("b", "t")
    if kind == "queries":
        return np.repeat(raw[:, None], new, axis=1), ("b", "s", "t")
    return None, ()


@FEW
@given(
    SIZES,
    st.sampled_from(("none", "ends", "both", "keys", "queries")),
    st.sampled_from((0, 1)),
    st.booleans(),
    st.booleans(),
)
def test_attention(sizes: tuple[int, int, int], kind: str, unidirectional: int, biased: bool, is_open: bool) -> None:
    b, s, p = sizes
    hidden = HEADS * WIDTH
    mask, mask_dims = masks(kind, b, s, p + s)
    arrays = [
        normal(b, s, 6),
        normal(6, 3 * hidden),
        normal(3 * hidden),
        mask,
        normal(2, b, HEADS, p, WIDTH) if p else None,
        normal(1, HEADS, s, s) if biased and not p else None,
    ]
    dims = {0: ("b", "s", 6), 3: mask_dims, 4: (2, "b", HEADS, "p", WIDTH), 5: (1, HEADS, "s", "t")}
    proto, feeds = contributed(
        "Attention",
        arrays,
        constants=(1, 2),
        dims=dims if is_open and kind != "both" else {},
        outputs=("y", "present") if p else ("y",),
        num_heads=HEADS,
        unidirectional=unidirectional,
    )
    check(proto, feeds, rtol=2e-3, atol=1e-4)


def test_attention_with_another_width_of_values_and_another_scale() -> None:
    arrays = [normal(2, 3, 6), normal(6, 8 + 8 + 4), normal(20)]
    attrs = {"qkv_hidden_sizes": [8, 8, 4], "num_heads": 2, "scale": 0.3, "mask_filter_value": -50.0}
    proto, feeds = contributed("Attention", arrays, constants=(1,), dims={0: ("b", "s", 6)}, attrs=attrs)
    check(proto, feeds)


@FEW
@given(
    SIZES,
    st.sampled_from(("none", "ends", "keys", "queries")),
    st.sampled_from((0, 1)),
    st.booleans(),
    st.booleans(),
)
def test_multi_head_attention(
    sizes: tuple[int, int, int], kind: str, unidirectional: int, biased: bool, is_open: bool
) -> None:
    b, s, p = sizes
    hidden, keys = HEADS * WIDTH, p + s
    mask, mask_dims = masks(kind, b, s, keys)
    past = [normal(b, HEADS, p, WIDTH), -normal(b, HEADS, p, WIDTH)] if p else [None, None]
    arrays = [
        *(normal(b, s, hidden) * sign for sign in (1, -1, 2)),
        normal(3 * hidden) if biased else None,
        mask,
        normal(1, HEADS, s, keys) if biased else None,
        *past,
    ]
    tokens, state = ("b", "s", hidden), ("b", HEADS, "p", WIDTH)
    dims = {0: tokens, 1: tokens, 2: tokens, 4: mask_dims, 5: (1, HEADS, "s", "t"), 6: state, 7: state}
    proto, feeds = contributed(
        "MultiHeadAttention",
        arrays,
        constants=(3,),
        dims=dims if is_open else {},
        outputs=("y", "k", "v") if p else ("y",),
        num_heads=HEADS,
        unidirectional=unidirectional,
    )
    check(proto, feeds, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("has_heads", [False, True])
def test_cross_attention(has_heads: bool) -> None:
    hidden, keys = HEADS * WIDTH, 5
    others = [normal(2, HEADS, keys, WIDTH)] * 2 if has_heads else [normal(2, keys, hidden)] * 2
    other = ("b", HEADS, "k", WIDTH) if has_heads else ("b", "k", hidden)
    dims = {0: ("b", "s", hidden), 1: other, 2: other}
    proto, feeds = contributed(
        "MultiHeadAttention", [normal(2, 3, hidden), *others], dims=dims, num_heads=HEADS, scale=0.7
    )
    check(proto, feeds)


def test_what_an_attention_cannot_do_is_told() -> None:
    arrays = [normal(1, 3, 6), normal(6, 24)]
    for attrs, message in (
        ({"do_rotary": 1}, r"\(Attention\): attribute 'do_rotary' is 1; only 0 is supported"),
        ({"past_present_share_buffer": 1}, "attribute 'past_present_share_buffer' is 1"),
    ):
        proto, _ = contributed("Attention", arrays, attrs={"num_heads": 2, **attrs})
        with pytest.raises(UnsupportedError, match=message):
            engine.load_onnx(proto)
    proto, _ = contributed("Attention", [*arrays, None, np.ones((1, 1, 3, 3), np.int32)], num_heads=2)
    with pytest.raises(UnsupportedError, match=r"a mask of shape \(1, 1, 3, 3\) is not supported"):
        engine.load_onnx(proto)
    proto, _ = contributed("MultiHeadAttention", [normal(1, 3, 2, 3, 4)], num_heads=2)
    with pytest.raises(UnsupportedError, match=r"\(MultiHeadAttention\): packed queries, keys or values"):
        engine.load_onnx(proto)
    proto, _ = contributed("Attention", arrays)
    with pytest.raises(ModelError, match="attribute 'num_heads' is missing"):
        engine.load_onnx(proto)
