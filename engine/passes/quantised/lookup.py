"""Look-up tables for formulas of one quantised tensor: the kernels compute them once for all 256 values."""

import numpy as np
from attrs import define, field

from engine.executor.binding import kernel_state
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from engine.passes.quantised.quant_params import QuantisedVar, QuantParams, quantised_source
from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.quantised.table import LOOK_UP, every_value
from ops.schema.schema import evaluate
from ops.tensor.spec import Array

_MOST = 32
"""Vars of one formula, at most. A larger number finds longer formulas and makes the search slower."""


def look_up(edit: Edit, operator: Operator, params: QuantParams) -> Var | None:
    """Adds a table look-up that gives the result of a quantize_linear, and returns it; None where there is none.

    quantize(f(dequantize(q))) -> look_up(q, table of f)

    f is any formula of elementwise operators on one quantised tensor and on constants of one element. The rule does not
    apply where f reads anything else, where its kernels fail, or where the shapes differ.
    """
    formula = _Formula(edit)
    real = formula.value(operator.inputs[0])
    if real is None or formula.source is None or formula.source.var.shape != operator.outputs[0].shape:
        return None
    with kernel_state():
        (table,) = evaluate(QUANTIZE_LINEAR, real, *params.parameters())
    return edit.add(LOOK_UP, (formula.source.var,), {"table": table.tolist(), "to": params.dtype})[0]


def join_tables(edit: Edit, operator: Operator) -> None:
    """Rewrites look_up(look_up(q, s), t) to look_up(q, t of s), where nothing else reads the inner result."""
    (inner,) = operator.inputs
    first = edit.writer(inner)
    if first is None or first.schema is not LOOK_UP or edit.sole_reader(inner) is None:
        return
    positions = np.array(first.attrs["table"], first.attrs["to"]).view(np.uint8)
    table = np.array(operator.attrs["table"])[positions].tolist()
    edit.replace(operator.outputs[0], edit.add(LOOK_UP, first.inputs, {**operator.attrs, "table": table})[0])


@define(eq=False)
class _Formula:
    """The values of vars for all 256 values of one quantised tensor, the `source`."""

    edit: Edit
    source: QuantisedVar | None = None
    values: dict[Var, Array | None] = field(factory=dict)

    def value(self, var: Var) -> Array | None:
        """Returns a var for all 256 values, or its single constant; None where it depends on anything else."""
        if var not in self.values:
            self.values[var] = None
            if len(self.values) <= _MOST:
                self.values[var] = self._computed(var)
        return self.values[var]

    def _computed(self, var: Var) -> Array | None:
        if var in self.edit.constants:
            array = self.edit.constants[var]
            return array.reshape(()) if array.size == 1 else None
        source = quantised_source(self.edit, var)
        if source is not None:
            return self._all_values(source)
        operator = self.edit.writer(var)
        if operator is None or not operator.schema.elementwise or len(operator.outputs) != 1:
            return None
        operands = [self.value(v) for v in operator.inputs]
        arrays = [v for v in operands if v is not None]
        if len(arrays) < len(operands):
            return None
        try:
            with kernel_state():
                return evaluate(operator.schema, *arrays, **operator.attrs)[0]
        except Exception:
            return None

    def _all_values(self, source: QuantisedVar) -> Array | None:
        if self.source is None:
            self.source = source
        if source.var is not self.source.var or not source.params.same(self.source.params):
            return None
        with kernel_state():
            every = every_value(source.var.dtype)
            return np.asarray(evaluate(DEQUANTIZE_LINEAR, every, *source.params.parameters())[0])
