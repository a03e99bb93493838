"""Additions of codes taken into the convolution in front of them: its codes are never written."""

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
    """Takes an addition into the later of the convolutions that it alone reads."""
    if operator.schema is not QUANTISED_ADD or not edit.is_needed(operator.outputs[0]):
        return
    found = [(p, n) for n, v in zip("ab", operator.inputs, strict=True) if (p := _producer(edit, v)) is not None]
    if not found or operator.inputs[0].shape != operator.inputs[1].shape:
        return
    producer, name = max(found, key=lambda pair: edit.place(pair[0]))
    edit.replace(operator.outputs[0], _fused(edit, operator, producer, name))


def _producer(edit: Edit, var: Var) -> Operator | None:
    """The convolution that computes codes of uint8, all of them, for one reader alone, and may run later."""
    found = edit.writer(var)
    if found is None or found.schema is not NHWC_QUANTISED_CONV or edit.sole_reader(var) is None:
        return None
    whole = var.dtype == np.dtype("uint8") and bounds(found.attrs) == ends(var.dtype)
    free = len(found.inputs) <= RESIDUAL and not any(map(edit.is_old_state, found.inputs))
    return found if whole and free else None


def _fused(edit: Edit, addition: Operator, producer: Operator, name: str) -> Var:
    """The sum, computed by the convolution that gives its operand `name`."""
    other, attrs = "ba"["ab".index(name)], addition.attrs
    added = {
        "own_zero": producer.attrs["y_zero"],
        "own_factor": attrs[f"{name}_factor"],
        "residual_zero": attrs[f"{other}_zero"],
        "residual_factor": attrs[f"{other}_factor"],
    }
    given = {n: attrs[n] for n in ("to", "y_zero", "low", "high")}
    inputs = (*producer.inputs, addition.inputs["ab".index(other)])
    return edit.add(NHWC_QUANTISED_CONV, inputs, {**producer.attrs, **added, **given})[0]


FUSE_QUANTISED = RulePass("quantised additions fused", fuse_quantised)
