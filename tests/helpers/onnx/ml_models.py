"""Models of one operator of `ai.onnx.ml`, and pipelines of scikit-learn as models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ops.tensor.spec import Array

LABEL_AND_SCORES = ("label", "scores")


def ml_model(
    op_type: str,
    arrays: Sequence[Array],
    outputs: Sequence[str] = ("y",),
    *,
    version: int = 3,
    dims: Mapping[int, Sequence[Any]] | None = None,
    **attrs: Any,
) -> tuple[Any, dict[str, Array]]:
    """Returns a model of one node, and its feeds. Attributes that are arrays become tensors."""
    names = [f"i{k}" for k in range(len(arrays))]
    attributes = {k: numpy_helper.from_array(v, k) if isinstance(v, np.ndarray) else v for k, v in attrs.items()}
    node = helper.make_node(op_type, names, list(outputs), domain="ai.onnx.ml", **attributes)
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(a.dtype), list((dims or {}).get(k, a.shape))
        )
        for k, (name, a) in enumerate(zip(names, arrays, strict=True))
    ]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=o) for o in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), dict(zip(names, arrays, strict=True))
