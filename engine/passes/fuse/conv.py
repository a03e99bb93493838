"""Convolution, an addition and an activation as one operator, wherever its kernel is at least as fast as the three."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.convolution.conv import CONV
from ops.convolution.fused import FUSED_CONV, RESIDUAL, pays
from ops.convolution.nhwc import NHWC_CONV
from ops.elementwise.activation import CLIP, LEAKY_RELU, RELU
from ops.elementwise.binary import ADD
from ops.elementwise.variadic import SUM
from ops.tensor.errors import OpError

_PRODUCERS = (CONV, FUSED_CONV, NHWC_CONV)


def fuse_conv(edit: Edit, operator: Operator) -> None:
    """Takes an addition or an activation into the convolution that it alone reads."""
    if not edit.is_needed(operator.outputs[0]):
        return
    if operator.schema in (ADD, SUM) and len(operator.inputs) == 2:
        _fuse_addition(edit, operator)
        return
    found = _activation(edit, operator)
    producer = _producer(edit, operator.inputs[0]) if found else None
    if producer is not None:
        _fuse(edit, operator, producer, producer.inputs, dict(producer.attrs) | found)


def _fuse_addition(edit: Edit, operator: Operator) -> None:
    """Into the later of two convolutions, if one can: what the earlier one gives is then written over."""
    a, b = operator.inputs
    if a is b:  # added to itself it would be computed twice
        return
    found = [(p, other) for p, other in ((_producer(edit, a), b), (_producer(edit, b), a)) if p is not None]
    if len(found) == 2:
        found.sort(key=lambda pair: edit.place(pair[0]), reverse=True)
    for producer, other in found:
        if len(producer.inputs) <= RESIDUAL and other.spec == operator.outputs[0].spec:
            inputs = (*producer.inputs, *_no_bias(edit, producer), other)
            if _fuse(edit, operator, producer, inputs, producer.attrs):
                return


def _no_bias(edit: Edit, producer: Operator) -> tuple[Var, ...]:
    """A bias of zeros where there is none."""
    weights = producer.inputs[1]
    return () if len(producer.inputs) > 2 else (edit.constant(np.zeros(weights.shape[0], weights.dtype)),)


def _producer(edit: Edit, var: Var) -> Operator | None:
    """The convolution that computes a var for one reader alone, has no activation yet and may run later."""
    found = edit.writer(var)
    if found is None or found.schema not in _PRODUCERS or edit.sole_reader(var) is None:
        return None
    open_still = found.attrs.get("activation", "none") == "none" and not any(map(edit.is_old_state, found.inputs))
    return found if open_still else None


def _activation(edit: Edit, operator: Operator) -> dict[str, Any]:
    """The activation as attributes of a fused convolution; nothing where it is none, or none that is known."""
    if operator.schema is RELU:
        return {"activation": "clip", "low": 0.0}
    if operator.schema is LEAKY_RELU:
        return {"activation": "leaky_relu", "slope": operator.attrs["alpha"]}
    if operator.schema is CLIP:
        bounds = [edit.number(v) for v in operator.inputs[1:]]
        if all(b is not None and not math.isnan(b) for b in bounds):
            return {"activation": "clip", "low": bounds[0], "high": bounds[1]}
    return {}


def _fuse(
    edit: Edit, operator: Operator, producer: Operator, inputs: tuple[Var, ...], attrs: Mapping[str, Any]
) -> bool:
    schema = NHWC_CONV if producer.schema is NHWC_CONV else FUSED_CONV
    constants = frozenset(i for i, v in enumerate(inputs) if v in edit.constants)
    try:
        signature = schema.sign([v.spec for v in inputs], attrs, constants)
    except OpError:  # float16
        return False
    if schema is FUSED_CONV and not pays(signature):
        return False
    edit.replace(operator.outputs[0], edit.add(schema, inputs, attrs)[0])
    return True


FUSE_CONV = RulePass("convolutions fused", fuse_conv)
