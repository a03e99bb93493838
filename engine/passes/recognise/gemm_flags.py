"""Transposes in front of a product of matrices that can transpose while it reads."""

from engine.graph.operator import Operator
from engine.passes.base import RulePass
from engine.passes.cleanup.movement import permutation
from engine.passes.edit import Edit
from engine.passes.recognise.formulas import writers
from ops.movement.views import TRANSPOSE
from ops.products.gemm import GEMM

_FLAGS = ("trans_a", "trans_b")


def set_flags(edit: Edit, operator: Operator) -> None:
    """gemm(transpose(a), b) -> gemm(a, b, trans_a)"""
    if operator.schema is not GEMM:
        return
    inputs, attrs = list(operator.inputs), dict(operator.attrs)
    for i, flag in enumerate(_FLAGS):
        for transpose in writers(edit, inputs[i], TRANSPOSE):
            inputs[i], attrs[flag] = transpose.inputs[0], attrs[flag] ^ (permutation(transpose) == (1, 0))
    if inputs != list(operator.inputs):
        edit.replace(operator.outputs[0], edit.add(GEMM, inputs, attrs)[0])


GEMM_FLAGS = RulePass("gemm flags", set_flags)
