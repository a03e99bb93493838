"""DequantizeLinear with bfloat16, against the evaluator of onnx."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from ops.tensor.spec import BFLOAT16
from tests.helpers.onnx.small_models import model, node, run_ours, value

TYPES: dict[int, str] = {TensorProto.FLOAT: "float32", TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}


@pytest.mark.parametrize("source", TYPES.values())
@pytest.mark.parametrize("to", [0, *TYPES])
def test_numbers_are_dequantised_to_the_type_that_is_named(source: str, to: int) -> None:
    x, zero = np.arange(-3, 9, dtype=np.int8).reshape(3, 4), np.asarray(2, np.int8)
    scale = np.asarray(0.375, np.float32).astype(BFLOAT16 if source == "bfloat16" else source)
    named: dict[str, Any] = {"output_dtype": to} if to else {}
    proto = model(
        [node("DequantizeLinear", ["x", "s", "z"], **named)],
        [value("x", x.shape, np.int8)],
        initializers={"s": scale, "z": zero},
        opset=23,
    )
    (y,) = run_ours(proto, {"x": x})
    wanted = np.asarray(next(iter(ReferenceEvaluator(proto).run(None, {"x": x}))))
    assert y.dtype == wanted.dtype == (BFLOAT16 if TYPES.get(to, source) == "bfloat16" else TYPES.get(to, source))
    np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))
