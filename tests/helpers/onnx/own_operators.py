"""Models that call operators of other domains, and files of Python that register them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ops.schema.attributes import Attribute, number
from ops.schema.schema import Binding, Kernel, OpSchema, Thunk
from tests.helpers.onnx.small_models import model, node, value

DOMAIN = "acme"
SCALE_FILE = """
import numpy as np

import engine
from ops.schema.attributes import Attribute, number
from ops.schema.schema import Binding, Kernel, OpSchema


def bind(call: Binding):
    x, y, factor = call.x, call.y, np.asarray(call.attrs["factor"], call.x.dtype)
    return lambda: np.multiply(x, factor, out=y)


SCALE = OpSchema("scale", lambda inputs, _: inputs, (Kernel("numpy", bind),), attributes=(Attribute("factor", number),))
engine.register_operator("acme", "Scale", SCALE)
"""
"""A file for --ops."""


def _bind_scale(call: Binding) -> Thunk:
    x, y, factor = call.x, call.y, np.asarray(call.attrs["factor"], call.x.dtype)
    return lambda: np.multiply(x, factor, out=y)


def scale_schema() -> OpSchema:
    """Returns an operator that multiplies by its attribute `factor`."""
    return OpSchema(
        "scale", lambda inputs, _: inputs, (Kernel("numpy", _bind_scale),), attributes=(Attribute("factor", number),)
    )


def foreign_model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    infos: Sequence[Any] = (),
    outputs: Sequence[str] = ("y",),
    **options: Any,
) -> Any:
    """Returns a model that may call operators of some other domains; `infos` declares tensors."""
    proto = model(nodes, inputs, outputs, **options)
    proto.opset_import.extend(helper.make_opsetid(domain, 1) for domain in (DOMAIN, "com.example.gpu"))
    proto.graph.value_info.extend(infos)
    return proto


def scale_model(domain: str = DOMAIN, dims: Sequence[int | str] = (4, 8)) -> Any:
    """Returns relu(Scale(x, factor=3))."""
    nodes = [node("Scale", ["x"], ["s"], domain=domain, factor=3.0, name="scaled"), node("Relu", ["s"])]
    return foreign_model(nodes, [value("x", dims)])


def save(proto: Any, folder: Path, name: str = "model.onnx") -> str:
    """Writes a model, and returns its path."""
    onnx.save(proto, folder / name)
    return str(folder / name)
