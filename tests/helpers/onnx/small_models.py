"""Small ONNX models for tests, and what onnxruntime makes of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from engine.api import compile_graph
from engine.onnx.load import load_onnx
from ops.tensor.spec import Array

Dims = Sequence[int | str | None]


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str] = ("y",), **attrs: Any) -> Any:
    return helper.make_node(op_type, list(inputs), list(outputs), **attrs)


def value(name: str, dims: Dims | None, dtype: Any = np.float32) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    initializers: Mapping[str, Any] | None = None,
    opset: int = 17,
    **options: Any,
) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (initializers or {}).items()]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", list(inputs), results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **options)


def run_ours(proto: Any, feeds: Mapping[str, Array]) -> list[Array]:
    return list(compile_graph(load_onnx(proto), optimise=0).run(dict(feeds)).values())


def run_onnxruntime(proto: Any, feeds: Mapping[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return list(onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, dict(feeds)))
