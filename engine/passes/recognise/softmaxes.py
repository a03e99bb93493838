"""Softmax and its logarithm recognised from exponentials and sums.

The operators subtract the maximum from the exponents. So a formula without that, which gives NaN for large numbers,
gives the softmax instead.
"""

from collections.abc import Iterator

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.recognise.formulas import is_replaceable, pairs, quotients, writers
from ops.common.fold import reduced_axes
from ops.elementwise.binary import DIV, MUL, SUB
from ops.elementwise.unary import EXP, LOG
from ops.reduce.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM
from ops.reduce.softmax import SOFTMAX
from ops.schema.schema import OpSchema


def recognise(edit: Edit, operator: Operator) -> None:
    """Replaces the formula of a softmax, or of its logarithm, by one operator.

    1. exp(x) / sum(exp(x)) -> softmax(x)
    2. x - log(sum(exp(x))), x - log_sum_exp(x), log(softmax(x)) -> log_softmax(x)
    The same where x is y - max(y): then the result is that of y.

    The sums are over one axis, with keepdims. The rule does not apply where something else reads a value inside the
    formula, or where x is overwritten state.
    """
    (result,) = operator.outputs[:1]
    if operator.schema in (DIV, MUL):
        matches, make = _softmaxes(edit, result), ops.softmax
    elif operator.schema in (SUB, LOG):
        matches, make = _log_softmaxes(edit, result), ops.log_softmax
    else:
        return
    for x, axis in matches:
        if x.spec == result.spec and is_replaceable(edit, result, (x,)):
            edit.replace(result, make(x, axis=axis))
            return


def _softmaxes(edit: Edit, result: Var) -> Iterator[tuple[Var, int]]:
    """Yields (x, axis) where the var is exp(x) / sum(exp(x))."""
    for above, below in quotients(edit, result):
        for power, axis in _reductions(edit, below, REDUCE_SUM):
            for exp in writers(edit, above, EXP) if power is above else ():
                yield from _unshifted(edit, exp.inputs[0], axis)


def _log_softmaxes(edit: Edit, result: Var) -> Iterator[tuple[Var, int]]:
    """Yields (x, axis) where the var is log(softmax(x)), or x - log(sum(exp(x)))."""
    for log in writers(edit, result, LOG):
        for softmax in writers(edit, log.inputs[0], SOFTMAX):
            yield softmax.inputs[0], softmax.attrs["axis"]
    for x, shift in pairs(edit, result, SUB):
        for y, axis in _log_sums(edit, shift):
            if y is x:
                yield from _unshifted(edit, x, axis)


def _log_sums(edit: Edit, var: Var) -> Iterator[tuple[Var, int]]:
    """Yields (x, axis) where the var is log(sum(exp(x)))."""
    yield from _reductions(edit, var, REDUCE_LOG_SUM_EXP)
    for log in writers(edit, var, LOG):
        for power, axis in _reductions(edit, log.inputs[0], REDUCE_SUM):
            for exp in writers(edit, power, EXP):
                yield exp.inputs[0], axis


def _unshifted(edit: Edit, var: Var, axis: int) -> Iterator[tuple[Var, int]]:
    """Yields x where var = x - max(x) along the axis, which a softmax computes itself; then the var."""
    for x, shift in pairs(edit, var, SUB):
        for highest in writers(edit, shift, REDUCE_MAX):
            if highest.attrs["keepdims"] and axis in reduced_axes(highest.attrs, x.ndim) and highest.inputs[0] is x:
                yield x, axis
    yield var, axis


def _reductions(edit: Edit, var: Var, schema: OpSchema) -> Iterator[tuple[Var, int]]:
    """Yields (x, axis) where the var is a reduction of x along one axis, with keepdims."""
    for operator in writers(edit, var, schema):
        (x,) = operator.inputs
        axes = reduced_axes(operator.attrs, x.ndim)
        if len(axes) == 1 and operator.attrs["keepdims"] and x.dtype.kind == "f":
            yield x, axes[0]


SOFTMAXES = RulePass("softmax", recognise)
