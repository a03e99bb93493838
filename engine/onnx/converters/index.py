"""Converters of operators that pick, place, sort or accumulate elements by position."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from engine.graph.var import Var
from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct, no_guess
from engine.onnx.tensors import dtype_of
from ops.symbolic.guesses import choices, numbers_to, small_numbers
from ops.tensor.spec import normalize_axis


def _top_k_attribute(node: Node) -> tuple[Value, ...]:
    return node.last("top_k", node.value(0), k=node.attr("k"), axis=node.attr("axis", -1))


def _top_k_input(node: Node) -> tuple[Value, ...]:
    options = {"axis": node.attr("axis", -1), "largest": node.attr("largest", 1), "sorted": node.attr("sorted", 1)}
    x = node.value(0)
    most = x.shape[normalize_axis(options["axis"], len(x.shape))]
    k = node.integer(1, "K", lambda _: (numbers_to(most, turn=node.variant),))
    return node.last("top_k", x, k=k, **options)


def _one_hot(node: Node) -> tuple[Value, ...]:
    depth = node.integer(1, "depth", no_guess)
    depth = int(depth) if isinstance(depth, float) else depth
    return node.last("one_hot", node.value(0), node.value(2), depth=depth, axis=node.attr("axis", -1))


def _running(schema: str, node: Node) -> tuple[Value, ...]:
    x = node.value(0)
    axis = node.integer(1, "axis", lambda _: choices(1, len(x.shape)))
    return node.last(
        schema,
        x,
        axis=axis,
        exclusive=node.attr("exclusive", 0),
        reverse=node.attr("reverse", 0),
    )


def _trilu(node: Node) -> tuple[Value, ...]:
    k = 0 if node.optional(1) is None else node.integer(1, "k", lambda _: (small_numbers(node.variant),))
    return node.last("trilu", node.value(0), upper=node.attr("upper", 1), k=k)


def _compress(node: Node) -> tuple[Value, ...]:
    """Converts Compress. The selected elements are counted first, unless the condition is constant."""
    condition, axis = node.value(1), node.attr("axis")
    guess = numbers_to(condition.shape[0], turn=node.variant)
    count = node.count(node.step("count_nonzero", condition), guess, (1, "condition"))
    return node.last("compress", node.value(0), condition, count=count, axis=axis)


def _unique(node: Node) -> tuple[Value, ...]:
    """Converts Unique. The operator writes into the largest possible outputs, from the front; then these are cut."""
    x, axis = node.value(0), node.attr("axis")
    results = node.builder.emit(
        "unique", (x,), {"axis": axis, "sorted": node.attr("sorted", 1)}, f"{node.name}/unique", ("",) * 5
    )
    values, first, inverse, times, number = results
    count = node.count(number, numbers_to(first.shape[0], least=1, turn=node.variant), (0, "X"))
    at = 0 if axis is None else axis
    named = (*node.outputs, "", "", "")
    return (
        _front(node, values, count, at, named[0]),
        _front(node, first, count, 0, named[1]),
        inverse,
        _front(node, times, count, 0, named[3]),
    )[: len(node.outputs)]


def _front(node: Node, value: Value, count: int, axis: int, name: str) -> Value:
    attrs = {"starts": (0,), "ends": (count,), "axes": (axis,)}
    return node.builder.emit("slice", (value,), attrs, f"{node.name}/slice", (name,))[0]


_LIMITS = (("max_output", np.int64), ("iou_threshold", np.float32), ("score_threshold", np.float32))


def _non_max_suppression(node: Node) -> tuple[Value, ...]:
    """Converts NonMaxSuppression. The operator writes into the largest possible output, from the front; then it is cut.

    Limits up to the last one that the run decides are inputs; those behind it are attributes.
    """
    limits = [node.optional(2 + i) for i in range(len(_LIMITS))]
    behind = max((i + 1 for i, v in enumerate(limits) if isinstance(v, Var)), default=0)
    inputs = [np.zeros((), dtype) if v is None else v for v, (_, dtype) in zip(limits[:behind], _LIMITS, strict=False)]
    attrs = {name: node.number(2 + i, name) for i, (name, _) in _constant_limits(limits, behind)}
    attrs["center_point_box"] = node.attr("center_point_box", 0)
    name = f"{node.name}/non_max_suppression"
    operands = (node.value(0), node.value(1), *inputs)
    rows, number = node.builder.emit("non_max_suppression", operands, attrs, name, ("", ""))
    count = node.count(number, numbers_to(rows.shape[0], turn=node.variant), (0, "boxes"), (1, "scores"))
    return (_front(node, rows, count, 0, node.outputs[0]),)


def _constant_limits(limits: Sequence[Value | None], behind: int) -> list[tuple[int, tuple[str, Any]]]:
    return [(i, limit) for i, limit in enumerate(_LIMITS) if i >= behind and limits[i] is not None]


def _eye_like(node: Node) -> tuple[Value, ...]:
    code = node.attr("dtype")
    dtype = None if code is None else dtype_of(code, f"the output of {node}")
    return node.last("eye_like", node.value(0), dtype=dtype, k=node.attr("k", 0))


def _tensor_scatter(node: Node) -> tuple[Value, ...]:
    cache, update, *places = node.operands()
    starts = places[0] if places else node.step("expand", np.zeros((), np.int64), shape=cache.shape[:1])
    circular = node.attr("mode", "linear") == "circular"
    return node.last("tensor_scatter", cache, update, starts, axis=node.attr("axis", -2), circular=circular)


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Gather": ((1, direct("gather", axis=0)),),
        "GatherElements": ((11, direct("gather_elements", axis=0)),),
        "GatherND": ((11, direct("gather_nd", batch_dims=0)),),
        "Scatter": ((9, direct("scatter_elements", axis=0)), (11, None)),
        "ScatterElements": ((11, direct("scatter_elements", axis=0, reduction="none")),),
        "ScatterND": ((11, direct("scatter_nd", reduction="none")),),
        "TensorScatter": ((24, _tensor_scatter),),
        "TopK": ((1, _top_k_attribute), (10, _top_k_input)),
        "OneHot": ((9, _one_hot),),
        "CumSum": ((11, partial(_running, "cum_sum")),),
        "CumProd": ((26, partial(_running, "cum_prod")),),
        "Trilu": ((14, _trilu),),
        "EyeLike": ((9, _eye_like),),
        "Compress": ((9, _compress),),
        "Unique": ((11, _unique),),
        "NonMaxSuppression": ((10, _non_max_suppression),),
        "ReverseSequence": ((10, direct("reverse_sequence", time_axis=0, batch_axis=1)),),
    }
)
