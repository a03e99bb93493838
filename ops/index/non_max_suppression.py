"""Boxes from the best score down, without those that overlap a better one (ONNX NonMaxSuppression-11).

numba compiles a heap of scores and a comparison with each box that is kept; numpy is in `ops.index.suppression`.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ops.common.apply import Operand, V, apply, is_var, typed
from ops.common.counts import SCALAR
from ops.common.indices import INT64
from ops.common.lengths import length
from ops.index.args import SUPPRESS
from ops.index.suppression import Suppression, suppression_specs
from ops.movement.slicing import slice as slice_axes
from ops.native.functions import function_call
from ops.schema.attributes import Attribute, flag, integer, number, optional
from ops.schema.backends import NUMBA
from ops.schema.schema import Attrs, Binding, Cost, Kernel, OpSchema, Signature, Specs, Thunk, all_contiguous
from ops.symbolic.guesses import numbers_to
from ops.tensor.errors import CountError, DataError, DtypeError, ShapeError
from ops.tensor.spec import TensorSpec

_SINGLE = np.dtype("float32")
_OPTIONS = (("max_output", INT64), ("iou_threshold", _SINGLE), ("score_threshold", _SINGLE))
"""Options that are attributes, or inputs behind boxes and scores where they are known only when the operator runs."""


def _share(value: Any) -> float:
    """Returns a number from 0 to 1. Raises DataError for others."""
    share = number(value)
    if not 0 <= share <= 1:
        raise DataError(f"an IoU threshold lies between 0 and 1, and {share} does not")
    return share


def _check(inputs: Specs) -> None:
    boxes, scores, *options = inputs
    if boxes.dtype != _SINGLE or scores.dtype != _SINGLE:
        raise DtypeError("boxes and scores must be float32")
    if (boxes.ndim, scores.ndim) != (3, 3) or boxes.shape[2] != 4:
        raise ShapeError("boxes must be of shape (batch, n, 4) and scores of shape (batch, classes, n)")
    if (scores.shape[0], scores.shape[2]) != boxes.shape[:2]:
        raise ShapeError(f"scores of shape {scores.shape} do not fit boxes of shape {boxes.shape}")
    for spec, (name, dtype) in zip(options, _OPTIONS, strict=False):
        if spec.dtype != dtype or spec.size != 1:
            raise ShapeError(f"{name} must be one number of {dtype}, not {spec}")


def _most(inputs: Specs, attrs: Attrs) -> int:
    """Returns the number of rows that the output has room for; by default as many as there can be."""
    batch, classes, n = inputs[1].shape
    if attrs["most"] is not None:
        return int(attrs["most"])
    return batch * classes * (n if len(inputs) > 2 else min(max(attrs["max_output"], 0), n))


def _infer(inputs: Specs, attrs: Attrs) -> Specs:
    _check(inputs)
    return TensorSpec((_most(inputs, attrs), 3), INT64), SCALAR


def _temporaries(signature: Signature) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Returns the specs of corners and areas of all boxes of an image, of those chosen, and of the order of scores."""
    n = signature.x.shape[1]
    corners = TensorSpec((n, 5), _SINGLE)
    return corners, corners, TensorSpec((n,), INT64)


def _reader(call: Binding, position: int) -> Callable[[], Any]:
    """Returns a function that reads an input, or gives the attribute where there is no such input."""
    if len(call.inputs) > position + 2:
        return call.inputs[position + 2].item
    return lambda: call.attrs[_OPTIONS[position][0]]


def _non_max_suppression(call: Binding) -> Thunk:
    boxes, scores, (y, number_of_rows) = call.x, call.inputs[1], call.outputs
    corners, kept, order = call.temporaries
    limit, overlap, least = (_reader(call, position) for position in range(len(_OPTIONS)))
    thresholds = np.empty(2, np.float32)

    def run() -> None:
        floor = least()
        thresholds[:] = _share(overlap()), floor or 0
        y.fill(0)
        chosen = function_call(
            "ops.index.suppress_code",
            "suppress",
            SUPPRESS,
            boxes=boxes,
            scores=scores,
            images=len(scores),
            classes=scores.shape[1],
            boxes_of_image=scores.shape[2],
            is_centre=call.attrs["center_point_box"],
            has_least=floor is not None,
            limit=max(limit(), 0),
            thresholds=thresholds,
            corners=corners,
            kept=kept,
            order=order,
            y=y,
            rows=len(y),
        )()
        if chosen > len(y):
            raise CountError(f"{chosen} boxes are chosen, and there is room for {len(y)}")
        number_of_rows.fill(chosen)

    return run


def _suppression_specs(signature: Signature) -> Specs:
    return suppression_specs(signature.x.shape[1])


def _suppress(call: Binding) -> Thunk:
    boxes, scores, (y, number_of_rows) = call.x, call.inputs[1], call.outputs
    chooser = Suppression(boxes.shape[1], call.temporaries)
    limit, overlap, least = (_reader(call, position) for position in range(len(_OPTIONS)))

    def run() -> None:
        floor, share, most = least(), np.float32(_share(overlap())), max(limit(), 0)
        y.fill(0)
        total = 0
        for image, of_image in enumerate(scores):
            chooser.set_boxes(boxes[image], call.attrs["center_point_box"])
            for group, of_class in enumerate(of_image):
                chosen = chooser.choose(of_class, None if floor is None else np.float32(floor), most, share)
                rows = y[total : total + len(chosen)]
                rows[:, 0], rows[:, 1], rows[:, 2] = image, group, chosen[: len(rows)]
                total += len(chosen)
        if total > len(y):
            raise CountError(f"{total} boxes are chosen, and there is room for {len(y)}")
        number_of_rows.fill(total)

    return run


def _cost(signature: Signature) -> Cost:
    """Returns the largest cost: each box of a class is compared with each that is kept, ten operations each time."""
    flops = 10 * signature.x.shape[1] * signature.y.shape[0]
    return Cost(flops, sum(s.nbytes for s in signature.inputs + signature.outputs))


NON_MAX_SUPPRESSION = OpSchema(
    name="non_max_suppression",
    summary="Rows (batch, class, box) of boxes that overlap no better one by more than `iou_threshold`, best first in"
    " each class, zeros behind the last of them, and how many there are. At most `max_output` a class, scores"
    " above `score_threshold`; these three may be inputs behind boxes and scores. `most` bounds the rows.",
    infer=_infer,
    kernels=(
        Kernel("numba", _non_max_suppression, _temporaries, all_contiguous, backend=NUMBA),
        Kernel("sort", _suppress, _suppression_specs, all_contiguous),
    ),
    arity=(2, 5),
    attributes=(
        Attribute("max_output", integer, 0),
        Attribute("iou_threshold", _share, 0.0),
        Attribute("score_threshold", optional(number), None),
        Attribute("center_point_box", flag, False),
        Attribute("most", optional(integer), None),
    ),
    cost=_cost,
)
OPS = (NON_MAX_SUPPRESSION,)


def non_max_suppression(
    boxes: V,
    scores: V,
    max_output: Operand = 0,
    iou_threshold: Operand = 0.0,
    score_threshold: Operand | None = None,
    *,
    center_point_box: bool = False,
) -> V:
    """Returns rows (batch, class, box), int64, of boxes that overlap no better one of their class above the threshold.

    `boxes` are (batch, n, 4), `scores` (batch, classes, n), both float32. At most `max_output` a class, best first, of
    scores above `score_threshold` if there is one. The three numbers may be vars of one element.
    """
    limits = {"max_output": max_output, "iou_threshold": iou_threshold, "score_threshold": score_threshold}
    limits = {name: value for name, value in limits.items() if value is not None}
    inputs_end = max((i + 1 for i, v in enumerate(limits.values()) if is_var(v)), default=0)
    names = list(limits)
    inputs = (typed(limits[n], "int64" if n == "max_output" else "float32") for n in names[:inputs_end])
    attrs: dict[str, Any] = {name: limits[name] for name in names[inputs_end:]}
    outputs = apply(NON_MAX_SUPPRESSION, (boxes, scores, *inputs), center_point_box=center_point_box, **attrs)
    rows, number = cast(tuple[V, V], outputs)
    return slice_axes(rows, [0], [length(number, numbers_to(rows.spec.shape[0]))], [0])
