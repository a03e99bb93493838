"""Every single-operator case of the onnx package for convolution, pooling, normalization and resizing."""

import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from onnx import helper

from ops.convolution.conv import CONV
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.norm.batch_norm import BATCH_NORM
from ops.norm.lrn import LRN
from ops.norm.norm import GROUP_NORM, INSTANCE_NORM, LAYER_NORM, RMS_NORM
from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL, GLOBAL_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, LP_POOL, MAX_POOL
from ops.schema.schema import OpSchema
from ops.spatial.depth_to_space import DEPTH_TO_SPACE, SPACE_TO_DEPTH
from ops.spatial.resize import RESIZE
from ops.tensor.spec import Array
from tests.helpers.ops.kernel_checks import check_overwrites, check_results

SCHEMAS = {
    "Conv": CONV,
    "ConvTranspose": CONV_TRANSPOSE,
    "MaxPool": MAX_POOL,
    "AveragePool": AVERAGE_POOL,
    "LpPool": LP_POOL,
    "GlobalAveragePool": GLOBAL_AVERAGE_POOL,
    "GlobalMaxPool": GLOBAL_MAX_POOL,
    "BatchNormalization": BATCH_NORM,
    "LayerNormalization": LAYER_NORM,
    "RMSNormalization": RMS_NORM,
    "InstanceNormalization": INSTANCE_NORM,
    "GroupNormalization": GROUP_NORM,
    "LRN": LRN,
    "DepthToSpace": DEPTH_TO_SPACE,
    "SpaceToDepth": SPACE_TO_DEPTH,
    "Resize": RESIZE,
}
MODULES = (
    *("averagepool", "batch_normalization", "conv", "convtranspose", "depthtospace", "globalaveragepool"),
    *("globalmaxpool", "groupnormalization", "instance_normalization", "layernormalization", "lppool", "lrn"),
    *("maxpool", "resize", "rmsnormalization", "spacetodepth"),
)
LEAST_CASES = 140


def _resize_scales(x: Array, shape: tuple[int, ...], factors: Iterable[float], attrs: dict[str, Any]) -> None:
    """Sets the scales of all axes: those that the case has, else the ratio that its policy keeps."""
    axes = [a % x.ndim for a in attrs.pop("axes", range(x.ndim))]
    policy, sizes = attrs.pop("keep_aspect_ratio_policy", b"stretch"), attrs.pop("given_sizes", None)
    roi = attrs.pop("roi", [])
    if len(roi):
        starts, ends = dict.fromkeys(range(x.ndim), 0.0), dict.fromkeys(range(x.ndim), 1.0)
        for i, axis in enumerate(axes):
            starts[axis], ends[axis] = roi[i], roi[i + len(axes)]
        attrs["roi"] = [*starts.values(), *ends.values()]
    if len(factors := list(factors)):
        scales = dict(zip(axes, factors, strict=True))
    elif policy != b"stretch" and sizes is not None:
        ratios = [s / x.shape[a] for a, s in zip(axes, sizes, strict=True)]
        scales = dict.fromkeys(axes, (min if policy == b"not_larger" else max)(ratios))
    else:
        scales = {a: shape[a] / x.shape[a] for a in axes}
    attrs["scales"] = [scales.get(a, 1.0) for a in range(x.ndim)]


def _translate(node: Any, inputs: list[Any], outputs: list[Array]) -> tuple[list[Array], list[Array], dict[str, Any]]:
    attrs: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Resize":
        named: dict[str, Any] = dict(zip(filter(None, node.input), inputs, strict=True))
        roi, scales, sizes = (list(named.get(name, ())) for name in (*node.input[1:], "", "", "")[:3])
        attrs |= {"roi": roi, "given_sizes": sizes or None}
        _resize_scales(inputs[0], outputs[0].shape, scales, attrs)
        attrs["sizes"], inputs = outputs[0].shape, inputs[:1]
    for name in ("momentum", "spatial", "stash_type", "training_mode"):
        attrs.pop(name, None)
    if node.op_type == "LayerNormalization" and len(outputs) > 1:
        attrs["with_stats"] = True
    if node.op_type == "MaxPool" and len(outputs) > 1:
        attrs["with_indices"] = True
    return inputs, outputs, {k: v.decode() if isinstance(v, bytes) else v for k, v in attrs.items()}


def _fits(case: Any) -> bool:
    nodes = case.model.graph.node
    if len(nodes) != 1 or nodes[0].op_type not in SCHEMAS:
        return False
    return not any(a.name == "training_mode" and a.i for a in nodes[0].attribute)


def _cases() -> list[Any]:
    home = "onnx.backend.test.case.node"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in MODULES:
            import_module(f"{home}.{module}")
        return [c for c in import_module(home)._NodeTestCases if _fits(c)]


CASES = _cases()


def test_there_are_as_many_cases_as_the_package_has() -> None:
    assert len(CASES) >= LEAST_CASES


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_case_of_the_onnx_package_passes(case: Any) -> None:
    node = case.model.graph.node[0]
    for inputs, outputs in case.data_sets:
        operands, wanted, attrs = _translate(node, list(inputs), list(outputs))
        schema: OpSchema = SCHEMAS[node.op_type]
        run: Callable[..., None] = check_results
        run(schema, operands, [np.asarray(w) for w in wanted], rtol=case.rtol, atol=max(case.atol, 1e-6), **attrs)
        with np.errstate(all="ignore"):
            check_overwrites(schema, operands, **attrs)
