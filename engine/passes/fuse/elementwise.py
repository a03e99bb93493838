"""Fuses chains of elementwise operators into one loop. Values inside a chain are blocks in the cache, not tensors."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from attrs import define, evolve, field

from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.base import Pass
from engine.passes.edit import Edit
from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.elementwise.program import Step
from ops.quantised.table import LOOK_UP
from ops.tensor.dims import dims_in


class _FuseElementwise(Pass):
    """The pass that fuses elementwise operators that feed each other, from the last operator to the first.

    g(f(x), y) -> fused_elementwise(x, y), for f and g elementwise and of one shape

    The pass does not fuse an operator whose result something else reads, table look-ups, or an operator whose inputs
    are updated in between. A fused operator runs at the position of the last one, so the inputs of the others live
    longer. An operator that stands apart is fused only where its new inputs are no larger than its result, which needs
    no memory any more: so the peak does not grow.
    """

    name = "elementwise chains fused"

    def apply(self, edit: Edit) -> None:
        """Fuses what is adjacent now; operators that stand apart may be adjacent in the result."""
        positions = {edit.operator(n): position for position, n in enumerate(edit.operator_ids())}
        for operator_id in reversed(edit.operator_ids()):
            if edit.has_operator(operator_id) and _may_end(edit, edit.operator(operator_id)):
                edit.insert_behind(operator_id)
                _fuse(edit, edit.operator(operator_id), positions)


def _fits(operator: Operator) -> bool:
    """Returns whether an operator may be fused. Table look-ups have a loop of their own, and may not."""
    is_plain = operator.schema.elementwise and operator.schema is not LOOK_UP
    return is_plain and not dims_in(tuple(operator.attrs.values()))


def _may_end(edit: Edit, operator: Operator) -> bool:
    return _fits(operator) and edit.is_needed(operator.outputs[0])


def _fuse(edit: Edit, root: Operator, positions: Mapping[Operator, int]) -> None:
    group = _Group(edit, root, positions).grow()
    if len(group) > 1:
        inputs, program = _program(group)
        early = edit.sign(FUSED_ELEMENTWISE, inputs, {"program": program})
        late = evolve(early, attrs=MappingProxyType({**early.attrs, "apart": True}))
        overwritable = ([inputs[o.input] for o in FUSED_ELEMENTWISE.forwards(edit.estimated(s))] for s in (early, late))
        signature = late if _writes_late(edit, root, group, *overwritable) else early
        edit.replace(root.outputs[0], edit.add_signed(FUSED_ELEMENTWISE, inputs, signature)[0])


def _writes_late(
    edit: Edit, root: Operator, group: Sequence[Operator], early: Sequence[Var], late: Sequence[Var]
) -> bool:
    """Returns whether the fused operator should write its output only at the end (attribute `apart`).

    `early` and `late` are the vars that it may be written over if it is written early, and only at the end. It should
    be late where the output overwrites a parameter that only the last step reads. Else it should where an input that
    only the last step reads dies here, and none that an earlier write could overwrite does.
    """
    ours = [v for v in late if edit.updated_value(v) is root.outputs[0]]
    if ours:
        return ours[0] not in set(early)
    constants, parameters = edit.constants, set(edit.parameters)
    passing = [v for v in late if v not in constants and v not in parameters and not edit.is_fetched(v)]
    dying = {v for v in passing if set(edit.readers(v)) <= set(group)}
    return dying.isdisjoint(early) and bool(dying)


@define(eq=False)
class _Group:
    """A growing group of operators that become one. `read` are the vars that they read, `first` the lowest position."""

    edit: Edit
    root: Operator
    positions: Mapping[Operator, int]
    members: set[Operator] = field(factory=set)
    read: set[Var] = field(factory=set)
    first: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first = self.positions[self.root]
        self._add(self.root)

    def _add(self, operator: Operator) -> None:
        self.members.add(operator)
        self.read.update(operator.inputs)
        self.first = min(self.first, self.positions[operator])

    def grow(self) -> list[Operator]:
        """Adds all operators that may be fused; returns the members in order."""
        frontier = [self.root]
        while frontier:
            for var in frontier.pop().inputs:
                writer = self.edit.writer(var)
                if writer is not None and writer not in self.members and self._may_join(writer):
                    self._add(writer)
                    frontier.append(writer)
        return sorted(self.members, key=self.positions.__getitem__)

    def _may_join(self, operator: Operator) -> bool:
        """Returns whether only members read an operator, it has their shape, and no update of its inputs is between."""
        (y, *rest) = operator.outputs
        alone = not self.edit.is_fetched(y) and self.members.issuperset(self.edit.readers(y))
        alike = not rest and y.shape == self.root.outputs[0].shape and _fits(operator)
        result, edit = self.root.outputs[0], self.edit
        unchanged = all(edit.updated_value(v) is result or not edit.is_overwritten_state(v) for v in operator.inputs)
        return alone and alike and unchanged and self._is_light(operator)

    def _is_light(self, operator: Operator) -> bool:
        """Returns whether an operator is adjacent to the group, or its new inputs are no larger than its result."""
        contiguous = self.first + len(self.members) - 1 == self.positions[self.root]
        if contiguous and self.positions[operator] == self.first - 1:
            return True
        additional = [v for v in dict.fromkeys(operator.inputs) if v not in self.read and v not in self.edit.constants]
        return self.edit.estimated_bytes(additional) <= self.edit.estimated_bytes(operator.outputs)


def _program(group: Sequence[Operator]) -> tuple[list[Var], tuple[Step, ...]]:
    """Returns the vars that a group reads, and its operators as steps of a program."""
    inner = {op.outputs[0]: i for i, op in enumerate(group)}
    inputs = [v for v in dict.fromkeys(_inputs(group)) if v not in inner]
    number = {v: i for i, v in enumerate(inputs)} | {v: len(inputs) + i for v, i in inner.items()}
    steps = (Step(op.schema, op.attrs, tuple(number[v] for v in op.inputs)) for op in group)
    return inputs, tuple(steps)


def _inputs(group: Iterable[Operator]) -> Iterable[Var]:
    return (v for op in group for v in op.inputs)


FUSE_ELEMENTWISE = _FuseElementwise()
