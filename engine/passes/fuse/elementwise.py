"""Chains of elementwise operators as one loop: what lies between them is a block in the cache, and no chunk."""

from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field

from engine.graph.graph import Graph
from engine.graph.operator import Operator
from engine.graph.var import Var
from engine.passes.edit import Edit
from ops.elementwise.fused import FUSED_ELEMENTWISE
from ops.elementwise.program import Program, Step
from ops.quantised.table import LOOK_UP


class _FuseElementwise:
    """From the last operator to the first: each takes in what is computed for it alone, and for what it took in.

    An operator moves down to the one that takes it in, so that what it reads lives longer. It is taken in from afar
    only if that is no larger than what it computes, which needs no place any more: so the peak does not grow.
    """

    name = "elementwise chains fused"

    def __call__(self, graph: Graph) -> Graph:
        """The graph, changed or not. Raises GraphError for a graph with open dimensions."""
        before, after = graph, _fused(graph)
        while after is not before:  # what stands apart may come to stand side by side
            before, after = after, _fused(after)
        return after


def _fused(graph: Graph) -> Graph:
    edit = Edit(graph)
    places = {edit.operator(number): place for place, number in enumerate(edit.numbers())}
    for number in reversed(edit.numbers()):
        if edit.has(number) and _may_end(edit, edit.operator(number)):
            _fuse(edit, edit.operator(number), places)
    return edit.graph()


def _fits(operator: Operator) -> bool:
    """Whether blocks of it are no slower than the whole: tables have one loop of their own."""
    return operator.schema.elementwise and operator.schema is not LOOK_UP


def _may_end(edit: Edit, operator: Operator) -> bool:
    return _fits(operator) and edit.is_needed(operator.outputs[0])


def _fuse(edit: Edit, root: Operator, places: Mapping[Operator, int]) -> None:
    group = _Group(edit, root, places).grown()
    if len(group) > 1:
        inputs, program = _program(group)
        attrs = {"program": program, "apart": _writes_late(edit, root, group, inputs, program)}
        edit.replace(root.outputs[0], edit.add(FUSED_ELEMENTWISE, inputs, attrs)[0])


def _writes_late(
    edit: Edit, root: Operator, group: Sequence[Operator], inputs: Sequence[Var], program: Program
) -> bool:
    """Whether the output should only be written at the end.

    So it is where it is written over a parameter that is read last, or else over what is read last and dies here, if
    nothing else dies.
    """
    specs = [v.spec for v in inputs]
    early, late = (
        [inputs[o.input] for o in FUSED_ELEMENTWISE.forwards(FUSED_ELEMENTWISE.sign(specs, attrs))]
        for attrs in ({"program": program, "apart": apart} for apart in (False, True))
    )
    ours = [v for v in late if edit.after(v) is root.outputs[0]]
    if ours:
        return ours[0] not in early
    kept = {*edit.constants, *edit.parameters}
    dying = {v for v in late if v not in kept and not edit.is_fetched(v) and set(edit.readers(v)) <= set(group)}
    return dying.isdisjoint(early) and bool(dying)


@define(eq=False)
class _Group:
    """Operators that become one."""

    edit: Edit
    root: Operator
    places: Mapping[Operator, int]
    members: set[Operator] = field(factory=set)
    read: set[Var] = field(factory=set)
    first: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.first = self.places[self.root]
        self._take(self.root)

    def _take(self, operator: Operator) -> None:
        self.members.add(operator)
        self.read.update(operator.inputs)
        self.first = min(self.first, self.places[operator])

    def grown(self) -> list[Operator]:
        """All members in order."""
        waiting = [self.root]
        while waiting:
            for var in waiting.pop().inputs:
                writer = self.edit.writer(var)
                if writer is not None and writer not in self.members and self._may_join(writer):
                    self._take(writer)
                    waiting.append(writer)
        return sorted(self.members, key=self.places.__getitem__)

    def _may_join(self, operator: Operator) -> bool:
        """Whether nobody else reads it, it runs over the same blocks, and nothing that it reads is written over."""
        (y, *rest) = operator.outputs
        alone = not self.edit.is_fetched(y) and self.members.issuperset(self.edit.readers(y))
        alike = not rest and y.shape == self.root.outputs[0].shape and _fits(operator)
        result, edit = self.root.outputs[0], self.edit
        unchanged = all(edit.after(v) is result or not edit.is_old_state(v) for v in operator.inputs)
        return alone and alike and unchanged and self._is_light(operator)

    def _is_light(self, operator: Operator) -> bool:
        """Whether it stands right in front of the others, or what it reads besides is no larger than its output."""
        together = self.first + len(self.members) - 1 == self.places[self.root]
        if together and self.places[operator] == self.first - 1:
            return True
        more = [v for v in dict.fromkeys(operator.inputs) if v not in self.read and v not in self.edit.constants]
        return sum(v.spec.nbytes for v in more) <= operator.outputs[0].spec.nbytes


def _program(group: Sequence[Operator]) -> tuple[list[Var], tuple[Step, ...]]:
    """What the group reads, and its operators as steps."""
    inner = {op.outputs[0]: i for i, op in enumerate(group)}
    inputs = [v for v in dict.fromkeys(_read(group)) if v not in inner]
    number = {v: i for i, v in enumerate(inputs)} | {v: len(inputs) + i for v, i in inner.items()}
    steps = (Step(op.schema, op.attrs, tuple(number[v] for v in op.inputs)) for op in group)
    return inputs, tuple(steps)


def _read(group: Iterable[Operator]) -> Iterable[Var]:
    return (v for op in group for v in op.inputs)


FUSE_ELEMENTWISE = _FuseElementwise()
