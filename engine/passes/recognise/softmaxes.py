"""Softmax and its logarithm recognised from exponentials and sums.

Where no maximum was subtracted from the exponents, it is now: what overflowed to NaN gives the softmax instead.
"""

from collections.abc import Iterator

import ops
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.recognise.formulas import are_pieces, pairs, quotients, writers
from ops.common.fold import reduced_axes
from ops.elementwise.binary import DIV, MUL, SUB
from ops.elementwise.unary import EXP, LOG
from ops.reduce.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_SUM
from ops.reduce.softmax import SOFTMAX
from ops.schema.schema import OpSchema


def recognise(edit: Edit, operator: Operator) -> None:
    """Puts a softmax, or its logarithm, in the place of its pieces, which nobody else may need."""
    (result,) = operator.outputs[:1]
    if operator.schema in (DIV, MUL):
        found, make = _softmaxes(edit, result), ops.softmax
    elif operator.schema in (SUB, LOG):
        found, make = _log_softmaxes(edit, result), ops.log_softmax
    else:
        return
    for x, axis in found:
        if x.spec == result.spec and are_pieces(edit, result, (x,)):
            edit.replace(result, make(x, axis=axis))
            return


def _softmaxes(edit: Edit, result: Var) -> Iterator[tuple[Var, int]]:
    """(x, axis) where the var is exp(x) / sum(exp(x))."""
    for above, below in quotients(edit, result):
        for power, axis in _folds(edit, below, REDUCE_SUM):
            for exp in writers(edit, above, EXP) if power is above else ():
                yield from _unshifted(edit, exp.inputs[0], axis)


def _log_softmaxes(edit: Edit, result: Var) -> Iterator[tuple[Var, int]]:
    """(x, axis) where the var is log(softmax(x)), or x - log(sum(exp(x)))."""
    for log in writers(edit, result, LOG):
        for softmax in writers(edit, log.inputs[0], SOFTMAX):
            yield softmax.inputs[0], softmax.attrs["axis"]
    for x, shift in pairs(edit, result, SUB):
        for y, axis in _log_sums(edit, shift):
            if y is x:
                yield from _unshifted(edit, x, axis)


def _log_sums(edit: Edit, var: Var) -> Iterator[tuple[Var, int]]:
    """(x, axis) where the var is log(sum(exp(x)))."""
    yield from _folds(edit, var, REDUCE_LOG_SUM_EXP)
    for log in writers(edit, var, LOG):
        for power, axis in _folds(edit, log.inputs[0], REDUCE_SUM):
            for exp in writers(edit, power, EXP):
                yield exp.inputs[0], axis


def _unshifted(edit: Edit, var: Var, axis: int) -> Iterator[tuple[Var, int]]:
    """x where var = x - max(x) along the axis, which a softmax does itself; the var otherwise."""
    for x, shift in pairs(edit, var, SUB):
        for highest in writers(edit, shift, REDUCE_MAX):
            if highest.attrs["keepdims"] and axis in reduced_axes(highest.attrs, x.ndim) and highest.inputs[0] is x:
                yield x, axis
    yield var, axis


def _folds(edit: Edit, var: Var, schema: OpSchema) -> Iterator[tuple[Var, int]]:
    """(x, axis) where the var is x folded along one axis, which is kept."""
    for operator in writers(edit, var, schema):
        (x,) = operator.inputs
        axes = reduced_axes(operator.attrs, x.ndim)
        if len(axes) == 1 and operator.attrs["keepdims"] and x.dtype.kind == "f":
            yield x, axes[0]


SOFTMAXES = RulePass("softmax", recognise)
