"""onnxruntime's normalisations of sums and of embeddings, against onnxruntime."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.onnx.contributed import check, contributed

FEW = settings(max_examples=5, deadline=None)
WIDTH = 8


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@FEW
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.sampled_from(((2, 3), (2,), ())),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_skip_layer_normalization(
    sizes: tuple[int, int], skipped: tuple[int, ...], shifted: bool, biased: bool, summed: bool
) -> None:
    b, s = sizes
    skip = {2: (b, s, WIDTH), 1: (1, s, WIDTH), 0: (s, WIDTH)}[len(skipped)]
    arrays = [
        normal(b, s, WIDTH),
        normal(*skip),
        normal(WIDTH),
        normal(WIDTH) if shifted else None,
        normal(WIDTH) if biased else None,
    ]
    outputs = ("y", "", "", "sum") if summed else ("y",)
    check(*contributed("SkipLayerNormalization", arrays, dims={0: ("b", "s", WIDTH)}, outputs=outputs, epsilon=1e-5))


@pytest.mark.parametrize("biased", [True, False])
def test_skip_simplified_layer_normalization(biased: bool) -> None:
    arrays = [normal(2, 3, WIDTH), normal(2, 3, WIDTH), normal(WIDTH), normal(WIDTH) if biased else None]
    dims = {0: ("b", "s", WIDTH), 1: ("b", "s", WIDTH)}
    check(*contributed("SkipSimplifiedLayerNormalization", arrays, dims=dims, outputs=("y", "", "", "sum")))


@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified_layer_normalization_stands_in_the_default_domain(axis: int) -> None:
    shape = (2, 3, WIDTH)
    arrays = [normal(*shape), normal(*shape[axis:])]
    check(*contributed("SimplifiedLayerNormalization", arrays, domain="", axis=axis, epsilon=1e-6, stash_type=1))


def test_layer_normalization_stands_in_operator_sets_before_its_own() -> None:
    proto, feeds = contributed("LayerNormalization", [normal(2, WIDTH), normal(WIDTH), normal(WIDTH)], domain="")
    proto.opset_import[0].version = 13
    check(proto, feeds)


@FEW
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, 1, 2)),
)
def test_embed_layer_normalization(
    sizes: tuple[int, int], segmented: bool, masked: bool, positions: int | None
) -> None:
    b, s = sizes
    rng = np.random.default_rng(sizes)
    arrays = [
        rng.integers(0, 9, sizes).astype(np.int32),
        rng.integers(0, 2, sizes).astype(np.int32) if segmented else None,
        normal(9, WIDTH),
        normal(6, WIDTH),
        normal(2, WIDTH) if segmented else None,
        normal(WIDTH),
        normal(WIDTH),
        (np.arange(s) < rng.integers(1, s + 1, (b, 1))).astype(np.int32) if masked else None,
        rng.integers(0, 6, (b if positions == 2 else 1, s)).astype(np.int32) if positions else None,
    ]
    open_dims = ("b", "s")
    dims = {0: open_dims, 1: open_dims, 7: open_dims}
    outputs = ("y", "mask_index", "sum")
    check(*contributed("EmbedLayerNormalization", arrays, constants=(2, 3, 4, 5, 6), dims=dims, outputs=outputs))


@FEW
@given(st.tuples(st.integers(1, 3), st.integers(1, 4)), st.booleans(), st.booleans())
def test_quantised_embed_layer_normalization(sizes: tuple[int, int], segmented: bool, masked: bool) -> None:
    rng = np.random.default_rng(sizes)
    tables = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ((9, WIDTH), (6, WIDTH), (2, WIDTH))]
    numbers = [rng.integers(0, 256, WIDTH).astype(np.uint8) for _ in range(2)]
    weights: list[Array | None] = [*tables, *numbers]
    scales: list[Array | None] = [np.asarray(0.01 * (i + 1), np.float32) for i in range(5)]
    zeros: list[Array | None] = [np.asarray(100 + i, np.uint8) for i in range(5)]
    if not segmented:
        weights[2] = scales[2] = zeros[2] = None
    ids = rng.integers(0, 9, sizes).astype(np.int32)
    segments = rng.integers(0, 2, sizes).astype(np.int32) if segmented else None
    mask = np.ones(sizes, np.int32) if masked else None
    arrays = [ids, segments, *weights, mask, *scales, *zeros]
    dims = {0: ("b", "s"), 1: ("b", "s"), 7: ("b", "s")}
    constants = (2, 3, 4, 5, 6, *range(8, 18))
    outputs = ("y", "mask_index")
    check(*contributed("QEmbedLayerNormalization", arrays, constants=constants, dims=dims, outputs=outputs))


def test_saved_statistics_are_refused() -> None:
    x = normal(1, 2, WIDTH)
    proto, _ = contributed("SkipLayerNormalization", [x, x, normal(WIDTH)], outputs=("y", "mean"))
    with pytest.raises(UnsupportedError, match=r"\(SkipLayerNormalization\): output 1 is not supported"):
        engine.load_onnx(proto)
