"""Formulas of one tensor of codes as tables: computed once for all 256 codes, with our own kernels."""

import numpy as np
from attrs import define, field

from engine.executor.binding import kernel_state
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from engine.passes.quantised.quant_params import Codes, Grid, codes_of
from ops.quantised.linear import DEQUANTIZE_LINEAR, QUANTIZE_LINEAR
from ops.quantised.table import LOOK_UP, every_code
from ops.schema.schema import evaluate
from ops.tensor.spec import Array

_MOST = 32
"""Operators of a formula."""


def look_up(edit: Edit, operator: Operator, grid: Grid) -> Var | None:
    """The codes that a quantisation gives, out of a table, where they depend on one tensor of codes alone."""
    formula = _Formula(edit)
    real = formula.value(operator.inputs[0])
    if real is None or formula.codes is None or formula.codes.var.shape != operator.outputs[0].shape:
        return None
    with kernel_state():
        (table,) = evaluate(QUANTIZE_LINEAR, real, *grid.parameters())
    return edit.add(LOOK_UP, (formula.codes.var,), {"table": table.tolist(), "to": grid.dtype})[0]


def join_tables(edit: Edit, operator: Operator) -> None:
    """One table for two in a row, where the codes between them are not wanted."""
    (codes,) = operator.inputs
    first = edit.writer(codes)
    if first is None or first.schema is not LOOK_UP or edit.sole_reader(codes) is None:
        return
    places = np.array(first.attrs["table"], first.attrs["to"]).view(np.uint8)
    table = np.array(operator.attrs["table"])[places].tolist()
    edit.replace(operator.outputs[0], edit.add(LOOK_UP, first.inputs, {**operator.attrs, "table": table})[0])


@define(eq=False)
class _Formula:
    """What is computed of all codes of one tensor, var by var."""

    edit: Edit
    codes: Codes | None = None
    known: dict[Var, Array | None] = field(factory=dict)

    def value(self, var: Var) -> Array | None:
        """The values of a var for all 256 codes, or its single constant; None where it depends on anything else."""
        if var not in self.known:
            self.known[var] = None
            if len(self.known) <= _MOST:
                self.known[var] = self._computed(var)
        return self.known[var]

    def _computed(self, var: Var) -> Array | None:
        if var in self.edit.constants:
            array = self.edit.constants[var]
            return array.reshape(()) if array.size == 1 else None
        codes = codes_of(self.edit, var)
        if codes is not None:
            return self._all_codes(codes)
        operator = self.edit.writer(var)
        if operator is None or not operator.schema.elementwise or len(operator.outputs) != 1:
            return None
        values = [self.value(v) for v in operator.inputs]
        known = [v for v in values if v is not None]
        if len(known) < len(values):
            return None
        try:
            with kernel_state():
                return evaluate(operator.schema, *known, **operator.attrs)[0]
        except Exception:
            return None

    def _all_codes(self, codes: Codes) -> Array | None:
        if self.codes is None:
            self.codes = codes
        if codes.var is not self.codes.var or not codes.grid.same(self.codes.grid):
            return None
        with kernel_state():
            return np.asarray(evaluate(DEQUANTIZE_LINEAR, every_code(codes.var.dtype), *codes.grid.parameters())[0])
