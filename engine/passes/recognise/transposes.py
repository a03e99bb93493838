"""Transposes pushed through elementwise operators, to where they meet their inverses and vanish.

A region is all elementwise operators that hang together. In another order of axes the region computes the same; what
enters it and leaves it pays for that. The order is changed where fewer transposes are left afterwards.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen

import ops
from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.order import stable_order
from engine.graph.var import Var
from engine.passes.base import rewrite
from engine.passes.cleanup.dead_code import DEAD_CODE
from engine.passes.cleanup.movement import Perm, composed, permutation
from engine.passes.edit import Edit
from ops.movement.views import TRANSPOSE

_MOST = 256
"""Operators of a region."""


def _inverse(perm: Perm) -> Perm:
    return tuple(int(axis) for axis in np.argsort(perm))


def push(edit: Edit, operator: Operator) -> None:
    """Where a transpose reads a region, computes the region in the order of axes that the transpose makes."""
    if operator.schema is not TRANSPOSE:
        return
    region = _region(edit, operator.inputs[0])
    perm = permutation(operator)
    turn = _Turn(edit, region, perm)
    if region and turn.gain() > 0:
        turn.apply()


def _region(edit: Edit, start: Var) -> Mapping[Operator, None]:
    """The elementwise operators that hang together with the one that computes `start`, all of its shape, in order.

    The nearest, where there are very many; each part of a region is one as well.
    """
    found: dict[Operator, None] = {}
    waiting = deque([edit.writer(start)])
    while waiting and len(found) < _MOST:
        operator = waiting.popleft()
        if operator is None or operator in found or not _fits(edit, operator, start):
            continue
        found[operator] = None
        waiting += [edit.writer(v) for v in operator.inputs]
        waiting += edit.readers(operator.outputs[0])
    return dict.fromkeys(runnable(tuple(found)))


def runnable(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Each behind what it reads: what was replaced a moment ago may stand elsewhere."""
    writer = {v: i for i, op in enumerate(operators) for v in op.outputs}
    order = stable_order([{writer[v] for v in op.inputs if v in writer} for op in operators], [""] * len(operators))
    return tuple(operators[i] for i in order)


def _fits(edit: Edit, operator: Operator, like: Var) -> bool:
    """Whether axes can be exchanged: all inputs have all the axes, or are constants, or one number."""
    if not operator.schema.elementwise or operator.outputs[0].shape != like.shape:
        return False
    if not edit.updated.isdisjoint(operator.outputs) or any(map(edit.is_old_state, operator.inputs)):
        return False
    return all(v.ndim == like.ndim or v in edit.constants or v.ndim == 0 for v in operator.inputs)


@frozen(eq=False)
class _Turn:
    """A region, and the order in which it is to have its axes."""

    edit: Edit
    region: Mapping[Operator, None]
    perm: Perm

    def gain(self) -> int:
        """How many transposes fewer there are. None for a region that reads a transpose of itself."""
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
        writer = self.edit.writer(var)
        if writer is None or writer.schema is not TRANSPOSE:
            return -1
        dies = not self.edit.is_fetched(var) and not self._outside(var)
        needed = not _is_identity(composed(permutation(writer), self.perm))
        return int(dies) - int(needed)

    def _saved_out(self, var: Var) -> int:
        """Transposes behind it that are this one vanish; others change; what reads it as it is needs one."""
        readers = self._outside(var)
        turned = [op for op in readers if op.schema is TRANSPOSE]
        gone = sum(permutation(op) == self.perm for op in turned)
        return gone - int(len(turned) < len(readers) or self.edit.is_fetched(var))

    def apply(self) -> None:
        """Computes the region anew."""
        made: dict[Var, Var] = {}
        exits = {v: tuple(self._outside(v)) for v in self._exits()}
        for operator in self.region:
            for var in operator.inputs:
                if var not in made:
                    made[var] = self._turned(var)
            (made[operator.outputs[0]],) = self.edit.add(
                operator.schema, [made[v] for v in operator.inputs], operator.attrs
            )
        for var, readers in reversed(exits.items()):
            self._leave(var, made[var], readers)

    def _leave(self, var: Var, made: Var, readers: Sequence[Operator]) -> None:
        for operator in readers:
            if operator.schema is TRANSPOSE:
                rest = composed(_inverse(self.perm), permutation(operator))
                self.edit.replace(operator.outputs[0], made if _is_identity(rest) else ops.transpose(made, rest))
        if self.edit.readers(var) or self.edit.is_fetched(var):
            self.edit.replace(var, ops.transpose(made, _inverse(self.perm)))

    def _turned(self, var: Var) -> Var:
        """What enters, in the new order."""
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
        return writer.inputs[0] if _is_identity(both) else ops.transpose(writer.inputs[0], both)


def _is_identity(perm: Perm) -> bool:
    return perm == tuple(range(len(perm)))


class _Transposes:
    """Turns regions where that leaves fewer transposes; dead code, which would be counted, goes first."""

    name = "transposes"

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        return rewrite(DEAD_CODE(graph), push)


TRANSPOSES = _Transposes()
