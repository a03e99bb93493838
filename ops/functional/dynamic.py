"""Functions on vars whose sizes only data decide: the run counts first, and plans what follows when it has counted."""

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ops.functional.apply import Operand, V, apply, apply1, is_var
from ops.functional.lengths import length
from ops.functional.views import slice as slice_axes
from ops.index.compress import COMPRESS
from ops.index.non_max_suppression import NON_MAX_SUPPRESSION
from ops.index.nonzero import COUNT_NONZERO, NONZERO
from ops.index.unique import UNIQUE
from ops.movement.arange import ARANGE, ARANGE_COUNT
from ops.symbolic.guesses import numbers_to
from ops.tensor.errors import ArityError, ShapeError
from ops.tensor.spec import normalize_axis


def count_nonzero(x: V) -> V:
    """How many elements are not zero, as an int64 scalar: NaN counts, -0.0 does not."""
    return apply1(COUNT_NONZERO, x)


def nonzero(x: V) -> V:
    """The coordinates of the elements that are not zero, in C order: int64, one row an axis, one column an element."""
    count = length(count_nonzero(x), numbers_to(math.prod(x.spec.shape)))
    return apply1(NONZERO, x, count=count)


def compress(x: V, condition: V, axis: int | None = None) -> V:
    """The slices of x along `axis` whose condition (bool, one-dimensional) is true; elements where there is no axis."""
    if condition.spec.ndim != 1:
        raise ShapeError(f"a condition has one dimension, and {condition.spec} has {condition.spec.ndim}")
    count = length(count_nonzero(condition), numbers_to(condition.spec.shape[0]))
    return apply1(COMPRESS, x, condition, count=count, axis=axis)


def unique(x: V, axis: int | None = None, *, in_order: bool = True) -> tuple[V, V, V, V]:
    """The distinct slices along `axis` (elements where there is none), as numpy's `unique` gives them.

    Behind them, all int64: where each occurs first, the number of each slice of x, and how often each occurs. Not
    `in_order`, they come as they occur.
    """
    values, first, inverse, times, number = apply(UNIQUE, (x,), axis=axis, sorted=in_order)
    at = 0 if axis is None else normalize_axis(axis, x.spec.ndim)
    found = length(number, numbers_to(first.spec.shape[0], least=1))
    front = (slice_axes(v, [0], [found], [k]) for v, k in ((values, at), (first, 0), (times, 0)))
    values, first, times = front
    return values, first, inverse, times


def non_max_suppression(
    boxes: V,
    scores: V,
    max_output: Operand = 0,
    iou_threshold: Operand = 0.0,
    score_threshold: Operand | None = None,
    *,
    center_point_box: bool = False,
) -> V:
    """Rows (batch, class, box), int64: boxes that overlap no better one of their class by more than the threshold.

    `boxes` are (batch, n, 4), `scores` (batch, classes, n), both float32. At most `max_output` a class, best first, of
    scores above `score_threshold` if there is one. The three numbers may be vars of one element.
    """
    given = {"max_output": max_output, "iou_threshold": iou_threshold, "score_threshold": score_threshold}
    given = {name: value for name, value in given.items() if value is not None}
    behind = max((i + 1 for i, v in enumerate(given.values()) if is_var(v)), default=0)
    late, early = list(given)[:behind], list(given)[behind:]
    inputs = (_number(given[name], "int64" if name == "max_output" else "float32") for name in late)
    attrs: dict[str, Any] = {name: given[name] for name in early}
    made = apply(NON_MAX_SUPPRESSION, (boxes, scores, *inputs), center_point_box=center_point_box, **attrs)
    rows, number = cast(tuple[V, V], made)
    return slice_axes(rows, [0], [length(number, numbers_to(rows.spec.shape[0]))], [0])


def arange(start: Operand, limit: Operand, delta: Operand = 1) -> Any:
    """start, start + delta, ... up to before limit. At least one of them must be a var, with one element.

    Numbers take its element type. Raises ArityError where there is no var: numpy makes such an array.
    """
    like = next((v for v in (start, limit, delta) if is_var(v)), None)
    if like is None:
        raise ArityError("arange: one of start, limit and delta must be a var; numpy makes a range of numbers")
    bounds = [_number(v, like.spec.dtype) for v in (start, limit, delta)]
    (count,) = apply(ARANGE_COUNT, bounds)
    return apply(ARANGE, bounds, count=length(count))[0]


def _number(value: Operand, dtype: npt.DTypeLike) -> Operand:
    """A var as it is, a number as an array."""
    return value if is_var(value) else np.asarray(value, dtype)
