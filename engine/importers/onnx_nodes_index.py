"""Converters of operators that pick, place, sort or accumulate elements by position."""

from collections.abc import Mapping
from types import MappingProxyType

from engine.importers.onnx_node import Converter, Node, direct
from engine.importers.onnx_tensors import dtype_of
from engine.importers.onnx_values import Value


def _top_k_attribute(node: Node) -> tuple[Value, ...]:
    return node.last("top_k", node.value(0), k=node.attr("k"), axis=node.attr("axis", -1))


def _top_k_input(node: Node) -> tuple[Value, ...]:
    options = {"axis": node.attr("axis", -1), "largest": node.attr("largest", 1), "sorted": node.attr("sorted", 1)}
    return node.last("top_k", node.value(0), k=node.integer(1, "K"), **options)


def _one_hot(node: Node) -> tuple[Value, ...]:
    depth = node.integer(1, "depth")
    return node.last("one_hot", node.value(0), node.value(2), depth=int(depth), axis=node.attr("axis", -1))


def _cum_sum(node: Node) -> tuple[Value, ...]:
    axis = node.integer(1, "axis")
    return node.last(
        "cum_sum",
        node.value(0),
        axis=axis,
        exclusive=node.attr("exclusive", 0),
        reverse=node.attr("reverse", 0),
    )


def _trilu(node: Node) -> tuple[Value, ...]:
    k = 0 if node.optional(1) is None else node.integer(1, "k")
    return node.last("trilu", node.value(0), upper=node.attr("upper", 1), k=k)


def _eye_like(node: Node) -> tuple[Value, ...]:
    code = node.attr("dtype")
    dtype = None if code is None else dtype_of(code, f"the output of {node}")
    return node.last("eye_like", node.value(0), dtype=dtype, k=node.attr("k", 0))


CONVERTERS: Mapping[str, tuple[tuple[int, Converter | None], ...]] = MappingProxyType(
    {
        "Gather": ((1, direct("gather", axis=0)),),
        "GatherElements": ((11, direct("gather_elements", axis=0)),),
        "GatherND": ((11, direct("gather_nd", batch_dims=0)),),
        "Scatter": ((9, direct("scatter_elements", axis=0)), (11, None)),
        "ScatterElements": ((11, direct("scatter_elements", axis=0, reduction="none")),),
        "ScatterND": ((11, direct("scatter_nd", reduction="none")),),
        "TopK": ((1, _top_k_attribute), (10, _top_k_input)),
        "OneHot": ((9, _one_hot),),
        "CumSum": ((11, _cum_sum),),
        "Trilu": ((14, _trilu),),
        "EyeLike": ((9, _eye_like),),
        "ReverseSequence": ((10, direct("reverse_sequence", time_axis=0, batch_axis=1)),),
    }
)
