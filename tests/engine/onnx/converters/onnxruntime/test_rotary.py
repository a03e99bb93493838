"""onnxruntime's RotaryEmbedding, against onnxruntime."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.contributed import check, contributed


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@settings(max_examples=6, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3)),
    st.sampled_from(("rows", "first")),
    st.sampled_from((0, 1)),
    st.booleans(),
    st.sampled_from(("three", "four", "partial")),
)
def test_rotary_embedding(sizes: tuple[int, int, int], placed: str, interleaved: int, is_open: bool, form: str) -> None:
    b, s, heads = sizes
    width, pairs = 8, 2 if form == "partial" else 4
    x = normal(b, heads, s, width) if form == "four" else normal(b, s, heads * width)
    dims = {0: ("b", heads, "s", width) if form == "four" else ("b", "s", heads * width), 1: ("b", "s")}
    rng = np.random.default_rng(sizes)
    positions = rng.integers(0, 12, (b, s)) if placed == "rows" else np.asarray([3])
    if placed == "first":
        del dims[1]
    attrs = {"num_heads": heads, "rotary_embedding_dim": 4} if form == "partial" else {}
    arrays = [x, positions.astype(np.int64), normal(12, pairs), -normal(12, pairs)]
    proto, feeds = contributed(
        "RotaryEmbedding",
        arrays,
        constants=(2, 3),
        dims=dims if is_open else {},
        attrs={"interleaved": interleaved, **attrs},
    )
    check(proto, feeds)


def test_what_a_rotary_embedding_cannot_do_is_told() -> None:
    arrays = [normal(1, 2, 8), np.zeros((1, 2), np.int64), normal(4, 4), normal(4, 4)]
    proto, _ = contributed("RotaryEmbedding", arrays, attrs={"is_packed_batching": 1})
    with pytest.raises(UnsupportedError, match=r"\(RotaryEmbedding\): attribute 'is_packed_batching' is 1; only 0"):
        engine.load_onnx(proto)
    proto, _ = contributed("RotaryEmbedding", arrays, attrs={"num_heads": 3})
    with pytest.raises(ModelError, match="3 heads do not divide the width 8"):
        engine.load_onnx(proto)
