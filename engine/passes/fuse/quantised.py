"""Fuses an addition of quantised tensors into the quantised convolution in front of it."""

import numpy as np

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from ops.quantised.nhwc_conv import NHWC_QUANTISED_CONV
from ops.quantised.nhwc_shapes import RESIDUAL
from ops.quantised.params import ends
from ops.quantised.sum import QUANTISED_ADD, bounds


def fuse_quantised(edit: Edit, operator: Operator) -> None:
    """Fuses an addition of quantised tensors into the later of the convolutions that it reads.

    quantised_add(nhwc_quantised_conv(x, w), t) -> nhwc_quantised_conv(x, w, residual=t), both of one shape

    The rule does not apply where something else reads the convolution, where its result is not uint8 or is clipped to
    less than all of uint8, where it has a residual already, or where its inputs are overwritten state.
    """
    if operator.schema is not QUANTISED_ADD or not edit.is_needed(operator.outputs[0]):
        return
    operands = zip("ab", operator.inputs, strict=True)
    candidates = [(p, n) for n, v in operands if (p := _producer(edit, v)) is not None]
    if not candidates or operator.inputs[0].shape != operator.inputs[1].shape:
        return
    producer, name = max(candidates, key=lambda pair: edit.position(pair[0]))
    edit.replace(operator.outputs[0], _fused(edit, operator, producer, name))


def _producer(edit: Edit, var: Var) -> Operator | None:
    """Returns the convolution that computes a var, if the addition may be fused into it; else None."""
    conv = edit.writer(var)
    if conv is None or conv.schema is not NHWC_QUANTISED_CONV or edit.sole_reader(var) is None:
        return None
    unclipped = var.dtype == np.dtype("uint8") and bounds(conv.attrs) == ends(var.dtype)
    free = len(conv.inputs) <= RESIDUAL and not any(map(edit.is_overwritten_state, conv.inputs))
    return conv if unclipped and free else None


def _fused(edit: Edit, addition: Operator, producer: Operator, name: str) -> Var:
    """Returns the sum, computed by the convolution that is its operand `name`, "a" or "b"."""
    other, attrs = "ba"["ab".index(name)], addition.attrs
    added = {
        "own_zero": producer.attrs["y_zero"],
        "own_factor": attrs[f"{name}_factor"],
        "residual_zero": attrs[f"{other}_zero"],
        "residual_factor": attrs[f"{other}_factor"],
    }
    target = {n: attrs[n] for n in ("to", "y_zero", "low", "high")}
    inputs = (*producer.inputs, addition.inputs["ab".index(other)])
    return edit.add(NHWC_QUANTISED_CONV, inputs, {**producer.attrs, **added, **target})[0]


FUSE_QUANTISED = RulePass("quantised additions fused", fuse_quantised)
