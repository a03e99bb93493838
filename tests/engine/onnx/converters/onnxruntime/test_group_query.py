"""onnxruntime's GroupQueryAttention, against onnxruntime."""

from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import engine
from engine.text.errors import ModelError, UnsupportedError
from ops.tensor.spec import Array
from tests.helpers.graphs.pass_checks import schema_names
from tests.helpers.onnx.contributed import all_runs, contributed
from tests.helpers.onnx.small_models import run_onnxruntime

FEW = settings(max_examples=5, deadline=None)
GROUPS, WIDTH = 2, 16
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"scale": 0.2, "softcap": 1.5},
    {"local_window_size": 2},
    {"smooth_softmax": 1},
    {"do_rotary": 1},
    {"do_rotary": 1, "rotary_interleaved": 1},
)


def normal(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


@frozen
class Case:
    """Rows of a batch, new tokens, tokens of the past, places behind them in the buffer, heads of queries a group."""

    batch: int
    new: int
    past: int
    spare: int
    share: int


CASES = (
    Case(1, 3, 0, 0, 3),
    Case(2, 3, 0, 0, 1),
    Case(1, 1, 4, 0, 3),
    Case(1, 2, 4, 3, 1),
    Case(2, 1, 4, 0, 1),
    Case(2, 1, 4, 3, 3),
)
"""onnxruntime takes several tokens behind a past in a batch of one only."""


def operands(case: Case, options: dict[str, Any], *, packed: bool) -> list[Array | None]:
    """Returns the inputs of a node. One row of a batch has a shorter past where onnxruntime takes such."""
    widths = [n * WIDTH for n in (GROUPS * case.share, GROUPS, GROUPS)]
    tokens: list[Array | None] = [normal(case.batch, case.new, w) * (i + 1) for i, w in enumerate(widths)]
    if packed:
        tokens = [np.concatenate([t for t in tokens if t is not None], axis=-1), None, None]
    buffer = (case.batch, GROUPS, case.past + (case.spare if case.past else 0), WIDTH)
    lengths = np.full(case.batch, case.past + case.new - 1, np.int32)
    if case.past and case.new == 1 and case.batch > 1:
        lengths[0] -= 2
    tables = [normal(16, WIDTH // 2), -normal(16, WIDTH // 2)] if options.get("do_rotary") else [None, None]
    state = [normal(*buffer), -normal(*buffer)] if case.past else [None, None]
    return [*tokens, *state, lengths, np.asarray(case.past + case.new, np.int32), *tables]


def check_filled(proto: Any, feeds: dict[str, Array], lengths: Array) -> None:
    """Checks outputs against onnxruntime's, and of what is kept the rows that hold something."""
    wanted = run_onnxruntime(proto, feeds)
    for outputs in all_runs(proto, feeds):
        assert [a.shape for a in outputs] == [a.shape for a in wanted]
        np.testing.assert_allclose(outputs[0], wanted[0], rtol=1e-3, atol=1e-4)
        for got, want in zip(outputs[1:], wanted[1:], strict=True):
            for row, last in enumerate(lengths):
                np.testing.assert_allclose(got[row, :, : last + 1], want[row, :, : last + 1], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@FEW
@given(st.sampled_from(CASES), st.sampled_from(OPTIONS), st.booleans(), st.sampled_from(("fixed", "open", "fed")))
def test_group_query_attention(case: Case, options: dict[str, Any], packed: bool, form: str) -> None:
    arrays = operands(case, options, packed=packed)
    state = ("b", GROUPS, "p", WIDTH)
    dims: dict[int, Any] = {i: ("b", "s", a.shape[-1]) for i, a in enumerate(arrays[:3]) if a is not None}
    dims |= {3: state, 4: state, 5: ("b",)}
    proto, feeds = contributed(
        "GroupQueryAttention",
        arrays,
        constants=(7, 8) if form == "fed" else (6, 7, 8),
        dims={} if form == "fixed" else dims,
        outputs=("y", "k", "v"),
        attrs={"num_heads": GROUPS * case.share, "kv_num_heads": GROUPS, **options},
    )
    lengths = arrays[5]
    assert lengths is not None
    check_filled(proto, feeds, lengths)


def test_scores_that_are_added_and_heads_that_need_no_key() -> None:
    case = Case(batch=2, new=1, past=4, spare=3, share=3)
    arrays = operands(case, {}, packed=False)
    heads = GROUPS * case.share
    extra = [None, normal(1, heads, 1, 5), normal(heads)]
    attrs = {"num_heads": heads, "kv_num_heads": GROUPS, "softcap": 2.0}
    proto, feeds = contributed("GroupQueryAttention", [*arrays, *extra], outputs=("y", "k", "v"), attrs=attrs)
    lengths = arrays[5]
    assert lengths is not None
    check_filled(proto, feeds, lengths)


def test_a_full_past_is_concatenated_and_not_copied_twice() -> None:
    case = Case(batch=1, new=1, past=4, spare=0, share=3)
    attrs = {"num_heads": 6, "kv_num_heads": GROUPS}
    proto, _ = contributed(
        "GroupQueryAttention", operands(case, {}, packed=False), constants=(5, 6), outputs=("y", "k", "v"), attrs=attrs
    )
    names = schema_names(engine.load_onnx(proto))
    assert names.count("concat") == 2
    assert "scatter_nd" not in names


def test_what_group_query_attention_cannot_do_is_told() -> None:
    arrays = operands(Case(1, 1, 4, 0, 1), {}, packed=False)
    heads = {"num_heads": 2, "kv_num_heads": 2}
    for attrs in ({"causal": 0}, {"qk_output": 1}, {"sliding_window_cache": 1}, {"k_quant_type": "PER_TENSOR"}):
        proto, _ = contributed("GroupQueryAttention", arrays, attrs={**heads, **attrs})
        (name,) = attrs
        with pytest.raises(UnsupportedError, match=rf"\(GroupQueryAttention\): attribute '{name}' is "):
            engine.load_onnx(proto)
    proto, _ = contributed("GroupQueryAttention", arrays, attrs={"num_heads": 3, "kv_num_heads": 2})
    with pytest.raises(ModelError, match="2 heads of keys do not divide 3 of queries"):
        engine.load_onnx(proto)
