"""Fuses a convolution, an addition and an activation into one operator."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.common.epilogue import RESIDUAL
from ops.convolution.conv import CONV
from ops.convolution.fused import FUSED_CONV, pays
from ops.convolution.nhwc import NHWC_CONV
from ops.elementwise.activation import CLIP, LEAKY_RELU, RELU
from ops.elementwise.binary import ADD
from ops.elementwise.variadic import SUM
from ops.tensor.errors import OpError

_PRODUCERS = (CONV, FUSED_CONV, NHWC_CONV)


def fuse_conv(edit: Edit, operator: Operator) -> None:
    """Fuses an addition or an activation into the convolution in front of it.

    1. conv(x, w, b) + t -> fused_conv(x, w, b, t), t of the shape of the result, b = 0 where there is no bias
    2. relu, leaky_relu or clip with constant bounds, of conv(...) -> fused_conv(..., activation)
    The same for nhwc_conv, which has both already. Of two convolutions that are added, the later one is fused.

    The rule does not apply where something else reads the convolution, where it has an activation already, where its
    inputs are overwritten state, for t + t, or where the fused kernel is slower (`ops.convolution.fused.pays`).
    """
    if not edit.is_needed(operator.outputs[0]):
        return
    if operator.schema in (ADD, SUM) and len(operator.inputs) == 2:
        _fuse_addition(edit, operator)
        return
    activation = activation_attributes(edit, operator)
    producer = _producer(edit, operator.inputs[0]) if activation else None
    if producer is not None:
        _fuse(edit, operator, producer, producer.inputs, dict(producer.attrs) | activation)


def _fuse_addition(edit: Edit, operator: Operator) -> None:
    """Fuses an addition into the later of two convolutions, which then overwrites the result of the earlier one."""
    a, b = operator.inputs
    if a is b:  # fused, the convolution would be computed twice
        return
    candidates = [(p, other) for p, other in ((_producer(edit, a), b), (_producer(edit, b), a)) if p is not None]
    if len(candidates) == 2:
        candidates.sort(key=lambda pair: edit.position(pair[0]), reverse=True)
    for producer, other in candidates:
        if len(producer.inputs) <= RESIDUAL and other.spec == operator.outputs[0].spec:
            inputs = (*producer.inputs, *_no_bias(edit, producer), other)
            if _fuse(edit, operator, producer, inputs, producer.attrs):
                return


def _no_bias(edit: Edit, producer: Operator) -> tuple[Var, ...]:
    """Returns a bias of zeros where the convolution has none, else nothing."""
    weights = producer.inputs[1]
    return () if len(producer.inputs) > 2 else (edit.constant(np.zeros(weights.shape[0], weights.dtype)),)


def _producer(edit: Edit, var: Var) -> Operator | None:
    """Returns the convolution that computes a var for one reader, has no activation and may run later; else None."""
    conv = edit.writer(var)
    if conv is None or conv.schema not in _PRODUCERS or edit.sole_reader(var) is None:
        return None
    if conv.attrs.get("activation", "none") != "none" or any(map(edit.is_overwritten_state, conv.inputs)):
        return None
    return conv


def activation_attributes(edit: Edit, operator: Operator) -> dict[str, Any]:
    """Returns an activation as attributes of a fused operator: relu, leaky_relu, clip by constants; else {}."""
    if operator.schema is RELU:
        return {"activation": "clip", "low": 0.0}
    if operator.schema is LEAKY_RELU:
        return {"activation": "leaky_relu", "slope": operator.attrs["alpha"]}
    if operator.schema is CLIP:
        bounds = [edit.uniform_value(v) for v in operator.inputs[1:]]
        if all(b is not None and not math.isnan(b) for b in bounds):
            return {"activation": "clip", "low": bounds[0], "high": bounds[1]}
    return {}


def _fuse(
    edit: Edit, operator: Operator, producer: Operator, inputs: tuple[Var, ...], attrs: Mapping[str, Any]
) -> bool:
    schema = NHWC_CONV if producer.schema is NHWC_CONV else FUSED_CONV
    try:
        signature = edit.sign(schema, inputs, attrs)
    except OpError:  # the fused operators do not take float16
        return False
    if schema is FUSED_CONV and not pays(edit.estimated(signature)):
        return False
    edit.replace(operator.outputs[0], edit.add_signed(schema, inputs, signature)[0])
    return True


FUSE_CONV = RulePass("convolutions fused", fuse_conv)
