"""The form of each operator with channels last: (N, spatial..., C) in place of (N, C, spatial...)."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from engine.passes.fold.affine import affine
from engine.passes.layout.movement_rules import MOVEMENT_RULES
from engine.passes.layout.nhwc_form import NhwcForm, Rule, has_channels, is_image, nhwc_perm
from ops.common.epilogue import RESIDUAL
from ops.convolution.conv import CONV
from ops.convolution.fused import FUSED_CONV
from ops.convolution.nhwc import NHWC_CONV
from ops.convolution.nhwc_transpose import NHWC_CONV_TRANSPOSE
from ops.convolution.transpose import CONV_TRANSPOSE
from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.norm.batch_norm import BATCH_NORM
from ops.norm.lrn import LRN
from ops.norm.nhwc_lrn import NHWC_LRN
from ops.pool.global_pooling import GLOBAL_AVERAGE_POOL, GLOBAL_MAX_POOL
from ops.pool.nhwc import NHWC_AVERAGE_POOL, NHWC_MAX_POOL
from ops.pool.pool import AVERAGE_POOL, MAX_POOL
from ops.schema.schema import OpSchema

_WIDE = frozenset(map(np.dtype, ("float32", "float64")))
_INDEX_ATTRIBUTES = frozenset({"storage_order", "with_indices"})


def nhwc_form(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form of an operator with channels last, or None where it has none.

    An operator that updates a parameter or reads overwritten state has none.
    """
    if not edit.updated.isdisjoint(operator.outputs) or any(map(edit.is_overwritten_state, operator.inputs)):
        return None
    rule = RULES.get(operator.schema, _elementwise if operator.schema.elementwise else None)
    return rule(edit, operator, spatial) if rule is not None else None


def _operand(edit: Edit, var: Var, ndim: int, spatial: int) -> Var:
    """Returns a constant that broadcasts to `ndim` axes, with channels last and without leading axes of length 1."""
    array = edit.constants[var]
    if array.size == 1:
        return var if array.ndim == 0 else edit.constant(array.reshape(()), edit.name(var))
    whole = array.reshape((1,) * (ndim - array.ndim) + array.shape).transpose(nhwc_perm(ndim, spatial))
    lead = next(i for i, n in enumerate(whole.shape) if n != 1)
    return edit.constant(np.ascontiguousarray(whole.reshape(whole.shape[lead:])), edit.name(var))


def _elementwise(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form f(nhwc(x), ...) where each input has all axes, is constant, or is one number."""
    (y,) = operator.outputs
    reads = tuple(i for i, v in enumerate(operator.inputs) if v.ndim == y.ndim and v not in edit.constants)
    rest = [v for i, v in enumerate(operator.inputs) if i not in reads]
    if not has_channels(y, spatial) or not reads or any(v.ndim and v not in edit.constants for v in rest):
        return None

    def build(inputs: Sequence[Var]) -> tuple[Var, ...]:
        operands = [_operand(edit, v, y.ndim, spatial) if v in edit.constants else v for v in inputs]
        return edit.add(operator.schema, operands, operator.attrs)

    return NhwcForm(reads, build)


def _conv(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    if not is_image(operator.inputs[0], spatial) or operator.inputs[0].dtype not in _WIDE:
        return None
    reads = tuple(i for i in (0, RESIDUAL) if i < len(operator.inputs))
    return NhwcForm(reads, lambda inputs: edit.add(NHWC_CONV, inputs, operator.attrs), prefers_nhwc=True)


def _conv_transpose(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    if not is_image(operator.inputs[0], spatial) or operator.inputs[0].dtype not in _WIDE:
        return None
    return NhwcForm((0,), lambda inputs: edit.add(NHWC_CONV_TRANSPOSE, inputs, operator.attrs), prefers_nhwc=True)


def _window(schema: OpSchema) -> Rule:
    """Returns the rule for pooling and normalization: f(x) -> schema(nhwc(x)). float16 is for max pooling only."""

    def rule(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
        x, half = operator.inputs[0], np.dtype("float16")
        if not is_image(x, spatial) or len(operator.outputs) > 1 or (x.dtype == half and schema is not NHWC_MAX_POOL):
            return None
        attrs = {name: value for name, value in operator.attrs.items() if name not in _INDEX_ATTRIBUTES}
        return NhwcForm((0,), lambda inputs: edit.add(schema, inputs, attrs), prefers_nhwc=True)

    return rule


def _global(function: Callable[..., Var]) -> Rule:
    """Returns the rule for global pooling: f(x) -> a reduction of nhwc(x) over the spatial axes."""

    def rule(_: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
        if not is_image(operator.inputs[0], spatial):
            return None
        return NhwcForm(
            (0,), lambda inputs: (function(inputs[0], range(1, 1 + spatial), keepdims=True),), prefers_nhwc=True
        )

    return rule


def _batch_norm(edit: Edit, operator: Operator, spatial: int) -> NhwcForm | None:
    """Returns the form nhwc(x) * factor + shift of a batch normalization with constants, where both are finite."""
    x = operator.inputs[0]
    function = affine(edit, operator, 1) if is_image(x, spatial) and x.dtype in _WIDE else None
    if function is None:
        return None
    with np.errstate(over="ignore"):
        factor, shift = (array.astype(x.dtype) for array in (function.factor, function.shift))
    if not (np.isfinite(factor).all() and np.isfinite(shift).all()):
        return None
    return NhwcForm((0,), lambda inputs: (inputs[0] * edit.constant(factor) + edit.constant(shift),))


RULES: Mapping[OpSchema, Rule] = MappingProxyType(
    {
        CONV: _conv,
        FUSED_CONV: _conv,
        CONV_TRANSPOSE: _conv_transpose,
        MAX_POOL: _window(NHWC_MAX_POOL),
        AVERAGE_POOL: _window(NHWC_AVERAGE_POOL),
        LRN: _window(NHWC_LRN),
        GLOBAL_AVERAGE_POOL: _global(ops.reduce_mean),
        GLOBAL_MAX_POOL: _global(ops.reduce_max),
        BATCH_NORM: _batch_norm,
        FUSED_ELEMENTWISE: _elementwise,
        **MOVEMENT_RULES,
    }
)
"""The rules by schema. All other elementwise operators have the rule `_elementwise`."""
