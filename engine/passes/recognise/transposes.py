"""Removes transposes: those that meet their inverse behind elementwise operators, and those in front of a gemm.

A region is a connected set of elementwise operators. It computes the same in another order of axes, with transposes of
its inputs and outputs. The order is changed where fewer transposes are left afterwards.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

import ops
from engine.graph.operator import Operator
from engine.graph.order import stable_order
from engine.graph.var import Var
from engine.passes.base import RulePass
from engine.passes.edit import Edit
from engine.passes.permutation import Perm, composed, inverse, is_identity, permutation
from engine.passes.recognise.formulas import writers
from ops.movement.views import TRANSPOSE
from ops.products.gemm import GEMM

_MOST = 256
"""Operators of a region, at most. A larger number removes more transposes and makes the pass slower."""
_GEMM_FLAGS = ("trans_a", "trans_b")


def move_transposes(edit: Edit, operator: Operator) -> None:
    """Computes a region in the order of axes that a transpose of its result makes.

    1. transpose(f(transpose(x, inverse of p)), p) -> f(x)
    2. transpose(f(x, y), p) -> f(transpose(x, p), transpose(y, p)), where another transpose vanishes for it

    The rule does not apply where no fewer transposes are left, where an operator of the region updates a parameter or
    reads overwritten state, or where the region reads a transpose of itself.
    """
    if operator.schema is not TRANSPOSE:
        return
    region, perm = _region(edit, operator.inputs[0]), permutation(operator)
    if region and _OrderChange(edit, region, perm).gain() > 0:
        _OrderChange(edit, dict.fromkeys(runnable(tuple(region))), perm).apply()


def _region(edit: Edit, start: Var) -> Mapping[Operator, None]:
    """Returns the elementwise operators of the shape of `start` that are connected to its writer.

    These are the nearest ones where there are more than the limit: each part of a region is a region.
    """
    members: dict[Operator, None] = {}
    frontier = deque([edit.writer(start)])
    while frontier and len(members) < _MOST:
        operator = frontier.popleft()
        if operator is None or operator in members or not _fits(edit, operator, start):
            continue
        members[operator] = None
        frontier += [edit.writer(v) for v in operator.inputs]
        frontier += edit.readers(operator.outputs[0])
    return members


def runnable(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Returns the operators in a runnable order: an operator that a rule has just replaced may stand elsewhere."""
    writer = {v: i for i, op in enumerate(operators) for v in op.outputs}
    order = stable_order([{writer[v] for v in op.inputs if v in writer} for op in operators], [""] * len(operators))
    return tuple(operators[i] for i in order)


def _fits(edit: Edit, operator: Operator, like: Var) -> bool:
    """Returns whether an operator works in any order of axes: inputs have all axes, are constant, or are one number."""
    if not operator.schema.elementwise or operator.outputs[0].shape != like.shape:
        return False
    if not edit.updated.isdisjoint(operator.outputs) or any(map(edit.is_overwritten_state, operator.inputs)):
        return False
    return all(v.ndim == like.ndim or v in edit.constants or v.ndim == 0 for v in operator.inputs)


@frozen(eq=False)
class _OrderChange:
    """A region, and the permutation of axes that it shall be computed in. `apply` takes it in a runnable order."""

    edit: Edit
    region: Mapping[Operator, None]
    perm: Perm

    def gain(self) -> int:
        """Returns the number of transposes that vanish; 0 for a region that reads a transpose of itself."""
        inside = {op.outputs[0] for op in self.region}
        writers = (self.edit.writer(v) for v in self._entries())
        if any(op is not None and op.schema is TRANSPOSE and op.inputs[0] in inside for op in writers):
            return 0
        return sum(map(self._saved_in, self._entries())) + sum(map(self._saved_out, self._exits()))

    def _entries(self) -> Iterator[Var]:
        inside = {op.outputs[0] for op in self.region}
        entering = dict.fromkeys(v for op in self.region for v in op.inputs if v not in inside)
        return (v for v in entering if v not in self.edit.constants and v.ndim)

    def _exits(self) -> Iterator[Var]:
        return (v for op in self.region for v in op.outputs if self._outside(v) or self.edit.is_fetched(v))

    def _outside(self, var: Var) -> list[Operator]:
        return [op for op in self.edit.readers(var) if op not in self.region]

    def _saved_in(self, var: Var) -> int:
        """Returns the transposes saved in front of the region for one of its inputs; -1 where it needs a new one."""
        writer = self.edit.writer(var)
        if writer is None or writer.schema is not TRANSPOSE:
            return -1
        dies = not self.edit.is_fetched(var) and not self._outside(var)
        needed = not is_identity(composed(permutation(writer), self.perm))
        return int(dies) - int(needed)

    def _saved_out(self, var: Var) -> int:
        """Returns the transposes saved behind a var: equal ones vanish, others change, other readers need a new one."""
        readers = self._outside(var)
        transposes = [op for op in readers if op.schema is TRANSPOSE]
        removed = sum(permutation(op) == self.perm for op in transposes)
        return removed - int(len(transposes) < len(readers) or self.edit.is_fetched(var))

    def apply(self) -> None:
        """Replaces the region by one that is computed in the other order of axes."""
        permuted: dict[Var, Var] = {}
        exits = {v: tuple(self._outside(v)) for v in self._exits()}
        for operator in self.region:
            for var in operator.inputs:
                if var not in permuted:
                    permuted[var] = self._permuted(var)
            inputs = [permuted[v] for v in operator.inputs]
            (permuted[operator.outputs[0]],) = self.edit.add(operator.schema, inputs, operator.attrs)
            self.edit.inherit_name(operator.outputs[0], permuted[operator.outputs[0]])
        for var, readers in reversed(exits.items()):
            self._replace_exit(var, permuted[var], readers)

    def _replace_exit(self, var: Var, permuted: Var, readers: Sequence[Operator]) -> None:
        """Makes the readers outside the region read the permuted result, through a transpose where they need one."""
        for operator in readers:
            if operator.schema is TRANSPOSE:
                rest = composed(inverse(self.perm), permutation(operator))
                self.edit.replace(operator.outputs[0], permuted if is_identity(rest) else ops.transpose(permuted, rest))
        if self.edit.readers(var) or self.edit.is_fetched(var):
            self.edit.replace(var, ops.transpose(permuted, inverse(self.perm)))

    def _permuted(self, var: Var) -> Var:
        """Returns an input of the region in the new order of axes."""
        if var.spec.size == 1 and (var.ndim == 0 or var in self.edit.constants):
            return var
        if var in self.edit.constants:
            array = self.edit.constants[var]
            whole = array.reshape((1,) * (len(self.perm) - array.ndim) + array.shape)
            return self.edit.constant(np.ascontiguousarray(whole.transpose(self.perm)), var.name)
        writer = self.edit.writer(var)
        if writer is None or writer.schema is not TRANSPOSE:
            return ops.transpose(var, self.perm)
        both = composed(permutation(writer), self.perm)
        return writer.inputs[0] if is_identity(both) else ops.transpose(writer.inputs[0], both)


def set_gemm_flags(edit: Edit, operator: Operator) -> None:
    """Replaces transposes in front of a gemm by its flags.

    1. gemm(transpose(a), b) -> gemm(a, b, trans_a)
    2. gemm(a, transpose(b)) -> gemm(a, b, trans_b)
    A transpose that changes nothing vanishes without a flag, and a second transpose takes a flag back.
    """
    if operator.schema is not GEMM:
        return
    inputs, attrs, changes = list(operator.inputs), dict(operator.attrs), False
    for i, flag in enumerate(_GEMM_FLAGS):
        for transpose in writers(edit, inputs[i], TRANSPOSE):
            inputs[i], attrs[flag] = transpose.inputs[0], attrs[flag] ^ (permutation(transpose) == (1, 0))
            changes = True
    if changes:
        edit.replace(operator.outputs[0], edit.add(GEMM, inputs, attrs)[0])


class _Transposes(RulePass):
    """The pass of the rule `move_transposes`. It removes dead code first, whose transposes would count."""

    def apply(self, edit: Edit) -> None:
        """Removes dead code and sweeps over the operators."""
        edit.remove_dead_code()
        super().apply(edit)


TRANSPOSES = _Transposes("transposes", move_transposes)
GEMM_FLAGS = RulePass("gemm flags", set_gemm_flags)
