"""The single-operator cases of the onnx package, and which of them are out of scope and why."""

import functools
import warnings
from collections.abc import Iterator
from typing import Any

from onnx import TensorProto
from onnx.backend.test.loader import load_model_tests

from engine.api import compile_graph
from engine.onnx.input_layouts import tensor_type
from engine.onnx_backend import Backend, import_fixed, named_feeds, outputs_of
from tools.list_operators import check_outputs

_SCOPE = frozenset(
    (
        "FLOAT16",
        "FLOAT",
        "DOUBLE",
        "INT8",
        "INT16",
        "INT32",
        "INT64",
        "UINT8",
        "UINT16",
        "UINT32",
        "UINT64",
        "BOOL",
        "BFLOAT16",
        "FLOAT8E4M3FN",
        "FLOAT8E4M3FNUZ",
        "FLOAT8E5M2",
        "FLOAT8E5M2FNUZ",
        "FLOAT8E8M0",
        "FLOAT4E2M1",
        "INT4",
        "UINT4",
        "INT2",
        "UINT2",
    )
)
_TEXT = "strings are out of scope"
_FILLERS = ("ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample")
_PICKERS = ("Compress", "NonMaxSuppression", "NonZero", "Slice", "Split", "TopK", "Unique")
_DECIDED = frozenset((*_FILLERS, *_PICKERS, "Reshape", "Squeeze", "Unsqueeze"))
"""Operators with inputs that may decide a shape."""
NOT_THERE = {
    **dict.fromkeys(("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer"), _TEXT),
    "ImageDecoder": "files of images are out of scope",
}
_DOMAINS = frozenset(("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview"))


@functools.cache
def node_cases() -> tuple[Any, ...]:
    """Returns all cases; making them costs some seconds and warns of its own arithmetic."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind="node"))


def run_case(case: Any) -> None:
    """Runs a case and compares as onnx's runner does. Raises AssertionError, or what the engine raises."""
    prepared = Backend.prepare(case.model)
    for inputs, outputs in case.data_sets:
        check_outputs(case, outputs, prepared.run(inputs))


def run_fixed(case: Any) -> None:
    """Runs the same with inputs that decide shapes fixed to what is fed, so that all is known beforehand."""
    for inputs, outputs in case.data_sets:
        feeds = named_feeds(case.model, inputs)
        graph = import_fixed(case.model, feeds)
        results = compile_graph(graph, optimise=0).run({name: feeds[name] for name in graph.inputs})
        check_outputs(case, outputs, outputs_of(case.model, results))


def decides_shapes(case: Any) -> bool:
    """Returns whether an input may decide a shape."""
    return bool(_DECIDED & {node.op_type for node in case.model.graph.node})


def out_of_scope(case: Any) -> str:
    """Returns why a case is not for us; empty where it is."""
    for reason in _reasons(case):
        return reason
    return ""


def _reasons(case: Any) -> Iterator[str]:
    graph = case.model.graph
    for node in graph.node:
        if node.domain not in _DOMAINS:
            yield f"operators of {node.domain} are out of scope"
        if node.op_type in NOT_THERE:
            yield NOT_THERE[node.op_type]
    for info in (*graph.input, *graph.output):
        name = TensorProto.DataType.Name(tensor_type(info.type)[0].tensor_type.elem_type)
        if name not in _SCOPE:
            yield f"element type {name.lower()} is out of scope"
    if any(entry.domain == "" and entry.version < 7 for entry in case.model.opset_import):
        yield "operator sets before version 7 are out of scope"
