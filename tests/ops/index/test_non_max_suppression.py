"""Non-maximum suppression against onnxruntime: thresholds are compared with the same bits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.index.non_max_suppression import NON_MAX_SUPPRESSION
from ops.schema.schema import evaluate
from ops.tensor.errors import CountError, DataError, OpError
from ops.tensor.spec import Array
from tests.helpers.onnx.onnxruntime_node import onnxruntime_node
from tests.helpers.ops.kernel_checks import bind, check_kernels, check_no_allocation, check_results, kernels, sign
from tests.helpers.ops.sample_arrays import SEEDS

Case = tuple[Array, Array, dict[str, Any]]


def shared(p: Array, q: Array) -> float:
    """Returns intersection over union of two boxes given by corners."""
    (a, b), (c, d) = (np.sort(box.reshape(2, 2), 0) for box in (p, q))
    inside = np.prod(np.maximum(np.minimum(b, d) - np.maximum(a, c), 0), dtype=np.float32)
    union = np.prod(b - a, dtype=np.float32) + np.prod(d - c, dtype=np.float32) - inside
    return float(inside / union) if union > 0 else 0.5


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draws boxes on a grid (swapped corners, empty ones, ties) or anywhere, and thresholds that some pairs equal."""
    batch, classes, n = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 25))
    random = np.random.default_rng(draw(SEEDS))
    boxes = random.integers(0, 9, (batch, n, 4)) / 8 if draw(st.booleans()) else random.random((batch, n, 4))
    scores = (
        random.integers(0, 5, (batch, classes, n)) / 4 if draw(st.booleans()) else random.random((batch, classes, n))
    )
    boxes = boxes.astype(np.float32)
    return (
        boxes,
        scores.astype(np.float32),
        {
            "max_output": draw(st.integers(-1, 12)),
            "iou_threshold": draw(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0, shared(boxes[0, 0], boxes[0, -1])])),
            "score_threshold": draw(st.sampled_from([None, 0.0, 0.25, 0.5, float(scores.max())])),
            "center_point_box": draw(st.booleans()),
        },
    )


def oracle(boxes: Array, scores: Array, attrs: dict[str, Any], rows: int) -> list[Array]:
    """Returns onnxruntime's boxes, padded by zeros, and their number."""
    least = attrs["score_threshold"]
    limits = [np.array([attrs["max_output"]]), np.array([attrs["iou_threshold"]], np.float32)]
    limits += [] if least is None else [np.array([least], np.float32)]
    centre = int(attrs["center_point_box"])
    (chosen,) = onnxruntime_node("NonMaxSuppression", [boxes, scores, *limits], center_point_box=centre)
    return [np.pad(chosen, ((0, rows - len(chosen)), (0, 0))), np.array(len(chosen))]


def rows_of(scores: Array, attrs: dict[str, Any]) -> int:
    return int(scores.shape[0] * scores.shape[1] * min(max(attrs["max_output"], 0), scores.shape[2]))


@settings(max_examples=80)
@given(cases())
def test_non_max_suppression_equals_onnxruntime(case: Case) -> None:
    boxes, scores, attrs = case
    check_results(NON_MAX_SUPPRESSION, [boxes, scores], oracle(*case, rows_of(scores, attrs)), **attrs)


@pytest.mark.slow
@settings(max_examples=2000)
@given(cases())
def test_non_max_suppression_equals_onnxruntime_in_thousands_of_cases(case: Case) -> None:
    boxes, scores, attrs = case
    check_results(NON_MAX_SUPPRESSION, [boxes, scores], oracle(*case, rows_of(scores, attrs)), **attrs)


@settings(max_examples=20)
@given(cases())
def test_non_max_suppression_takes_thresholds_as_inputs_and_bounded_rows(case: Case) -> None:
    boxes, scores, attrs = case
    number, threshold = np.array([attrs["max_output"]]), np.array(attrs["iou_threshold"], np.float32)
    least = np.array(attrs["score_threshold"] or 0, np.float32)
    attrs = attrs | {"score_threshold": float(least)}
    wanted, centre = oracle(boxes, scores, attrs, scores.size), attrs["center_point_box"]
    inputs = [boxes, scores, number, threshold, least]
    check_kernels(NON_MAX_SUPPRESSION, inputs, wanted, center_point_box=centre)
    most = int(wanted[1])
    bounded = [wanted[0][:most], wanted[1]]
    check_results(NON_MAX_SUPPRESSION, inputs, bounded, center_point_box=centre, most=most)
    if most:
        with pytest.raises(CountError, match=f"{most} boxes are chosen, and there is room for {most - 1}"):
            evaluate(NON_MAX_SUPPRESSION, *inputs, center_point_box=centre, most=most - 1)


def test_non_max_suppression_writes_no_rows_beyond_its_output() -> None:
    boxes, scores = np.eye(9, 4, dtype=np.float32)[None], np.random.default_rng(0).random((1, 2, 9), np.float32)
    signature = sign(NON_MAX_SUPPRESSION, [boxes, scores], {"max_output": 9, "most": 2})
    for kernel in kernels(NON_MAX_SUPPRESSION, signature):
        room = np.full((18, 3), -7)
        with pytest.raises(CountError):
            bind(kernel, signature, [boxes, scores], [room[:2], np.array(0)])()
        assert (room[2:] == -7).all()


def test_a_box_that_overlaps_exactly_as_much_as_is_allowed_stays() -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 2], [5, 5, 4, 4]]], np.float32)
    scores = np.array([[[0.5, 0.5, 0.9]]], np.float32)
    rows, number = evaluate(NON_MAX_SUPPRESSION, boxes, scores, max_output=3, iou_threshold=0.5)
    assert (rows.tolist(), int(number)) == ([[0, 0, 2], [0, 0, 0], [0, 0, 1]], 3)
    rows, number = evaluate(NON_MAX_SUPPRESSION, boxes, scores, max_output=3, iou_threshold=0.49)
    assert (rows[:2].tolist(), int(number)) == ([[0, 0, 2], [0, 0, 0]], 2)


def test_non_max_suppression_takes_nan_scores_and_no_boxes() -> None:
    scores = np.array([[[np.nan, -np.inf, 1]]], np.float32)
    rows, number = evaluate(NON_MAX_SUPPRESSION, np.eye(3, 4, dtype=np.float32)[None], scores, max_output=3)
    assert (rows[:2, 2].tolist(), int(number)) == ([2, 1], 2)
    rows, number = evaluate(NON_MAX_SUPPRESSION, np.ones((2, 0, 4), np.float32), np.ones((2, 3, 0), np.float32))
    assert (rows.shape, int(number)) == ((0, 3), 0)


def test_non_max_suppression_allocates_nothing() -> None:
    random = np.random.default_rng(0)
    boxes, scores = random.random((2, 4000, 4), np.float32), random.random((2, 5, 4000), np.float32)
    check_no_allocation(NON_MAX_SUPPRESSION, [boxes, scores], max_output=50, iou_threshold=0.5, score_threshold=0.3)
    number = np.array(50)
    check_no_allocation(NON_MAX_SUPPRESSION, [boxes, scores, number], iou_threshold=0.5, most=500)


BOXES, SCORES = np.zeros((2, 5, 4), np.float32), np.zeros((2, 3, 5), np.float32)


@pytest.mark.parametrize(
    ("operands", "attrs", "message"),
    [
        ([BOXES.astype(np.float64), SCORES], {}, "must be float32"),
        ([BOXES[0], SCORES], {}, r"\(batch, n, 4\)"),
        ([BOXES[:, :4], SCORES], {}, "do not fit boxes"),
        ([BOXES, SCORES, np.zeros(2, np.int64)], {}, "max_output must be one number of int64"),
        ([BOXES, SCORES, np.array(1), np.array(0.5)], {}, "iou_threshold must be one number of float32"),
        ([BOXES, SCORES], {"iou_threshold": 1.5}, "between 0 and 1"),
        ([BOXES, SCORES], {"most": -1}, "negative"),
    ],
)
def test_non_max_suppression_refuses_operands_that_do_not_fit(
    operands: list[Array], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(OpError, match=message):
        evaluate(NON_MAX_SUPPRESSION, *operands, **attrs)


@pytest.mark.parametrize("threshold", [-0.5, 1.5, np.nan])
def test_non_max_suppression_refuses_a_nan_threshold_when_it_runs(threshold: float) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        evaluate(NON_MAX_SUPPRESSION, BOXES, SCORES, np.array(1), np.array(threshold, np.float32))
