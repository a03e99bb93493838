"""One node run by onnxruntime: an answer that was computed independently."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import ValueInfoProto, helper

from ops.tensor.spec import Array


def onnxruntime_node(
    op_type: str, arrays: Sequence[Array | None], outputs: int = 1, opset: int = 19, **attrs: Any
) -> Any:
    """Returns the outputs of one node. Raises what onnxruntime raises."""
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(arrays)]
    results = [f"o{k}" for k in range(outputs)]
    node = helper.make_node(op_type, names, results, **attrs)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
        if a is not None
    ]
    output_infos = [ValueInfoProto(name=r) for r in results]
    graph = helper.make_graph([node], "one", inputs, output_infos)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {n: a for n, a in zip(names, arrays, strict=True) if n})


def onnxruntime_resize(x: Array, sizes: Sequence[int], **attrs: Any) -> Array:
    """Returns the output of Resize to `sizes`."""
    (y,) = onnxruntime_node("Resize", [x, None, None, np.array(sizes, np.int64)], **attrs)
    return np.asarray(y)
