"""Converters of reductions, of positions of extremes, and of softmax and norms along an axis."""

import math
from collections.abc import Mapping
from types import MappingProxyType

from engine.onnx.model_names import Value
from engine.onnx.node import Converter, Node, direct
from ops.symbolic.guesses import choices
from ops.tensor.spec import normalize_axis

_REDUCTIONS = {
    "ReduceMean": "reduce_mean",
    "ReduceMax": "reduce_max",
    "ReduceMin": "reduce_min",
    "ReduceProd": "reduce_prod",
    "ReduceL1": "reduce_l1",
    "ReduceL2": "reduce_l2",
    "ReduceLogSum": "reduce_log_sum",
    "ReduceLogSumExp": "reduce_log_sum_exp",
    "ReduceSumSquare": "reduce_sum_square",
}


def _by_attribute(schema: str) -> Converter:
    """Returns the converter of a reduction whose axes are an attribute."""

    def convert(node: Node) -> tuple[Value, ...]:
        return node.last(schema, node.value(0), axes=node.attr("axes") or None, keepdims=node.attr("keepdims", 1))

    return convert


def _by_input(schema: str) -> Converter:
    """Returns the converter of a reduction whose axes are an input, which may be empty on purpose."""

    def convert(node: Node) -> tuple[Value, ...]:
        x = node.value(0)
        axes = node.optional_integers(1, "axes", lambda size: choices(size, len(x.shape)))
        if not axes:
            axes = () if node.attr("noop_with_empty_axes", 0) else None
        return node.last(schema, x, axes=axes, keepdims=node.attr("keepdims", 1))

    return convert


def _flattened(schema: str) -> Converter:
    """Returns the converter of a softmax before opset 13, of the tensor as a matrix whose columns begin at `axis`."""

    def convert(node: Node) -> tuple[Value, ...]:
        x = node.value(0)
        axis = normalize_axis(node.attr("axis", 1), len(x.shape))
        matrix = node.step("reshape", x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
        return node.last("reshape", node.step(schema, matrix, axis=1), shape=x.shape)

    return convert


def _lp_normalization(node: Node) -> tuple[Value, ...]:
    """Converts LpNormalization: x divided by its norm along an axis, or by 1 where the norm, and so x, is 0."""
    x, axis = node.value(0), node.attr("axis", -1)
    schema = "reduce_l1" if node.attr("p", 2) == 1 else "reduce_l2"
    norm = node.step(schema, x, axes=(axis,), keepdims=True)
    empty = node.step("equal", norm, node.like(0, norm))
    return node.last("div", x, node.step("add", norm, node.step("cast", empty, to=x.dtype)))


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        **{op: ((1, _by_attribute(name)), (18, _by_input(name))) for op, name in _REDUCTIONS.items()},
        "ReduceSum": ((1, _by_attribute("reduce_sum")), (13, _by_input("reduce_sum"))),
        "ArgMax": ((1, direct("arg_max", axis=0, keepdims=1, select_last_index=0)),),
        "ArgMin": ((1, direct("arg_min", axis=0, keepdims=1, select_last_index=0)),),
        "Softmax": ((1, _flattened("softmax")), (13, direct("softmax", axis=-1))),
        "LogSoftmax": ((1, _flattened("log_softmax")), (13, direct("log_softmax", axis=-1))),
        "Hardmax": ((1, _flattened("hardmax")), (13, direct("hardmax", axis=-1))),
        "LpNormalization": ((1, _lp_normalization),),
    }
)
